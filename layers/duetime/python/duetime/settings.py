"""Reads the environment variables of all functions except the console's.

The CDK constructs set these variables by name, and the composition root reads them through `Settings`. All defaults are
defined in this module.
"""

from __future__ import annotations

import importlib
import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from duetime.domain.callers import Admins, OwnerPatterns, Reservations
from duetime.domain.dispatch.enqueue_plan import Precision
from duetime.domain.redaction import Redaction
from duetime.domain.tasks.pull_leases import Pullers
from duetime.domain.tasks.targets import ArnPatterns
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import DAY, Millis
from duetime.domain.type_settings import PackagedTypes, RetentionPolicy
from duetime.environment_variables import LIVE, QUEUE_VARIABLES, Variable
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.quotas import Quotas
    from duetime.domain.tasks.allowed_targets import HttpSecrets


class Authentication(StrEnum):
    """How the API determines the identity of a caller."""

    IAM = "iam"
    JWT = "jwt"
    NONE = "none"


class SettingMissing(LookupError):
    """A function was deployed without a required variable."""

    def __init__(self, variable: Variable) -> None:
        super().__init__(f"environment variable {variable.value} is not set")


def with_settings_module(environ: Mapping[str, str]) -> Mapping[str, str]:
    """A function's variables, merged with the variables in a layer's module if the function names such a module.

    Raises:
        ImportError: no layer contains the module.
    """
    module = environ.get(Variable.SETTINGS_MODULE, "")
    return {**importlib.import_module(module).VARIABLES, **environ} if module else environ


@frozen
class OptionalText:
    """A setting that is a variable's text, or the empty string if the variable is not set."""

    variable: Variable

    def __get__(self, settings: Settings, _: type[Settings]) -> str:
        """Read the variable."""
        return settings.environ.get(self.variable, "")


@frozen
class Settings:
    """The settings of one function, from the environment that is read once at start."""

    environ: Mapping[str, str]

    @property
    def table(self) -> str:
        """Name of the tasks table."""
        return self._required(Variable.TABLE)

    @property
    def bucket(self) -> str:
        """Name of the content bucket."""
        return self._required(Variable.BUCKET)

    @property
    def queue_urls(self) -> dict[Priority, str]:
        """URL of each priority's queue."""
        return {priority: self._required(variable) for priority, variable in QUEUE_VARIABLES.items()}

    @property
    def shards(self) -> int:
        """S, the number of shards over which new tasks are spread."""
        return int(self.environ.get(Variable.SHARDS, "16"))

    @property
    def epoch(self) -> int:
        """The epoch of fences, which is the number of times that the table was restored."""
        return int(self.environ.get(Variable.EPOCH, "0"))

    @property
    def regions(self) -> tuple[str, ...]:
        """The deployment's Regions, beginning with the Region that created the table; empty if there is only one."""
        return tuple(self.environ.get(Variable.REGIONS, "").split())

    @property
    def cursors_of(self) -> str:
        """The Region in the keys of the trigger's cursors; empty for the first Region.

        Each Region then has separate cursors, which replication does not overwrite.
        """
        return "" if self.region in self.regions[:1] or not self.regions else self.region

    @property
    def look_ahead_ms(self) -> int:
        """How far ahead of the clock the trigger reads, in milliseconds."""
        return int(float(self.environ.get(Variable.LOOK_AHEAD_SECONDS, "180")) * 1000)

    @property
    def precision(self) -> Precision:
        """How the wait for the due time is split between the queue and the worker."""
        return Precision(self.environ.get(Variable.PRECISION, Precision.NORMAL))

    @property
    def lease_ms(self) -> int:
        """Duration of a worker's lease, in milliseconds."""
        return int(float(self.environ.get(Variable.LEASE_SECONDS, "30")) * 1000)

    @property
    def retention(self) -> RetentionPolicy:
        """How long an ended task is kept, by task type."""
        return self._retention(Variable.RETENTION_DAYS, "30", Variable.RETENTION_DAYS_BY_TYPE)

    @property
    def archive_retention(self) -> RetentionPolicy:
        """How long the archive keeps a task after TTL removes it from the table; 0 for types that are not archived."""
        return self._retention(Variable.ARCHIVE_DAYS, "400", Variable.ARCHIVE_DAYS_BY_TYPE)

    def _retention(self, days: Variable, default: str, days_by_type: Variable) -> RetentionPolicy:
        by_pattern = json.loads(self.environ.get(days_by_type) or "{}")
        return RetentionPolicy(
            _days(self.environ.get(days, default)), {pattern: _days(each) for pattern, each in by_pattern.items()}
        )

    redact = OptionalText(Variable.REDACT)
    """The redacted parts of payloads and results, as JSON."""

    @property
    def redaction(self) -> Redaction:
        """The parts of payloads and results that are hidden from readers and the archive."""
        return Redaction(json.loads(self.redact or "{}"))

    @property
    def keeps_tracebacks(self) -> bool:
        """Whether the traceback of a task's last failed attempt is stored."""
        return self.environ.get(Variable.TRACEBACKS, "keep") == "keep"

    @property
    def authentication(self) -> Authentication:
        """How the API determines the identity of a caller."""
        return Authentication(self._required(Variable.AUTHENTICATION))

    @property
    def operators(self) -> Admins:
        """Identities that may act for all owners."""
        return Admins(frozenset(self.environ.get(Variable.OPERATORS, "").split()))

    @property
    def admins(self) -> Admins:
        """Identities that may do everything."""
        return Admins(frozenset(self.environ.get(Variable.ADMINS, "").split()))

    @property
    def accepts_api_keys(self) -> bool:
        """Whether requests may be authorized by API keys."""
        return self.environ.get(Variable.API_KEYS, "") == "on"

    @property
    def teams(self) -> Mapping[str, Sequence[str]]:
        """The identities that may act for an owner, by owner."""
        configured: dict[str, list[str]] = json.loads(self.environ.get(Variable.TEAMS, "") or "{}")
        return configured

    teams_claim = OptionalText(Variable.TEAMS_CLAIM)
    """The token claim that lists the owners for which the caller may act."""
    handlers = OptionalText(Variable.HANDLERS)
    """Import name of the user's handler package."""
    handler_types = OptionalText(Variable.HANDLER_TYPES)
    """Import name of the module that lists the types with a handler."""
    egress_function = OptionalText(Variable.EGRESS_FUNCTION)
    """Name of the function that makes HTTP calls."""
    api_function = OptionalText(Variable.API_FUNCTION)
    """Name of the API function, which the clients of handlers invoke."""
    attempts_function = OptionalText(Variable.ATTEMPTS_FUNCTION)
    """Name of the function to which handler packages report."""

    @property
    def packaged_types(self) -> PackagedTypes:
        """The functions that run handler packages, by task type."""
        return PackagedTypes(json.loads(self.environ.get(Variable.HANDLER_PACKAGES, "") or "{}"))

    bulk_function = OptionalText(Variable.BULK_FUNCTION)
    """Name of the function that runs bulk operations."""
    signing_secret = OptionalText(Variable.SIGNING_SECRET)
    """Name or ARN of the secret for signing HTTP calls."""

    @property
    def http_allow(self) -> frozenset[str]:
        """Non-public hosts that HTTP targets may reach."""
        return frozenset(host for host in self.environ.get(Variable.HTTP_ALLOW, "").split(",") if host)

    @property
    def http_secrets(self) -> HttpSecrets:
        """The secrets that HTTP calls may use."""
        # Half of the functions have no targets, so the module is imported only if needed.
        from duetime.domain.tasks.allowed_targets import HttpSecret, HttpSecrets  # noqa: PLC0415 - see the line above

        configured: dict[str, dict[str, Any]] = json.loads(self.environ.get(Variable.HTTP_SECRETS, "") or "{}")
        return HttpSecrets(
            {
                name: HttpSecret(one["arn"], tuple(one["hosts"]), tuple(one.get("owners", ())))
                for name, one in configured.items()
            }
        )

    @property
    def callable_arns(self) -> ArnPatterns:
        """The AWS resources that tasks may call."""
        return ArnPatterns(tuple(self.environ.get(Variable.AWS_TARGETS, "").split()))

    @property
    def type_owners(self) -> Reservations:
        """The task types that are reserved for some owners."""
        return Reservations(self._owners(Variable.TYPE_OWNERS))

    @property
    def target_owners(self) -> Reservations:
        """The AWS resources that are reserved for some owners."""
        return Reservations(self._owners(Variable.TARGET_OWNERS))

    @property
    def intake_owner(self) -> str:
        """Owner of the tasks that are created from events."""
        return self._required(Variable.INTAKE_OWNER)

    @property
    def has_intake(self) -> bool:
        """Whether tasks are created from events."""
        return bool(self.environ.get(Variable.INTAKE_OWNER))

    @property
    def intake_detail_type(self) -> str:
        """Detail type of events that contain tasks."""
        return self.environ.get(Variable.INTAKE_DETAIL_TYPE, "duetime task")

    @property
    def intake_queues(self) -> frozenset[str]:
        """ARNs of queues whose messages are events for intake rules."""
        return frozenset(self.environ.get(Variable.INTAKE_QUEUES, "").split())

    @property
    def intake_rejects(self) -> str:
        """URL of the queue for events that cannot become tasks."""
        return self._required(Variable.INTAKE_REJECTS)

    @property
    def pulled_queue_urls(self) -> dict[str, str]:
        """URL of each pulled type's queue."""
        configured: dict[str, str] = json.loads(self.environ.get(Variable.PULLED_QUEUES, "") or "{}")
        if all("/" in each for each in configured.values()):
            return configured
        # The URLs of a deployment's queues differ only in the queue names.
        beside, _, _ = self._required(QUEUE_VARIABLES[Priority.NORMAL]).rpartition("/")
        return {task_type: each if "/" in each else f"{beside}/{each}" for task_type, each in configured.items()}

    @property
    def pullers(self) -> Pullers:
        """The identities that may pull each type."""
        return Pullers(self._owners(Variable.PULLERS))

    @property
    def long_polls(self) -> int:
        """Maximum number of requests that may wait at the same time; 0 for no limit."""
        return int(self.environ.get(Variable.LONG_POLLS, "0"))

    @property
    def has_quotas(self) -> bool:
        """Whether the deployment has quotas."""
        return bool(self.environ.get(Variable.QUOTAS, ""))

    @property
    def quotas(self) -> Quotas | None:
        """The owners' default quotas; `None` if the deployment has no quotas."""
        if not (configured := self.environ.get(Variable.QUOTAS, "")):
            return None
        # Most deployments have one owner and no quotas, so the module is imported only if needed.
        from duetime.domain.quotas import Quotas  # noqa: PLC0415 - see the line above

        return Quotas(**json.loads(configured))

    @property
    def requests_per_second(self) -> int:
        """The gateway's steady-state rate limit for all callers together, in requests per second; 0 if unknown."""
        return int(self.environ.get(Variable.REQUESTS_PER_SECOND, "0"))

    @property
    def summary_spread(self) -> int:
        """Number of parts into which each owner's task counts are split; 0 if counting is off."""
        return int(self.environ.get(Variable.SUMMARY_SPREAD, "0"))

    @property
    def summary_recount_megabytes(self) -> int:
        """Maximum megabytes of the table that each run of a recount reads; 0 if recounts are off."""
        return int(self.environ.get(Variable.SUMMARY_RECOUNT_MEGABYTES, "0"))

    @property
    def task_lists(self) -> int:
        """Generation of the task lists by state, type, name and tag.

        A different number rebuilds them; 0 turns them off.
        """
        return int(self.environ.get(Variable.TASK_LISTS, "0"))

    audit_log_group = OptionalText(Variable.AUDIT_LOG_GROUP)
    """Name of the log group for the audit log."""
    archive_bucket = OptionalText(Variable.ARCHIVE_BUCKET)
    """Name of the bucket for the archive of ended tasks."""
    event_bus = OptionalText(Variable.EVENT_BUS)
    """Name of the event bus for changes."""
    topology_machine = OptionalText(Variable.TOPOLOGY_MACHINE)
    """ARN of the state machine that runs topologies."""
    api_url = OptionalText(Variable.API_URL)
    """Address of the REST API in the links that the API creates."""
    console_url = OptionalText(Variable.CONSOLE_URL)
    """Address of the console for links in notices and log lines."""

    @property
    def watch_url(self) -> str:
        """URL of the WebSocket API, to which clients connect."""
        return self._required(Variable.WATCH_URL)

    @property
    def watch_endpoint(self) -> str:
        """Endpoint for messages to WebSocket connections, which is the URL of the WebSocket API with an HTTP scheme."""
        return f"http{self.watch_url.removeprefix('ws')}"

    @property
    def worker_logs(self) -> tuple[str, str, str]:
        """The stack, Region and log group of the workers. Each string is empty if unknown."""
        log_group = self.environ.get(Variable.WORKER_LOGS, "")
        return self.environ.get(Variable.STACK, ""), self.region if log_group else "", log_group

    @property
    def service_name(self) -> str:
        """The service name in log lines and metrics."""
        return self.environ.get(Variable.SERVICE_NAME, "") or "duetime"

    @property
    def metrics_namespace(self) -> str:
        """The CloudWatch namespace of the metrics."""
        return self.environ.get(Variable.METRICS_NAMESPACE, "") or "duetime"

    traces = OptionalText(Variable.TRACES)
    """`xray` if AWS X-Ray traces the functions; otherwise empty."""
    function_name = OptionalText(Variable.FUNCTION_NAME)
    """The name of this Lambda function; empty outside Lambda."""
    function_version = OptionalText(Variable.FUNCTION_VERSION)
    """The version of this Lambda function; empty outside Lambda."""

    @property
    def executed(self) -> str:
        """The name and version of this Lambda function, as `name:version`; empty outside Lambda."""
        return f"{self.function_name}:{self.function_version}" if self.function_version else ""

    @property
    def invoked_as(self) -> str:
        """The name with which this Lambda function can invoke itself.

        If a published version runs, the name includes the alias.
        """
        return f"{self.function_name}:{LIVE}" if self.function_version.isdecimal() else self.function_name

    region = OptionalText(Variable.REGION)
    """The Region in which the function runs."""
    canary = OptionalText(Variable.CANARY)
    """`on` if attempts that call handlers have metrics by version; otherwise empty."""
    heartbeat_url = OptionalText(Variable.HEARTBEAT_URL)
    """URL of an external monitor."""

    @property
    def exports_spans(self) -> bool:
        """Whether spans are exported. OpenTelemetry itself reads the endpoint."""
        return bool(self.environ.get(Variable.OTLP_ENDPOINT, ""))

    @property
    def metric_values(self) -> dict[str, frozenset[str]]:
        """The values that have separate metrics, by dimension, for dimensions with arbitrary values."""
        variables = {"owner": Variable.METRIC_OWNERS, "type": Variable.METRIC_TYPES}
        return {name: frozenset(self.environ.get(variable, "").split()) for name, variable in variables.items()}

    def _owners(self, variable: Variable) -> dict[str, OwnerPatterns]:
        """The owner patterns in a variable's JSON object, by the object's names."""
        configured: dict[str, list[str]] = json.loads(self.environ.get(variable, "") or "{}")
        return {name: OwnerPatterns(tuple(owners)) for name, owners in configured.items()}

    def _required(self, variable: Variable) -> str:
        value = self.environ.get(variable, "")
        if not value:
            raise SettingMissing(variable)
        return value


def _days(text: str | float) -> Millis:
    return int(float(text) * DAY)
