"""The environment variables of the functions: what the stack sets, and what the settings read."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.tasks.task_options import Priority

if TYPE_CHECKING:
    from collections.abc import Mapping


class Variable(StrEnum):
    """Names of the environment variables that a deployed function may be given."""

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
    LOOK_AHEAD_SECONDS = "DUETIME_LOOK_AHEAD_SECONDS"
    """How far ahead of the clock the trigger reads, in seconds."""
    PRECISION = "DUETIME_PRECISION"
    """`normal`, `exact` or `relaxed`: see `duetime.domain.dispatch.enqueue_plan.Precision`."""
    LEASE_SECONDS = "DUETIME_LEASE_SECONDS"
    """Length of a worker's lease; it is renewed every third of it."""
    RETENTION_DAYS = "DUETIME_RETENTION_DAYS"
    """How long a finished task is kept before its record expires."""
    TRACEBACKS = "DUETIME_TRACEBACKS"
    """`keep` to keep the traceback of a task's last failed attempt, `log` only to log it."""
    AUTHENTICATION = "DUETIME_AUTHENTICATION"
    """`iam`, `jwt` or `none` (the local stack only): where the API takes the owner from."""
    OPERATORS = "DUETIME_OPERATORS"
    """Identities, separated by spaces, that may do what concerns all owners; `*` for everybody."""
    HANDLERS = "DUETIME_HANDLERS"
    """Import name of the user's package of Python handlers; empty for none."""
    HANDLER_TYPES = "DUETIME_HANDLER_TYPES"
    """Import name of the module that lists the types with a handler; empty where they are not known."""
    EGRESS_FUNCTION = "DUETIME_EGRESS_FUNCTION"
    """Name of the function that makes HTTP calls; empty to make them in one's own process."""
    BULK_FUNCTION = "DUETIME_BULK_FUNCTION"
    """Name of the function that carries out bulk operations; empty to leave their start to the trigger's timers."""
    SIGNING_SECRET = "DUETIME_SIGNING_SECRET"  # noqa: S105 - a variable's name
    """Name or ARN of the secret that HTTP calls are signed with; empty to send them unsigned."""
    HTTP_ALLOW = "DUETIME_HTTP_ALLOW"
    """Comma-separated hosts (`127.0.0.1`) that HTTP calls may reach although they are not public."""
    HTTP_SECRETS = "DUETIME_HTTP_SECRETS"
    """JSON object: ARN, hosts and owners of each secret that HTTP calls may use, by its name."""
    AWS_TARGETS = "DUETIME_AWS_TARGETS"
    """ARN patterns, separated by spaces, of the AWS resources that tasks may call; empty for none."""
    INTAKE_OWNER = "DUETIME_INTAKE_OWNER"
    """Who owns the tasks that are made of events."""
    INTAKE_REJECTS = "DUETIME_INTAKE_REJECTS"
    """URL of the queue for events that can become no task."""
    SETTINGS_MODULE = "DUETIME_SETTINGS_MODULE"
    """Import name of a module of a layer with `VARIABLES` that are too large for Lambda; empty for none."""
    PULLED_QUEUES = "DUETIME_PULLED_QUEUES"
    """JSON object: the name or URL of the queue of each pulled type; a name is that of a queue beside those above."""
    PULLERS = "DUETIME_PULLERS"
    """JSON object: who may pull each pulled type, a list of identities as owners are named; `*` is any caller."""
    LONG_POLLS = "DUETIME_LONG_POLLS"
    """How many requests of the API may wait for something at once; 0 for any number."""
    REQUESTS_PER_SECOND = "DUETIME_REQUESTS_PER_SECOND"
    """Steady rate that the gateway keeps all callers together to, which answers tell; 0 if it is not known."""
    SUMMARY_SPREAD = "DUETIME_SUMMARY_SPREAD"
    """Into how many parts each owner's counts of tasks are split; 0 if nothing is counted."""
    SUMMARY_RECOUNT_MEGABYTES = "DUETIME_SUMMARY_RECOUNT_MEGABYTES"
    """How many megabytes of the table are read at once to count tasks that their changes do not count; 0: none."""
    ARCHIVE_BUCKET = "DUETIME_ARCHIVE_BUCKET"
    """Name of the bucket that ended tasks are archived in; empty if none are."""
    EVENT_BUS = "DUETIME_EVENT_BUS"
    """Name of the event bus to which changes are published; empty for none."""
    TOPOLOGY_MACHINE = "DUETIME_TOPOLOGY_MACHINE"
    """ARN of the state machine that runs topologies; empty in functions that start none."""
    HEARTBEAT_URL = "DUETIME_HEARTBEAT_URL"
    """URL of a monitor outside that is fetched after each good tick; empty for none."""
    METRIC_OWNERS = "DUETIME_METRIC_OWNERS"
    """Owners, separated by spaces, whose tasks' failures have metrics of their own."""
    METRIC_TYPES = "DUETIME_METRIC_TYPES"
    """Types of tasks, separated by spaces, whose lateness and duration have metrics of their own."""
    WATCH_URL = "DUETIME_WATCH_URL"
    """URL of the WebSocket API, which clients connect to."""
    CONSOLE_URL = "DUETIME_CONSOLE_URL"
    """Address of the console, which notices and log lines link to; empty for none."""
    SIGN_IN = "DUETIME_SIGN_IN"
    """JSON object: how people sign in to the console (`issuer`, `client_id`, `audience`, `origins`); empty for none."""
    STACK = "DUETIME_STACK"
    """Name of the CloudFormation stack, which the command `duetime logs` needs."""
    WORKER_LOGS = "DUETIME_WORKER_LOGS"
    """CloudWatch log group of the worker function; empty on the local stack, which has no CloudWatch console."""
    TRACES = "DUETIME_TRACES"
    """`xray` where AWS X-Ray traces the functions, which estimates of costs include; empty where it does not."""
    REGION = "AWS_REGION"
    """Lambda: the region that the function runs in."""
    OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
    """OpenTelemetry: the URL that spans are exported to, with OTLP over HTTP; empty for no spans."""
    SERVICE_NAME = "POWERTOOLS_SERVICE_NAME"
    """Powertools: the service a log line belongs to."""
    METRICS_NAMESPACE = "POWERTOOLS_METRICS_NAMESPACE"
    """Powertools: the CloudWatch namespace of the metrics."""
    LOG_LEVEL = "POWERTOOLS_LOG_LEVEL"
    """Powertools: the least severe level that is logged."""
    PYDANTIC_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
    """pydantic: `__all__`, so that its first model does not search every installed package for plugins."""


TABLES = frozenset(
    {
        Variable.PULLED_QUEUES,
        Variable.PULLERS,
        Variable.AWS_TARGETS,
        Variable.HTTP_ALLOW,
        Variable.HTTP_SECRETS,
        Variable.OPERATORS,
        Variable.METRIC_OWNERS,
        Variable.METRIC_TYPES,
        Variable.SIGN_IN,
    }
)
"""Variables that are as long as users make them, which a module of a layer may hold."""
QUEUE_VARIABLES: Mapping[Priority, Variable] = {
    Priority.HIGH: Variable.QUEUE_HIGH,
    Priority.NORMAL: Variable.QUEUE_NORMAL,
    Priority.LOW: Variable.QUEUE_LOW,
}
