"""Defines the CDK stack, which creates all constructs and outputs their names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from aws_cdk import Annotations, CfnOutput, Stack, Tags
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam

from duetime.environment_variables import Variable
from duetime_cdk.alarms import Alarms
from duetime_cdk.archive import ArchiveBucket
from duetime_cdk.archive_catalog import ArchiveCatalog
from duetime_cdk.audit_log import AuditLog
from duetime_cdk.aws_limits import check_limits
from duetime_cdk.canary_deployment import CanaryDeployment
from duetime_cdk.dashboard import Dashboard, MetricNames
from duetime_cdk.definition_function import DefinitionFunction
from duetime_cdk.environments import DEV, LOCAL, FunctionName, with_settings
from duetime_cdk.event_intake import Intake
from duetime_cdk.functions import Functions, Stores
from duetime_cdk.handlers_folder import METADATA, METADATA_OF_PACKAGES, handlers_of
from duetime_cdk.http_api import HttpApi
from duetime_cdk.job_events import JobEvents
from duetime_cdk.layer_versions import LayerVersions
from duetime_cdk.layers.build import Packages, build
from duetime_cdk.payload_bucket import Content
from duetime_cdk.queues import Queues
from duetime_cdk.signing_secret import Signing
from duetime_cdk.summary_recount import SummaryRecount
from duetime_cdk.tasks_table import Tables
from duetime_cdk.trigger_schedule import TriggerSchedule
from duetime_cdk.websocket_api import WebSocketApi

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from aws_cdk import Environment as AccountAndRegion
    from aws_cdk import aws_apigatewayv2 as apigateway
    from aws_cdk import aws_dynamodb as dynamodb
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_s3 as s3
    from aws_cdk import aws_sns as sns
    from aws_cdk import aws_sqs as sqs
    from aws_cdk import aws_stepfunctions as sfn
    from constructs import Construct

    from duetime.domain.tasks.task_options import Priority
    from duetime_cdk.environments import Environment
    from duetime_cdk.layers.build import Layers


class DuetimeStack(Stack):
    """A complete deployment of duetime in one account and region.

    Its attributes are constructs to which your app can grant access, and which it can monitor and extend.
    """

    duetime_environment: Environment
    """The settings."""
    api: apigateway.HttpApi
    """The REST API."""
    api_url: str
    """The API's address, for a client's `DUETIME_URL`; it has your own domain, if the settings name one."""
    api_domain: apigateway.DomainName | None
    """The API's own domain; `None` without `domain_name`. Point a DNS alias to its `regional_domain_name`."""
    table: dynamodb.ITable
    """The table of tasks."""
    bucket: s3.IBucket
    """Large payloads and results."""
    archive_bucket: s3.Bucket | None
    """The archive of ended tasks; `None` if the settings archive no tasks."""
    queues: Mapping[Priority, sqs.Queue]
    """The queues of due tasks."""
    pulled_queues: Mapping[str, sqs.Queue]
    """The queue of each pulled type."""
    dead_letters: sqs.Queue
    """The queue of messages that the workers could not process."""
    intake_queue: sqs.Queue | None
    """The queue of events that become tasks; `None` without `intake_owner`."""
    functions: Mapping[FunctionName, lambda_.Function]
    """All functions except those in `packages`."""
    packages: Mapping[str, lambda_.Function]
    """The function of each package in `handlers_packages`, by the package's name."""
    worker: lambda_.Function
    """The function that runs your handlers: `bucket.grant_read(stack.worker)`."""
    worker_role: iam.Role
    """The role of `worker`, which no other function has."""
    topologies: sfn.StateMachine
    """The state machine that runs topologies."""
    event_bus: events.IEventBus | None
    """The bus to which events are sent; `None` without the setting `event_bus`."""
    alarm_topic: sns.Topic
    """Receives the alarms: `stack.alarm_topic.add_subscription(…)`."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        handlers: str | Path = "",
        environment: Environment | str = DEV,
        settings: Mapping[str, Any] | None = None,
        layers: Layers | None = None,
        env: AccountAndRegion | None = None,
    ) -> None:
        """Define the stack; Lambda layers are built unless they are passed in.

        Args:
            scope: the app, or a stage of it.
            id_: the name of the stack, which differs between the environments of one account and region.
            handlers: the folder of your handlers, relative to the project (the folder of `cdk.json`); by default the
                folder in the settings.
            environment: the settings, or the name of a preset: `dev`, `staging`, `prod` or `local`.
            settings: values that override settings of the environment.
            layers: built layers.
            env: the account and region, as for other stacks; by default, those of the CDK's current credentials.

        Raises:
            NotDeployable: the settings or the handlers are not deployable.
        """
        named = {"handlers_folder": str(handlers), "handlers_package": ""} if handlers else {}
        environment = with_settings(environment, {**named, **(settings or {})})
        own = handlers_of(environment)
        self.duetime_environment = environment
        self._definition_function: DefinitionFunction | None = None
        super().__init__(scope, id_, env=env, description=f"duetime, a distributed task scheduler ({environment.name})")
        # The local stack uses this metadata to reload handlers; it is not part of the template.
        self.node.add_metadata(METADATA, str(own.package))
        packages = Packages.of(own, environment.handlers_packages)
        if packages.folders:
            self.node.add_metadata(METADATA_OF_PACKAGES, packages.described)
        Tags.of(self).add("project", "duetime")
        Tags.of(self).add("environment", environment.name)
        layers = layers or build(
            environment.target,
            own.package,
            importing=environment.handlers_imported,
            packages=packages,
            report=_report,
        )
        tables = Tables(self, "Tables", environment=environment)
        content = Content(self, "Content", environment=environment)
        queues = Queues(self, "Queues", environment=environment)
        JobEvents(self, "JobEvents", environment=environment, queues=queues)
        versions = self._layers = LayerVersions(self, "Layers", target=environment.target, layers=layers)
        signing = Signing(self, "Signing", environment=environment)
        intake = Intake(self, "Intake", environment=environment) if environment.intake_owner else None
        archive = (
            ArchiveBucket(self, "Archive", environment=environment, replication=content.replication)
            if environment.longest_archive_days
            else None
        )
        stores = Stores(tables, content, queues, signing, intake, archive)
        live = WebSocketApi(self, "Live", environment=environment)
        functions = Functions(
            self, "Functions", environment=environment, layers=versions, stores=stores, live=live, handlers=own
        )
        audit = AuditLog(self, "Audit", environment=environment) if environment.audit_retention else None
        if audit:
            audit.receive_from(functions.api)
        http = HttpApi(self, "HttpApi", environment=environment, function=functions.api.live, content=content)
        if functions.authorizer:
            http.accept_keys(functions.authorizer.live)
        console_url = http.serve_console(functions.console.live) if functions.console else ""
        # The local stack's gateway has a different address than its template says.
        if console_url and environment.name != LOCAL:
            for function in (functions.worker, functions.api):
                function.variables[Variable.CONSOLE_URL] = console_url
        functions.api.variables[Variable.API_URL] = http.url
        functions.complete()
        TriggerSchedule(self, "Tick", function=functions.trigger.live)
        if environment.recounts_summary:
            SummaryRecount(self, "Recount", function=functions.broadcast.live)
        names = MetricNames(self.stack_name, stores=stores, functions=functions, http=http)
        alarms = Alarms(self, "Alarms", environment=environment, names=names, console_url=console_url)
        CanaryDeployment(self, "Canary", environment=environment, functions=functions, alarms=alarms)
        if environment.name != LOCAL:
            Dashboard(self, "Dashboard", environment=environment, names=names)
        if archive:
            ArchiveCatalog(self, "Catalog", bucket=archive.bucket)
        check_limits(self)
        # Printed before every deployment.
        Annotations.of(self).add_info(_needs(environment))
        self._publish(http, stores, functions, alarms)
        self._say(
            {
                "ApiUrl": http.url,
                **({"ApiDomainTarget": http.domain.regional_domain_name} if http.domain else {}),
                "ApiId": http.api.api_id,
                "LiveUrl": live.url,
                "TableName": tables.tasks.table_name,
                "BucketName": content.bucket.bucket_name,
                "DeadLetterQueueUrl": queues.dead_letters.queue_url,
                "AlarmTopicArn": alarms.topic.topic_arn,
                **({"Regions": " ".join(environment.regions)} if environment.regions else {}),
                **({"Epoch": str(environment.epoch)} if environment.regions else {}),
                **(content.replication.outputs if content.replication else {}),
                **({"IntakeQueueUrl": intake.queue.queue_url} if intake else {}),
                **({"IntakeRejectsQueueUrl": intake.rejects.queue_url} if intake else {}),
                **({"ArchiveBucketName": archive.bucket.bucket_name} if archive else {}),
                **({"AuditLogGroupName": audit.group.log_group_name} if audit else {}),
                "SigningSecretArn": signing.secret.secret_arn,
                "TopologyMachineArn": functions.machine.machine.state_machine_arn,
                **{f"QueueUrl{priority.capitalize()}": q.queue_url for priority, q in queues.of_priority.items()},
                **{
                    f"{name.capitalize()}FunctionName": function.function.function_name
                    for name, function in functions.by_name
                },
            }
        )

    def _publish(self, http: HttpApi, stores: Stores, functions: Functions, alarms: Alarms) -> None:
        """Set the attributes for the user's app."""
        self.api, self.api_url, self.api_domain = http.api, http.url, http.domain
        self.table, self.bucket = stores.tables.tasks, stores.content.bucket
        self.queues, self.pulled_queues = stores.queues.of_priority, stores.queues.pulled
        self.dead_letters = stores.queues.dead_letters
        self.intake_queue = stores.intake.queue if stores.intake else None
        self.archive_bucket = stores.archive.bucket if stores.archive else None
        self.functions = {name: each.function for name, each in functions.by_name}
        self.packages = {name: each.function for name, each in functions.packages.items()}
        self.worker = functions.worker.function
        self._live_api = functions.api.live
        self.worker_role = functions.worker.role
        self.topologies = functions.machine.machine
        self.alarm_topic = alarms.topic
        bus = self.duetime_environment.event_bus
        self.event_bus = events.EventBus.from_event_bus_name(self, "EventBus", bus) if bus else None

    @property
    def definition_resources(self) -> lambda_.Function:
        """The function behind `Schedule` and `TopologyDefinition`, added with the first of these constructs."""
        if self._definition_function is None:
            self._definition_function = DefinitionFunction(
                self,
                "Definitions",
                environment=self.duetime_environment,
                layers=self._layers,
                api=self._live_api,
            )
        return self._definition_function.function

    def grant_requests(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a role or function of your app send signed requests to the API (`authentication` is `iam`)."""
        arn = self.api.arn_for_execute_api()
        return iam.Grant.add_to_principal(grantee=grantee, actions=["execute-api:Invoke"], resource_arns=[arn])

    def _say(self, outputs: dict[str, str]) -> None:
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)


def _report(line: str) -> None:
    """Show progress, because the first build of the layers takes minutes, during which the CDK prints nothing."""
    sys.stderr.write(f"duetime: {line}\n")
    sys.stderr.flush()


def _needs(environment: Environment) -> str:
    """The account limits that the stack needs, and how to raise them."""
    reserved = sum(environment.reserved.values())
    says = f"Environment {environment.name!r} is made for an account with {environment.concurrency_needed} concurrent"
    says += " Lambda executions (`aws lambda get-account-settings`)."
    if reserved:
        says += (
            f" It reserves {reserved} of them: with a limit below {reserved + 100} its deploy fails. Have the quota"
            " 'Concurrent executions' of AWS Lambda raised first, or lower `reserved` and `concurrency` in"
            " its settings."
        )
    return says
