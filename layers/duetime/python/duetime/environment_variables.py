"""The environment variables of the functions: set by the stack, and read by the settings."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.tasks.task_options import Priority

if TYPE_CHECKING:
    from collections.abc import Mapping


LIVE = "live"
"""Alias by which each deployed function is invoked; on the local stack, functions have neither versions nor aliases."""


class Variable(StrEnum):
    """Names of the environment variables that a deployed function may have."""

    TABLE = "DUETIME_TABLE"
    """Name of the tasks table."""
    BUCKET = "DUETIME_BUCKET"
    """Name of the bucket for payloads and results too large for an item."""
    QUEUE_HIGH = "DUETIME_QUEUE_HIGH"
    """URL of the queue of priority `high`."""
    QUEUE_NORMAL = "DUETIME_QUEUE_NORMAL"
    """URL of the queue of priority `normal`."""
    QUEUE_LOW = "DUETIME_QUEUE_LOW"
    """URL of the queue of priority `low`."""
    SHARDS = "DUETIME_SHARDS"
    """S, the number of shards that new tasks are spread over (1 to 65536)."""
    EPOCH = "DUETIME_EPOCH"
    """How often the table was restored, which gives the high digits of new fences."""
    REGIONS = "DUETIME_REGIONS"
    """The two Regions of the deployment, separated by a space, beginning with the Region that created the table; empty
    for a deployment in one Region."""
    LOOK_AHEAD_SECONDS = "DUETIME_LOOK_AHEAD_SECONDS"
    """How far ahead of the clock the trigger reads, in seconds."""
    PRECISION = "DUETIME_PRECISION"
    """`normal`, `exact` or `relaxed`: see `duetime.domain.dispatch.enqueue_plan.Precision`."""
    LEASE_SECONDS = "DUETIME_LEASE_SECONDS"
    """Duration of a worker's lease in seconds; the lease is renewed after each third of its duration."""
    RETENTION_DAYS = "DUETIME_RETENTION_DAYS"
    """How long a finished task is kept before its record expires."""
    RETENTION_DAYS_BY_TYPE = "DUETIME_RETENTION_DAYS_BY_TYPE"
    """Retention for some types: a JSON object with days by type patterns, of which the first that matches counts."""
    TRACEBACKS = "DUETIME_TRACEBACKS"
    """`keep` to store the traceback of a task's last failed attempt, `log` to log it only."""
    AUTHENTICATION = "DUETIME_AUTHENTICATION"
    """`iam`, `jwt` or `none` (local stack only): how the API determines the owner."""
    REDACT = "DUETIME_REDACT"
    """JSON object: the parts of payloads and results that readers and the archive do not get, by patterns of types;
    empty for none."""
    AUDIT_LOG_GROUP = "DUETIME_AUDIT_LOG_GROUP"
    """Name of the log group for the audit log; empty for none."""
    OPERATORS = "DUETIME_OPERATORS"
    """Identities, separated by spaces, that may act for all owners; `*` for everybody."""
    ADMINS = "DUETIME_ADMINS"
    """Identities, separated by spaces, that may do everything; `*` for everybody."""
    API_KEYS = "DUETIME_API_KEYS"
    """`on` if requests may be authorized by API keys."""
    TEAMS = "DUETIME_TEAMS"
    """JSON object: the identities that may act for an owner, by owner; empty for none."""
    TEAMS_CLAIM = "DUETIME_TEAMS_CLAIM"
    """The claim of a token that lists the owners that its caller may act for; empty for none."""
    HANDLERS = "DUETIME_HANDLERS"
    """Import name of the user's package of Python handlers; empty for none."""
    HANDLER_TYPES = "DUETIME_HANDLER_TYPES"
    """Import name of the module that lists the types with a handler; empty if they are unknown."""
    HANDLER_PACKAGES = "DUETIME_HANDLER_PACKAGES"
    """JSON object: the functions that run packages of handlers, by patterns of types; empty for none."""
    HANDLER_SECRETS = "DUETIME_HANDLER_SECRETS"
    """JSON object: the source of each handler secret, by name: a secret in Secrets Manager, or `ssm:` and a
    parameter."""
    EGRESS_FUNCTION = "DUETIME_EGRESS_FUNCTION"
    """Name of the function that makes HTTP calls; empty to make them in the calling function."""
    API_FUNCTION = "DUETIME_API_FUNCTION"
    """Name of the API function, which `context.client` of handlers invokes; empty in functions that need none."""
    ATTEMPTS_FUNCTION = "DUETIME_ATTEMPTS_FUNCTION"
    """Name of the function that packages of handlers report to; empty in other functions."""
    BULK_FUNCTION = "DUETIME_BULK_FUNCTION"
    """Name of the function that runs bulk operations; empty if only the trigger's timers start them."""
    SIGNING_SECRET = "DUETIME_SIGNING_SECRET"  # noqa: S105 - a variable's name
    """Name or ARN of the secret that HTTP calls are signed with; empty to send them unsigned."""
    HTTP_ALLOW = "DUETIME_HTTP_ALLOW"
    """Comma-separated non-public hosts (`127.0.0.1`) that HTTP calls may reach."""
    HTTP_SECRETS = "DUETIME_HTTP_SECRETS"
    """JSON object: ARN, hosts and owners of each secret that HTTP calls may use, by its name."""
    AWS_TARGETS = "DUETIME_AWS_TARGETS"
    """ARN patterns, separated by spaces, of the AWS resources that tasks may call; empty for none."""
    TYPE_OWNERS = "DUETIME_TYPE_OWNERS"
    """JSON object: patterns of the owners who may create tasks of types, by patterns of types; empty for all."""
    TARGET_OWNERS = "DUETIME_TARGET_OWNERS"
    """JSON object: patterns of the owners whose tasks may call AWS resources, by patterns of ARNs; empty for all."""
    INTAKE_DETAIL_TYPE = "DUETIME_INTAKE_DETAIL_TYPE"
    """Detail type of events that are tasks; other events are for intake rules."""
    INTAKE_QUEUES = "DUETIME_INTAKE_QUEUES"
    """ARNs of queues whose messages are events for intake rules, separated by spaces."""
    INTAKE_OWNER = "DUETIME_INTAKE_OWNER"
    """Owner of the tasks that are created from events."""
    INTAKE_REJECTS = "DUETIME_INTAKE_REJECTS"
    """URL of the queue for events that cannot become a task."""
    SETTINGS_MODULE = "DUETIME_SETTINGS_MODULE"
    """Import name of a layer's module with `VARIABLES` that are too large for Lambda; empty for none."""
    PULLED_QUEUES = "DUETIME_PULLED_QUEUES"
    """JSON object: the name or URL of each pulled type's queue; a name stands for a queue in the account and Region of
    the queues above."""
    PULLERS = "DUETIME_PULLERS"
    """JSON object: the identities that may pull each pulled type, as a list in the form of owners; `*` means any
    caller."""
    LONG_POLLS = "DUETIME_LONG_POLLS"
    """How many API requests may wait at the same time; 0 for any number."""
    QUOTAS = "DUETIME_QUOTAS"
    """JSON object: the default quotas of owners, by name; empty if there are no quotas."""
    REQUESTS_PER_SECOND = "DUETIME_REQUESTS_PER_SECOND"
    """The gateway's steady rate limit for all callers together, shown in responses; 0 if unknown."""
    SUMMARY_SPREAD = "DUETIME_SUMMARY_SPREAD"
    """Number of parts that each owner's counts of tasks are split into; 0 turns counting off."""
    SUMMARY_RECOUNT_MEGABYTES = "DUETIME_SUMMARY_RECOUNT_MEGABYTES"
    """Megabytes of the table to read at a time for counting older tasks; 0 turns recounts off."""
    TASK_LISTS = "DUETIME_TASK_LISTS"
    """Number of the lists of tasks by state, type, name and tag; 0 if they are off."""
    ARCHIVE_DAYS = "DUETIME_ARCHIVE_DAYS"
    """For how many days the archive keeps ended tasks."""
    ARCHIVE_DAYS_BY_TYPE = "DUETIME_ARCHIVE_DAYS_BY_TYPE"
    """For how many days the archive keeps ended tasks of some types, by patterns of types, as JSON."""
    ARCHIVE_BUCKET = "DUETIME_ARCHIVE_BUCKET"
    """Name of the bucket for the archive of ended tasks; empty for none."""
    EVENT_BUS = "DUETIME_EVENT_BUS"
    """Name of the event bus for changes; empty for none."""
    TOPOLOGY_MACHINE = "DUETIME_TOPOLOGY_MACHINE"
    """ARN of the state machine that runs topologies; empty in functions that start none."""
    HEARTBEAT_URL = "DUETIME_HEARTBEAT_URL"
    """URL of an external monitor that is fetched after each successful tick; empty for none."""
    CANARY = "DUETIME_CANARY"
    """`on` if attempts that call handlers have metrics by version; otherwise empty."""
    METRIC_OWNERS = "DUETIME_METRIC_OWNERS"
    """Owners, separated by spaces, with separate metrics of their tasks' failures."""
    METRIC_TYPES = "DUETIME_METRIC_TYPES"
    """Types of tasks, separated by spaces, with separate metrics of lateness and duration."""
    WATCH_URL = "DUETIME_WATCH_URL"
    """URL of the WebSocket API, which clients connect to."""
    API_URL = "DUETIME_API_URL"
    """Address of the REST API, for the links that it creates; empty if unknown."""
    CONSOLE_URL = "DUETIME_CONSOLE_URL"
    """Address of the console for links in notices and log lines; empty for none."""
    SIGN_IN = "DUETIME_SIGN_IN"
    """JSON object: sign-in to the console (`issuer`, `client_id`, `audience`, `origins`); empty for none."""
    CODEC_ENDPOINT = "DUETIME_CODEC_ENDPOINT"
    """Address of the endpoint with which the console decrypts payloads; empty for none."""
    UPLOAD_URL = "DUETIME_UPLOAD_URL"
    """Beginning of the addresses to which the console uploads payloads."""
    STACK = "DUETIME_STACK"
    """Name of the CloudFormation stack, for the command `duetime logs`."""
    WORKER_LOGS = "DUETIME_WORKER_LOGS"
    """CloudWatch log group of the worker function; empty on the local stack, which has no CloudWatch console."""
    TRACES = "DUETIME_TRACES"
    """`xray` if AWS X-Ray traces the functions, which cost estimates include; otherwise empty."""
    FUNCTION_NAME = "AWS_LAMBDA_FUNCTION_NAME"
    """Lambda: the name of the function that runs."""
    FUNCTION_VERSION = "AWS_LAMBDA_FUNCTION_VERSION"
    """Lambda: the version of the function that runs."""
    REGION = "AWS_REGION"
    """Lambda: the region that the function runs in."""
    OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
    """OpenTelemetry: URL for the export of spans with OTLP over HTTP; empty for no spans."""
    SERVICE_NAME = "POWERTOOLS_SERVICE_NAME"
    """Powertools: the service of a log line."""
    METRICS_NAMESPACE = "POWERTOOLS_METRICS_NAMESPACE"
    """Powertools: the CloudWatch namespace of the metrics."""
    LOG_LEVEL = "POWERTOOLS_LOG_LEVEL"
    """Powertools: the least severe level that is logged."""
    PYDANTIC_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
    """pydantic: `__all__`, so that pydantic does not search all installed packages for plugins at its first model."""


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
"""Variables whose length users determine, which a layer's module may contain."""
QUEUE_VARIABLES: Mapping[Priority, Variable] = {
    Priority.HIGH: Variable.QUEUE_HIGH,
    Priority.NORMAL: Variable.QUEUE_NORMAL,
    Priority.LOW: Variable.QUEUE_LOW,
}
