"""Creates the Lambda functions with their environment variables, permissions and event sources."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from duetime.adapters.dynamodb import schema
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from duetime_cdk.archive import ArchiveStream
from duetime_cdk.environments import LOCAL, FunctionName, WorkerBatch
from duetime_cdk.event_intake import IntakeSources
from duetime_cdk.handlers_function import equip
from duetime_cdk.lambda_function import LambdaFunction
from duetime_cdk.table_stream import TableStream
from duetime_cdk.target_grants import grant_target_calls
from duetime_cdk.topology_state_machine import TopologyMachine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.quotas import Quotas
    from duetime_cdk.archive import ArchiveBucket
    from duetime_cdk.environments import Environment
    from duetime_cdk.event_intake import Intake
    from duetime_cdk.handlers_folder import HandlersFolder
    from duetime_cdk.handlers_packages import HandlersPackage
    from duetime_cdk.layer_versions import LayerVersions
    from duetime_cdk.payload_bucket import Content
    from duetime_cdk.queues import Queues
    from duetime_cdk.signing_secret import Signing
    from duetime_cdk.tasks_table import Tables
    from duetime_cdk.websocket_api import WebSocketApi

BATCH_SIZE = 10
"""Maximum number of messages per invocation, which is the most that SQS returns at once."""
DEAD_LETTERS_AT_ONCE = 5
"""Maximum number of concurrent invocations for dead letters, which are not urgent."""
WRITE = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
"""Table actions of functions that write tasks: read an item, put an item, and update an item conditionally."""
LEASE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
"""Queue actions needed to lease tasks."""
READ_MANY = ("dynamodb:Query", "dynamodb:BatchGetItem")
INSERT_MANY = ("dynamodb:PartiQLInsert",)
"""Table action needed to create many tasks for a request, events or nodes: `BatchExecuteStatement` with insertions."""
DELETE = ("dynamodb:DeleteItem",)
"""Table action needed to leave a lock's line, and to delete items stored next to a task's record."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The resources that the functions use."""

    tables: Tables
    content: Content
    queues: Queues
    signing: Signing
    intake: Intake | None = None
    archive: ArchiveBucket | None = None


class Functions(Construct):
    """All functions, each with only the variables that it reads and the permissions that it needs."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        environment: Environment,
        layers: LayerVersions,
        stores: Stores,
        live: WebSocketApi,
        handlers: HandlersFolder,
    ) -> None:
        super().__init__(scope, id_)
        self._environment = environment
        self._handlers = handlers
        self._layers = layers
        self._stores = stores
        self._live = live
        self.egress = self._egress()
        self.bulk = self._bulk()
        self.api = self._api()
        self.trigger = self._trigger()
        self.topology = self._topology()
        self.machine = TopologyMachine(
            self,
            "Topologies",
            environment=environment,
            function=self.topology,
            table=stores.tables.tasks.table_name,
        )
        self.attempts = self._attempts() if environment.handlers_packages else None
        self.packages = {each.name: self._package(each) for each in environment.handlers_packages}
        self.worker = self._worker()
        self.deadletter = self._deadletter()
        self.intake = self._intake(stores.intake) if stores.intake else None
        self.broadcast = self._broadcast()
        self.watch = self._watch()
        self.console = self._console() if environment.console else None
        self.authorizer = self._authorizer() if environment.api_keys else None
        self.stream = TableStream(
            self, "Stream", environment=environment, tables=stores.tables, function=self.broadcast
        )
        self.archive = self._archive(stores.archive) if stores.archive else None
        self.machine.grant_task_success([self.topology, self.worker])
        self._tell_where_logs_are()

    def _api(self) -> LambdaFunction:
        settings = self._environment
        function = self._function(
            FunctionName.API,
            {
                Variable.BUCKET: self._stores.content.bucket.bucket_name,
                **self._retention,
                Variable.AUTHENTICATION: settings.authentication,
                Variable.OPERATORS: " ".join(settings.operators),
                Variable.REDACT: self._redacted,
                # The construct `AuditLog`, if there is one, sets this variable.
                Variable.AUDIT_LOG_GROUP: "",
                Variable.ADMINS: " ".join(settings.admins),
                Variable.API_KEYS: "on" if settings.api_keys else "",
                Variable.TEAMS: json.dumps({owner: sorted(who) for owner, who in settings.teams.items()}),
                Variable.TEAMS_CLAIM: settings.teams_claim,
                Variable.PULLERS: json.dumps({name: sorted(who) for name, who in settings.pulled_types.items()}),
                Variable.LONG_POLLS: str(settings.long_polls),
                Variable.QUOTAS: _json_of(settings.quotas),
                Variable.TRACEBACKS: "keep" if settings.keep_tracebacks else "log",
                Variable.SUMMARY_SPREAD: str(settings.summary_spread),
                Variable.TASK_LISTS: str(settings.task_lists),
                Variable.REQUESTS_PER_SECOND: str(settings.requests_per_second),
                Variable.TRACES: "xray" if settings.xray else "",
                Variable.EGRESS_FUNCTION: self.egress.live_name,
                Variable.HANDLER_TYPES: self._layers.types_module,
                Variable.WATCH_URL: self._live.url,
                Variable.ARCHIVE_BUCKET: self._stores.archive.bucket.bucket_name if self._stores.archive else "",
                **self._archived,
                Variable.SIGNING_SECRET: self._stores.signing.secret.secret_arn,
                Variable.INTAKE_OWNER: settings.intake_owner,
                **self._callable,
            },
        )
        self._grant_egress(function)
        # The API lets owners read their own secrets, which are derived from this secret.
        function.allow(["secretsmanager:GetSecretValue"], [self._stores.signing.secret.secret_arn])
        self._grant_bulk_start(function)
        function.allow([*READ_MANY, *INSERT_MANY, *DELETE], [self._stores.tables.tasks.table_arn])
        function.allow(["dynamodb:Query"], self._stores.tables.arns_of(*schema.INDEXES))
        function.allow(["sqs:GetQueueAttributes"], self._queue_arns)
        self._grant_leasing(function)
        self._stores.content.grant_access(function)
        self._stores.content.grant_deletion(function)
        return function

    def _tell_where_logs_are(self) -> None:
        """Tell the API where the logs are, for links in its responses; the local stack has no CloudWatch console."""
        self.api.variables[Variable.STACK] = Stack.of(self).stack_name
        log_group = "" if self._environment.name == LOCAL else self.worker.log_group.log_group_name
        self.api.variables[Variable.WORKER_LOGS] = log_group

    def _trigger(self) -> LambdaFunction:
        function = self._function(
            FunctionName.TRIGGER,
            {
                Variable.QUOTAS: _json_of(self._environment.quotas),
                Variable.BUCKET: self._stores.content.bucket.bucket_name,
                **self._callable,
            },
        )
        if url := self._environment.heartbeat_url:
            function.variables[Variable.HEARTBEAT_URL] = url
            function.variables[Variable.EGRESS_FUNCTION] = self.egress.live_name
            self._grant_egress(function)
        function.allow(READ_MANY, [self._stores.tables.tasks.table_arn])
        # The trigger copies a schedule's payload to the tasks that it creates.
        self._stores.content.grant_access(function)
        function.allow(["sqs:GetQueueAttributes"], self._queue_arns)
        self._grant_bulk_start(function)
        # Lambda does not retry a tick, because a retry would only overlap with the next tick, which catches up.
        function.live.configure_async_invoke(retry_attempts=0, max_event_age=Duration.minutes(1))
        # With many shards, the trigger invokes itself, which needs a separate policy, because the role's own policy
        # must exist before the function, and cannot name it.
        invoke = iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.live_arn])
        iam.Policy(self, "TriggerInvokesItself", statements=[invoke], roles=[function.role])
        return function

    def _topology(self) -> LambdaFunction:
        settings = self._environment
        function = self._function(
            FunctionName.TOPOLOGY,
            {
                Variable.QUOTAS: _json_of(settings.quotas),
                Variable.BUCKET: self._stores.content.bucket.bucket_name,
                **self._retention,
                **self._callable,
            },
        )
        function.allow([*READ_MANY, *INSERT_MANY, *DELETE], [self._stores.tables.tasks.table_arn])
        self._grant_bulk_start(function)
        self._stores.content.grant_access(function)
        return function

    def _bulk(self) -> LambdaFunction:
        settings, archive = self._environment, self._stores.archive
        function = self._function(
            FunctionName.BULK,
            {
                Variable.QUOTAS: _json_of(settings.quotas),
                Variable.BUCKET: self._stores.content.bucket.bucket_name,
                **self._retention,
                Variable.ARCHIVE_BUCKET: archive.bucket.bucket_name if archive else "",
                **self._callable,
            },
        )
        if archive:
            archive.grant_rewriting(function)
        function.allow([*READ_MANY, *DELETE], [self._stores.tables.tasks.table_arn])
        function.allow(["dynamodb:Query"], self._stores.tables.arns_of(schema.OWNER_INDEX, schema.FAILED_INDEX))
        self._stores.content.grant_access(function)
        self._stores.content.grant_deletion(function)
        # Lambda does not retry a start, because the operation's timer starts the operation within two minutes.
        function.live.configure_async_invoke(retry_attempts=0, max_event_age=Duration.minutes(1))
        return function

    def _worker(self) -> LambdaFunction:
        settings = self._environment
        function = self._function(
            FunctionName.WORKER,
            {
                Variable.BUCKET: self._stores.content.bucket.bucket_name,
                **self._retention,
                Variable.LEASE_SECONDS: str(settings.lease_seconds),
                Variable.TRACEBACKS: "keep" if settings.keep_tracebacks else "log",
                Variable.HANDLERS: self._handlers.package.name,
                Variable.API_FUNCTION: self.api.live_name,
                Variable.EGRESS_FUNCTION: self.egress.live_name,
                **self._callable,
                Variable.QUOTAS: _json_of(settings.quotas),
                Variable.TOPOLOGY_MACHINE: self.machine.machine.state_machine_arn,
            },
        )
        if settings.canaries:
            function.variables[Variable.CANARY] = "on"
        if self.packages:
            function.variables[Variable.HANDLER_TYPES] = self._layers.types_module
            function.variables[Variable.HANDLER_PACKAGES] = Stack.of(self).to_json_string(
                {
                    pattern: self.packages[each.name].live_name
                    for each in settings.handlers_packages
                    for pattern in each.types
                }
            )
            invoked = [each.live_arn for each in self.packages.values()]
            function.allow(["lambda:InvokeFunction"], invoked)
        self.machine.grant_start(function)
        function.allow([*READ_MANY, *INSERT_MANY, *DELETE], [self._stores.tables.tasks.table_arn])
        self._grant_egress(function)
        # For `context.client` of handlers.
        function.allow(["lambda:InvokeFunction"], [self.api.live_arn])
        self._grant_bulk_start(function)
        grant_target_calls(function, settings.aws_targets)
        self._stores.content.grant_access(function)
        equip(function, settings.handlers_environment, self._handlers.grants)
        self._invoke_by_queues(function)
        return function

    def _attempts(self) -> LambdaFunction:
        """The function to which packages report; each request can affect only the attempt that it names."""
        variables = {
            Variable.TABLE: self._stores.tables.tasks.table_name,
            Variable.BUCKET: self._stores.content.bucket.bucket_name,
            **self._retention,
            Variable.LEASE_SECONDS: str(self._environment.lease_seconds),
            Variable.API_FUNCTION: self.api.live_name,
        }
        function = LambdaFunction(
            self, FunctionName.ATTEMPTS, environment=self._environment, layers=self._layers, variables=variables
        )
        function.allow([*WRITE, "dynamodb:Query"], [self._stores.tables.tasks.table_arn])
        function.allow(["lambda:InvokeFunction"], [self.api.live_arn])
        return function

    def _package(self, package: HandlersPackage) -> LambdaFunction:
        """The function of a handler package; it may invoke the attempts function, and has the package's permissions."""
        if self.attempts is None:
            raise TypeError(package)
        own = self._handlers.packages[package.name]
        variables = {
            Variable.HANDLERS: own.package.name,
            Variable.ATTEMPTS_FUNCTION: self.attempts.live_name,
        }
        function = LambdaFunction(
            self,
            FunctionName.HANDLERS,
            environment=self._environment,
            layers=self._layers,
            variables=variables,
            package=package,
        )
        function.allow(["lambda:InvokeFunction"], [self.attempts.live_arn])
        equip(function, package.environment, own.grants)
        return function

    def _invoke_by_queues(self, worker: LambdaFunction) -> None:
        """Add one mapping for each priority, so that each priority has its own concurrency."""
        for priority, queue in self._stores.queues.of_priority.items():
            pollers = self._environment.provisioned_pollers.get(priority)
            concurrency = None if pollers else self._environment.concurrency[priority]
            batch = self._environment.worker_batches.get(priority, WorkerBatch(BATCH_SIZE, 0))
            worker.invoke_by(
                queue,
                batch_size=batch.size,
                batch_seconds=batch.seconds,
                concurrency=concurrency,
                pollers=pollers,
            )
            worker.allow(["sqs:ChangeMessageVisibility"], [queue.queue_arn])

    def _deadletter(self) -> LambdaFunction:
        function = self._function(
            FunctionName.DEADLETTER,
            {
                Variable.BUCKET: self._stores.content.bucket.bucket_name,
                **self._retention,
            },
        )
        # When a member of a group ends, the function reads the open members.
        function.allow(["dynamodb:Query"], [self._stores.tables.tasks.table_arn])
        function.invoke_by(self._stores.queues.dead_letters, batch_size=BATCH_SIZE, concurrency=DEAD_LETTERS_AT_ONCE)
        return function

    def _intake(self, intake: Intake) -> LambdaFunction:
        settings = self._environment
        function = self._function(
            FunctionName.INTAKE,
            {
                Variable.BUCKET: self._stores.content.bucket.bucket_name,
                **self._callable,
                Variable.HANDLER_TYPES: self._layers.types_module,
                Variable.INTAKE_OWNER: settings.intake_owner,
                Variable.INTAKE_DETAIL_TYPE: settings.intake_detail_type,
                Variable.INTAKE_QUEUES: " ".join(settings.intake_queues),
                Variable.INTAKE_REJECTS: intake.rejects.queue_url,
            },
        )
        # Intake rules can cancel tasks by bulk operations, and wake tasks that wait for an event.
        self._grant_bulk_start(function)
        function.allow([*READ_MANY, *DELETE], [self._stores.tables.tasks.table_arn])
        self._stores.content.grant_access(function, reads=False)
        function.allow(INSERT_MANY, [self._stores.tables.tasks.table_arn])
        function.allow(["sqs:SendMessage"], [intake.rejects.queue_arn])
        function.invoke_by(
            intake.queue,
            batch_size=settings.intake_batch_size,
            batch_seconds=settings.intake_batch_seconds,
            concurrency=settings.intake_concurrency,
        )
        IntakeSources(self, "IntakeSources", environment=settings, function=function, rejects=intake.rejects)
        return function

    def _broadcast(self) -> LambdaFunction:
        """The function that reads the table's stream; it creates no tasks, and no task waits for it."""
        settings, tasks = self._environment, self._stores.tables.tasks
        more = {
            Variable.SUMMARY_SPREAD: str(settings.summary_spread),
            Variable.TASK_LISTS: str(settings.task_lists),
            **self._retention,
            Variable.SUMMARY_RECOUNT_MEGABYTES: str(settings.summary_recount_megabytes),
            Variable.EVENT_BUS: settings.event_bus,
        }
        function = self._live_function(FunctionName.BROADCAST, more)
        function.allow(["dynamodb:Query", *DELETE], [tasks.table_arn])
        if settings.regions:
            function.allow(["dynamodb:GetItem"], [tasks.table_arn])
        if settings.summary_spread or settings.task_lists:
            function.allow(WRITE, [tasks.table_arn])
        if settings.task_lists:
            owner_list = f"{tasks.table_arn}/index/{schema.OWNER_INDEX.name}"
            function.allow(["dynamodb:Query"], [owner_list])
            function.allow(["dynamodb:BatchGetItem", "dynamodb:BatchWriteItem"], [tasks.table_arn])
        if settings.recounts_summary:
            function.allow(["dynamodb:Scan"], [tasks.table_arn])
        if settings.event_bus:
            bus = Stack.of(self).format_arn(service="events", resource="event-bus", resource_name=settings.event_bus)
            function.allow(["events:PutEvents"], [bus])
        return function

    def _archive(self, archive: ArchiveBucket) -> LambdaFunction:
        """The function that copies removed records to the archive, which is the only place where it can write."""
        tables = self._stores.tables
        variables = {
            Variable.TABLE: tables.tasks.table_name,
            Variable.ARCHIVE_BUCKET: archive.bucket.bucket_name,
            Variable.REDACT: self._redacted,
            **self._archived,
        }
        function = LambdaFunction(
            self, FunctionName.ARCHIVE, environment=self._environment, layers=self._layers, variables=variables
        )
        ArchiveStream(self, "ArchiveStream", tables=tables, function=function, archive=archive)
        return function

    def _watch(self) -> LambdaFunction:
        """The function that handles the WebSocket API's events."""
        function = self._live_function(FunctionName.WATCH)
        function.allow([*WRITE, "dynamodb:Query", *DELETE], [self._stores.tables.tasks.table_arn])
        self._live.serve(function)
        return function

    def _console(self) -> LambdaFunction:
        """The function that serves the console's files; it has no permissions."""
        settings = self._environment
        sign_in = {
            "issuer": settings.jwt_issuer,
            "client_id": settings.sign_in_client_id,
            "audience": settings.jwt_audience,
            "origins": settings.sign_in_origins,
        }
        variables = {
            Variable.WATCH_URL: self._live.url,
            Variable.SIGN_IN: json.dumps(sign_in) if settings.sign_in_client_id else "",
            Variable.CODEC_ENDPOINT: settings.codec_endpoint,
            Variable.UPLOAD_URL: self._stores.content.url,
        }
        return LambdaFunction(
            self, FunctionName.CONSOLE, environment=self._environment, layers=self._layers, variables=variables
        )

    def _authorizer(self) -> LambdaFunction:
        """The function that checks API keys; it can access only the items of keys and the active Region's record."""
        tasks = self._stores.tables.tasks
        variables = {Variable.TABLE: tasks.table_name}
        function = LambdaFunction(
            self, FunctionName.AUTHORIZER, environment=self._environment, layers=self._layers, variables=variables
        )
        reached = [f"{schema.API_KEY_PREFIX}*", *([schema.REGION_KEY] if self._environment.regions else [])]
        keys = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": reached}}
        function.allow(["dynamodb:GetItem", "dynamodb:UpdateItem"], [tasks.table_arn], keys)
        return function

    def _live_function(self, name: FunctionName, more: Mapping[Variable, str] | None = None) -> LambdaFunction:
        """A function that creates no tasks, and sends messages to WebSocket connections."""
        variables = {
            Variable.TABLE: self._stores.tables.tasks.table_name,
            Variable.WATCH_URL: self._live.url,
            **(more or {}),
        }
        function = LambdaFunction(self, name, environment=self._environment, layers=self._layers, variables=variables)
        self._live.grant_sending(function)
        return function

    def _egress(self) -> LambdaFunction:
        """The function that makes HTTP calls; it may only read the secrets that it sends or signs with."""
        settings, secret = self._environment, self._stores.signing.secret
        variables = {
            Variable.HTTP_ALLOW: ",".join(settings.http_allow),
            Variable.HTTP_SECRETS: self._secrets,
            Variable.SIGNING_SECRET: secret.secret_arn,
        }
        function = LambdaFunction(
            self, FunctionName.EGRESS, environment=settings, layers=self._layers, variables=variables
        )
        sent = sorted({each.arn for each in settings.http_secrets.values()})
        function.allow(["secretsmanager:GetSecretValue"], [secret.secret_arn, *sent])
        return function

    def _grant_egress(self, function: LambdaFunction) -> None:
        """Let a function invoke the egress function."""
        function.allow(["lambda:InvokeFunction"], [self.egress.live_arn])

    def _grant_bulk_start(self, function: LambdaFunction) -> None:
        """Let a function start bulk operations."""
        function.variables[Variable.BULK_FUNCTION] = self.bulk.live_name
        function.allow(["lambda:InvokeFunction"], [self.bulk.live_arn])

    def complete(self) -> None:
        """Set the functions' variables once all resources are known."""
        every = [*(each for _, each in self.by_name), *self.packages.values()]
        for function in every:
            function.complete()
            function.switch_after(every)

    @property
    def by_name(self) -> list[tuple[FunctionName, LambdaFunction]]:
        """The functions by name, without the functions of packages."""
        return [
            (FunctionName.API, self.api),
            (FunctionName.TRIGGER, self.trigger),
            (FunctionName.TOPOLOGY, self.topology),
            (FunctionName.WORKER, self.worker),
            (FunctionName.DEADLETTER, self.deadletter),
            (FunctionName.BULK, self.bulk),
            (FunctionName.BROADCAST, self.broadcast),
            (FunctionName.WATCH, self.watch),
            (FunctionName.EGRESS, self.egress),
            *([(FunctionName.ATTEMPTS, self.attempts)] if self.attempts else []),
            *([(FunctionName.INTAKE, self.intake)] if self.intake else []),
            *([(FunctionName.CONSOLE, self.console)] if self.console else []),
            *([(FunctionName.ARCHIVE, self.archive)] if self.archive else []),
            *([(FunctionName.AUTHORIZER, self.authorizer)] if self.authorizer else []),
        ]

    @property
    def _retention(self) -> dict[Variable, str]:
        """The variables with the retention of ended tasks."""
        return {
            Variable.RETENTION_DAYS: str(self._environment.retention_days),
            Variable.RETENTION_DAYS_BY_TYPE: _days_text(self._environment.retention_days_by_type),
        }

    @property
    def _archived(self) -> dict[Variable, str]:
        """The variables with the archive's retention of ended tasks."""
        return {
            Variable.ARCHIVE_DAYS: str(self._environment.archive_days),
            Variable.ARCHIVE_DAYS_BY_TYPE: _days_text(self._environment.archive_days_by_type),
        }

    @property
    def _redacted(self) -> str:
        """The value of the variable that maps type patterns to redacted fields."""
        paths = {pattern: [*each] for pattern, each in self._environment.redact.items()}
        return json.dumps(paths, separators=(",", ":")) if paths else ""

    @property
    def _callable(self) -> dict[Variable, str]:
        """The variables with the allowed targets, so that requests to create tasks with other targets are rejected."""
        settings = self._environment
        return {
            Variable.AWS_TARGETS: " ".join(settings.aws_targets),
            Variable.TYPE_OWNERS: _owners_text(settings.type_owners),
            Variable.TARGET_OWNERS: _owners_text(settings.target_owners),
            Variable.HTTP_ALLOW: ",".join(settings.http_allow),
            Variable.HTTP_SECRETS: self._secrets,
        }

    @property
    def _secrets(self) -> str:
        """The value of the variable with the secrets for HTTP calls: ARN, hosts and owners."""
        secrets = self._environment.http_secrets
        shortened = {
            name: {"arn": one.arn, "hosts": [*one.hosts], **({"owners": [*one.owners]} if one.owners else {})}
            for name, one in secrets.items()
        }
        return json.dumps(shortened, separators=(",", ":")) if shortened else ""

    @property
    def _queue_arns(self) -> list[str]:
        return [queue.queue_arn for queue in self._stores.queues.to_work]

    def _grant_leasing(self, function: LambdaFunction) -> None:
        """Let a function lease tasks of the pulled types."""
        pulled = self._stores.queues.pulled.values()
        if pulled:
            function.allow(LEASE, [queue.queue_arn for queue in pulled])

    def _function(self, name: FunctionName, variables: Mapping[Variable, str]) -> LambdaFunction:
        """A function that can create and dispatch tasks: write to the table and send to the queues."""
        settings, queues = self._environment, self._stores.queues.of_priority
        enqueuing = {
            Variable.TABLE: self._stores.tables.tasks.table_name,
            **{QUEUE_VARIABLES[priority]: queue.queue_url for priority, queue in queues.items()},
            Variable.PULLED_QUEUES: json.dumps(self._stores.queues.names_of_pulled),
            Variable.SHARDS: str(settings.shards),
            Variable.LOOK_AHEAD_SECONDS: str(settings.look_ahead_seconds),
            Variable.METRIC_OWNERS: " ".join(settings.metric_owners),
            Variable.METRIC_TYPES: " ".join(settings.metric_types),
            Variable.PRECISION: settings.precision,
        }
        function = LambdaFunction(
            self, name, environment=settings, layers=self._layers, variables={**enqueuing, **variables}
        )
        function.allow(WRITE, [self._stores.tables.tasks.table_arn])
        function.allow(["sqs:SendMessage"], self._queue_arns)
        return function


def _json_of(quotas: Quotas | None) -> str:
    """The value of the variable with owners' default quotas; empty if there are no quotas."""
    if quotas is None:
        return ""
    return json.dumps({name: limit for name, limit in asdict(quotas).items() if limit is not None})


def _days_text(by_type: Mapping[str, int]) -> str:
    """The value of a variable that maps type patterns to days; the order of the patterns matters."""
    return json.dumps(dict(by_type), separators=(",", ":")) if by_type else ""


def _owners_text(owners: Mapping[str, Sequence[str]]) -> str:
    """The value of a variable that maps names to owner patterns; the order of the names matters."""
    return json.dumps({name: sorted(who) for name, who in owners.items()}, separators=(",", ":")) if owners else ""
