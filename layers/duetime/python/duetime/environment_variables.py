"""Names the functions' environment variables, which the stack sets and the settings read."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.tasks.task_options import Priority

if TYPE_CHECKING:
    from collections.abc import Mapping


LIVE = "live"
"""Alias with which each deployed function is invoked. On the local stack, functions have neither versions nor
aliases."""


class Variable(StrEnum):
    """Names of the environment variables that a deployed function may have."""

    TABLE = "DUETIME_TABLE"
    """Name of the tasks table."""
    BUCKET = "DUETIME_BUCKET"
    """Name of the bucket for payloads and results that are too large for an item."""
    QUEUE_HIGH = "DUETIME_QUEUE_HIGH"
    """URL of the queue for priority `high`."""
    QUEUE_NORMAL = "DUETIME_QUEUE_NORMAL"
    """URL of the queue for priority `normal`."""
    QUEUE_LOW = "DUETIME_QUEUE_LOW"
    """URL of the queue for priority `low`."""
    SHARDS = "DUETIME_SHARDS"
    """S, the number of shards over which new tasks are spread (1 to 65536)."""
    EPOCH = "DUETIME_EPOCH"
    """Number of times that the table was restored, which forms the high digits of new fences."""
    REGIONS = "DUETIME_REGIONS"
    """The deployment's two Regions, separated by a space, beginning with the Region that created the table; empty for a
    deployment in one Region."""
    LOOK_AHEAD_SECONDS = "DUETIME_LOOK_AHEAD_SECONDS"
    """How far ahead of the clock the trigger reads, in seconds."""
    PRECISION = "DUETIME_PRECISION"
    """`normal`, `exact` or `relaxed`, as in `duetime.domain.dispatch.enqueue_plan.Precision`."""
    LEASE_SECONDS = "DUETIME_LEASE_SECONDS"
    """Duration of a worker's lease, in seconds. The lease is renewed after each third of its duration."""
    RETENTION_DAYS = "DUETIME_RETENTION_DAYS"
    """Number of days for which an ended task is kept before its record expires."""
    RETENTION_DAYS_BY_TYPE = "DUETIME_RETENTION_DAYS_BY_TYPE"
    """JSON object: retention in days for some types, by type pattern. The first matching pattern applies."""
    TRACEBACKS = "DUETIME_TRACEBACKS"
    """`keep` to store the traceback of a task's last failed attempt, or `log` to only log the traceback."""
    AUTHENTICATION = "DUETIME_AUTHENTICATION"
    """How the API determines the owner: `iam`, `jwt` or `none` (local stack only)."""
    REDACT = "DUETIME_REDACT"
    """JSON object: the parts of payloads and results that are hidden from readers and the archive, by type pattern;
    empty to hide nothing."""
    AUDIT_LOG_GROUP = "DUETIME_AUDIT_LOG_GROUP"
    """Name of the log group for the audit log; empty if there is no audit log."""
    OPERATORS = "DUETIME_OPERATORS"
    """Space-separated identities that may act for all owners; `*` allows everyone."""
    ADMINS = "DUETIME_ADMINS"
    """Space-separated identities that may do everything; `*` allows everyone."""
    API_KEYS = "DUETIME_API_KEYS"
    """`on` if requests may be authorized by API keys."""
    TEAMS = "DUETIME_TEAMS"
    """JSON object: the identities that may act for an owner, by owner; empty if there are none."""
    TEAMS_CLAIM = "DUETIME_TEAMS_CLAIM"
    """The token claim that lists the owners for which the caller may act; empty if there is no such claim."""
    HANDLERS = "DUETIME_HANDLERS"
    """Import name of the user's package with Python handlers; empty if there is no package."""
    HANDLER_TYPES = "DUETIME_HANDLER_TYPES"
    """Import name of the module that lists the types with a handler; empty if these types are unknown."""
    HANDLER_PACKAGES = "DUETIME_HANDLER_PACKAGES"
    """JSON object: the functions that run handler packages, by type pattern; empty if there are none."""
    HANDLER_SECRETS = "DUETIME_HANDLER_SECRETS"
    """JSON object: the source of each handler secret, by name. A source is a secret in Secrets Manager, or `ssm:` and a
    parameter."""
    EGRESS_FUNCTION = "DUETIME_EGRESS_FUNCTION"
    """Name of the function that makes HTTP calls; empty to make HTTP calls in the calling function."""
    API_FUNCTION = "DUETIME_API_FUNCTION"
    """Name of the API function, which the `context.client` of handlers invokes; empty in functions that do not need
    it."""
    ATTEMPTS_FUNCTION = "DUETIME_ATTEMPTS_FUNCTION"
    """Name of the function to which handler packages report; empty in other functions."""
    BULK_FUNCTION = "DUETIME_BULK_FUNCTION"
    """Name of the function that runs bulk operations; empty if only the trigger's timers start bulk operations."""
    SIGNING_SECRET = "DUETIME_SIGNING_SECRET"  # noqa: S105 - a variable's name
    """Name or ARN of the secret for signing HTTP calls; empty to send calls without signatures."""
    HTTP_ALLOW = "DUETIME_HTTP_ALLOW"
    """Comma-separated list of non-public hosts that HTTP calls may reach, such as `127.0.0.1`."""
    HTTP_SECRETS = "DUETIME_HTTP_SECRETS"
    """JSON object: the ARN, hosts and owners of each secret that HTTP calls may use, by the secret's name."""
    AWS_TARGETS = "DUETIME_AWS_TARGETS"
    """Space-separated ARN patterns of the AWS resources that tasks may call; empty if tasks may call no resources."""
    TYPE_OWNERS = "DUETIME_TYPE_OWNERS"
    """JSON object: patterns of the owners that may create tasks of a type, by type pattern; empty to allow all."""
    TARGET_OWNERS = "DUETIME_TARGET_OWNERS"
    """JSON object: patterns of the owners whose tasks may call AWS resources, by ARN pattern; empty to allow all."""
    INTAKE_DETAIL_TYPE = "DUETIME_INTAKE_DETAIL_TYPE"
    """Detail type of events that contain tasks. Other events are for intake rules."""
    INTAKE_QUEUES = "DUETIME_INTAKE_QUEUES"
    """Space-separated ARNs of the queues whose messages are events for intake rules."""
    INTAKE_OWNER = "DUETIME_INTAKE_OWNER"
    """Owner of the tasks that are created from events."""
    INTAKE_REJECTS = "DUETIME_INTAKE_REJECTS"
    """URL of the queue for events that cannot become tasks."""
    SETTINGS_MODULE = "DUETIME_SETTINGS_MODULE"
    """Import name of a layer's module with `VARIABLES` that are too large for Lambda; empty if there is no such
    module."""
    PULLED_QUEUES = "DUETIME_PULLED_QUEUES"
    """JSON object: the name or URL of each pulled type's queue. A name refers to a queue in the same account and Region
    as the queues above."""
    PULLERS = "DUETIME_PULLERS"
    """JSON object: a list of the identities that may pull each pulled type, in the form of owners; `*` allows any
    caller."""
    LONG_POLLS = "DUETIME_LONG_POLLS"
    """Maximum number of API requests that may wait at the same time; 0 for no limit."""
    QUOTAS = "DUETIME_QUOTAS"
    """JSON object: the owners' default quotas, by the quota's name; empty if there are no quotas."""
    REQUESTS_PER_SECOND = "DUETIME_REQUESTS_PER_SECOND"
    """The gateway's steady-state rate limit for all callers together, in requests per second, which responses show; 0
    if unknown."""
    SUMMARY_SPREAD = "DUETIME_SUMMARY_SPREAD"
    """Number of parts into which each owner's task counts are split; 0 turns counting off."""
    SUMMARY_RECOUNT_MEGABYTES = "DUETIME_SUMMARY_RECOUNT_MEGABYTES"
    """Maximum megabytes of the table that each run of a recount reads to count older tasks; 0 turns recounts off."""
    TASK_LISTS = "DUETIME_TASK_LISTS"
    """Generation of the task lists by state, type, name and tag. A different number rebuilds the lists; 0 turns them
    off."""
    ARCHIVE_DAYS = "DUETIME_ARCHIVE_DAYS"
    """Number of days for which the archive keeps ended tasks."""
    ARCHIVE_DAYS_BY_TYPE = "DUETIME_ARCHIVE_DAYS_BY_TYPE"
    """JSON object: the number of days for which the archive keeps ended tasks of some types, by type pattern."""
    ARCHIVE_BUCKET = "DUETIME_ARCHIVE_BUCKET"
    """Name of the bucket for the archive of ended tasks; empty if there is no archive."""
    EVENT_BUS = "DUETIME_EVENT_BUS"
    """Name of the event bus for changes; empty if there is no event bus."""
    TOPOLOGY_MACHINE = "DUETIME_TOPOLOGY_MACHINE"
    """ARN of the state machine that runs topologies; empty in functions that do not start topologies."""
    HEARTBEAT_URL = "DUETIME_HEARTBEAT_URL"
    """URL of an external monitor that is fetched after each successful tick; empty if there is no monitor."""
    CANARY = "DUETIME_CANARY"
    """`on` if attempts that call handlers have metrics by version; otherwise empty."""
    METRIC_OWNERS = "DUETIME_METRIC_OWNERS"
    """Space-separated list of the owners that have separate metrics for failed tasks."""
    METRIC_TYPES = "DUETIME_METRIC_TYPES"
    """Space-separated list of the task types that have separate metrics for lateness, duration and expiry."""
    WATCH_URL = "DUETIME_WATCH_URL"
    """URL of the WebSocket API, to which clients connect."""
    API_URL = "DUETIME_API_URL"
    """Address of the REST API in the links that the API creates; empty if unknown."""
    CONSOLE_URL = "DUETIME_CONSOLE_URL"
    """Address of the console for links in notices and log lines; empty to leave out these links."""
    SIGN_IN = "DUETIME_SIGN_IN"
    """JSON object: the settings for sign-in to the console (`issuer`, `client_id`, `audience`, `origins`); empty if
    there is no sign-in."""
    CODEC_ENDPOINT = "DUETIME_CODEC_ENDPOINT"
    """Address of the endpoint with which the console decrypts payloads; empty if there is no endpoint."""
    UPLOAD_URL = "DUETIME_UPLOAD_URL"
    """Prefix of the addresses to which the console uploads payloads."""
    STACK = "DUETIME_STACK"
    """Name of the CloudFormation stack, for the command `duetime logs`."""
    WORKER_LOGS = "DUETIME_WORKER_LOGS"
    """CloudWatch log group of the worker function; empty on the local stack, which has no CloudWatch console."""
    TRACES = "DUETIME_TRACES"
    """`xray` if AWS X-Ray traces the functions, so that cost estimates include traces; otherwise empty."""
    FUNCTION_NAME = "AWS_LAMBDA_FUNCTION_NAME"
    """Set by Lambda: the name of the running function."""
    FUNCTION_VERSION = "AWS_LAMBDA_FUNCTION_VERSION"
    """Set by Lambda: the version of the running function."""
    REGION = "AWS_REGION"
    """Set by Lambda: the Region in which the function runs."""
    OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
    """Read by OpenTelemetry: the URL to which spans are exported with OTLP over HTTP; empty to export no spans."""
    SERVICE_NAME = "POWERTOOLS_SERVICE_NAME"
    """Read by Powertools: the service name in log lines."""
    METRICS_NAMESPACE = "POWERTOOLS_METRICS_NAMESPACE"
    """Read by Powertools: the CloudWatch namespace of the metrics."""
    LOG_LEVEL = "POWERTOOLS_LOG_LEVEL"
    """Read by Powertools: the lowest level that is logged."""
    PYDANTIC_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
    """Read by pydantic: `__all__` prevents pydantic from searching all installed packages for plugins at its first
    model."""


TABLES = frozenset(
    {
        Variable.PULLED_QUEUES,
        Variable.PULLERS,
        Variable.AWS_TARGETS,
        Variable.TYPE_OWNERS,
        Variable.TARGET_OWNERS,
        Variable.HTTP_ALLOW,
        Variable.HTTP_SECRETS,
        Variable.HANDLER_SECRETS,
        Variable.OPERATORS,
        Variable.ADMINS,
        Variable.TEAMS,
        Variable.METRIC_OWNERS,
        Variable.METRIC_TYPES,
        Variable.SIGN_IN,
    }
)
"""Variables whose length depends on users' settings. A layer's module may contain these variables."""
QUEUE_VARIABLES: Mapping[Priority, Variable] = {
    Priority.HIGH: Variable.QUEUE_HIGH,
    Priority.NORMAL: Variable.QUEUE_NORMAL,
    Priority.LOW: Variable.QUEUE_LOW,
}
