"""The settings of a deployment, and four presets: `DEV`, `STAGING`, `PROD` and `LOCAL_STACK`.

A project derives its settings from a preset: `replace(PROD, alarm_email="ops@example.org")`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from duetime.contract.tasks.fields import OWNER_PATTERN, TYPE_PATTERN
from duetime.contract.tasks.target_fields import SECRET_NAME_PATTERN
from duetime.domain.dispatch.enqueue_plan import Precision
from duetime.domain.event_patterns import PatternInvalid, reject_pattern
from duetime.domain.ids import MAX_SHARDS
from duetime.domain.limits import (
    MAX_ARCHIVE_DAYS,
    MAX_EPOCH,
    MAX_METRIC_VALUES,
    MAX_QUOTA,
    MAX_RETENTION_DAYS,
    MAX_WORKER_BATCH,
    SHORTEST_WORKER_LEASE_SECONDS,
    WORKER_FUNCTION_SECONDS,
)
from duetime.domain.quotas import Quota
from duetime.domain.tasks.costs import WORKER_GIGABYTES
from duetime.domain.tasks.targets import is_role, service_of
from duetime.domain.tasks.task_options import Priority
from duetime.settings import Authentication
from duetime_cdk.errors import NotDeployable, UnsafeEnvironment
from duetime_cdk.handlers_environment import HandlersEnvironment
from duetime_cdk.handlers_packages import HandlersPackage, check_packages
from duetime_cdk.layers.target import Target
from duetime_common.cost_estimate import STREAM_SECONDS, WATCHED_STREAM_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duetime.domain.quotas import Quotas
    from duetime.domain.tasks.allowed_targets import HttpSecret
    from duetime_cdk.canary import Canary

LOCAL = "local"
"""The environment that is deployed to the embedded AWS on one machine."""
MAX_BATCHING_SECONDS = 300
"""Longest batching window of a queue (Source: AWS Lambda API Reference, "CreateEventSourceMapping")."""
MAX_KEY_CACHE_SECONDS = 300
"""Longest time for which a revoked API key may still be accepted."""
MAX_QUOTA_BATCHING_SECONDS = 5
"""Longest batching window of the table's stream with which open tasks are counted in time for a quota."""
_LEAST_UNRESERVED = 100
"""Concurrency that must stay unreserved for other functions (Source: AWS Lambda Developer Guide, reserved
concurrency)."""
_TARGETS = re.compile(r"arn:aws(-[a-z]+)*:[a-z]+:[a-z0-9*?-]+:[0-9]{12}:[A-Za-z0-9_./:$*?-]+")
_TYPES = re.compile(r"[A-Za-z0-9_.:/*?-]+")
_REDACTED = re.compile(r"[^/].*|(?:/[^/]+)+", re.DOTALL)
"""A field name, or a JSON pointer."""
_SHORTEST_RETENTION_DAYS = 2
_ARNS = re.compile(r"\*|arn:\S+:\S+")
_OWNER = re.compile(OWNER_PATTERN)
_SECRET_ARN = re.compile(r"arn:aws(-[a-z]+)*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+-\w{6}")
_QUEUE_ARN = re.compile(r"arn:aws(-[a-z]+)*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+")
_STREAM_ARN = re.compile(r"arn:aws(-[a-z]+)*:dynamodb:[a-z0-9-]+:[0-9]{12}:table/[A-Za-z0-9_.-]+/stream/[0-9T:.-]+")
_LOG_GROUP = re.compile(r"[A-Za-z0-9_/.#-]{1,512}")
_DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")
_KMS_KEY = re.compile(r"arn:aws(-[a-z]+)*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+")
_CERTIFICATE = re.compile(r"arn:aws(-[a-z]+)*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-f0-9-]+")
_TABLE_STREAM = re.compile(
    r"arn:aws(-[a-z]+)*:dynamodb:[a-z0-9-]+:[0-9]{12}:table/(?P<table>[A-Za-z0-9_.-]{3,255})/stream/\S+"
)
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-[0-9]{1,2}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_ORIGIN = re.compile(r"(https://[a-z0-9]([a-z0-9.-]*[a-z0-9])?|http://(localhost|127\.0\.0\.1))(:[0-9]{1,5})?")


class UnknownEnvironment(NotDeployable, LookupError):
    """An unknown environment was requested."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no environment {name!r}; choose one of {', '.join(sorted(known))}: -c env=dev")


class UnknownSetting(NotDeployable, TypeError):
    """An unknown setting was given."""

    def __init__(self, name: str) -> None:
        meant = get_close_matches(name, [field.name for field in fields(Environment)], n=1)
        super().__init__(f"there is no setting {name!r}{f'; did you mean {meant[0]!r}?' if meant else ''}")


@dataclass(frozen=True, slots=True)
class Pollers:
    """Provisioned pollers of a queue, which are ready for a burst and billed by the hour.

    Source: AWS Lambda API Reference, "ProvisionedPollerConfig".
    """

    minimum: int
    """Number of pollers that are always ready."""
    maximum: int
    """Maximum number of pollers."""


@dataclass(frozen=True, slots=True)
class WorkerBatch:
    """How many tasks of a priority one invocation of the worker gets.

    Source: AWS Lambda API Reference, "CreateEventSourceMapping".
    """

    size: int
    """Maximum number of tasks."""
    seconds: int
    """How long Lambda waits for this number of tasks, in seconds."""


POLLER_INVOCATIONS = 10
"""Concurrent invocations per provisioned poller (Source: AWS Lambda Developer Guide, "Configuring scaling behavior for
SQS event source mappings")."""
LEAST_POLLERS, MOST_READY_POLLERS, MOST_POLLERS = 2, 200, 2_000
"""Limits for one queue: the smallest and the largest `minimum`, and the largest `maximum` (Source: AWS Lambda API
Reference, "ProvisionedPollerConfig")."""


class FunctionName(StrEnum):
    """The Lambda functions, each a folder of `functions/`."""

    API = "api"
    """Serves the REST API."""
    TRIGGER = "trigger"
    """Reads the due minutes and fills the queues."""
    WORKER = "worker"
    """Claims tasks and runs their targets."""
    DEADLETTER = "deadletter"
    """Handles messages that the worker could not process."""
    INTAKE = "intake"
    """Creates, cancels and wakes tasks for events; deployed if the settings name an `intake_owner`."""
    TOPOLOGY = "topology"
    """Executes the states of the topology state machine."""
    BULK = "bulk"
    """Runs bulk operations, such as cancelling by a filter or pausing a large topology."""
    WATCH = "watch"
    """Handles the WebSocket API's events: connections and subscriptions."""
    BROADCAST = "broadcast"
    """Reads the table's stream and publishes the changes."""
    CONSOLE = "console"
    """Serves the files of the web console; deployed if the settings enable it."""
    ARCHIVE = "archive"
    """Copies tasks removed by TTL to S3; deployed if there is an archive."""
    AUTHORIZER = "authorizer"
    """Checks the API keys of requests; deployed if the setting `api_keys` is on."""
    EGRESS = "egress"
    """Makes the HTTP calls of other functions; it may only read the secrets for these calls."""
    HANDLERS = "handlers"
    """Runs the handlers of one package; deployed once for each of `handlers_packages`."""
    ATTEMPTS = "attempts"
    """Receives reports from running handlers of `handlers_packages`; deployed if there are such packages."""


@dataclass(frozen=True, slots=True)
class FunctionSize:
    """Memory and timeout of one function."""

    memory_mb: int
    """Memory in MB; the CPU share grows with the memory (1769 MB is one vCPU)."""
    timeout_seconds: int
    """Timeout of an invocation, in seconds."""


SIZES: Mapping[FunctionName, FunctionSize] = {
    # The HTTP API itself gives up after 30 seconds.
    FunctionName.API: FunctionSize(memory_mb=512, timeout_seconds=29),
    FunctionName.TRIGGER: FunctionSize(memory_mb=1024, timeout_seconds=300),
    # The longest timeout that Lambda allows, because a target may use all of it.
    FunctionName.WORKER: FunctionSize(
        memory_mb=round(WORKER_GIGABYTES * 1024), timeout_seconds=WORKER_FUNCTION_SECONDS
    ),
    FunctionName.DEADLETTER: FunctionSize(memory_mb=256, timeout_seconds=60),
    FunctionName.INTAKE: FunctionSize(memory_mb=512, timeout_seconds=60),
    # This function creates the tasks of up to 10,000 nodes.
    FunctionName.TOPOLOGY: FunctionSize(memory_mb=1024, timeout_seconds=300),
    # The longest timeout that Lambda allows; throttled operations continue for hours over many invocations.
    FunctionName.BULK: FunctionSize(memory_mb=1024, timeout_seconds=900),
    # The WebSocket API itself gives up after 29 seconds.
    FunctionName.WATCH: FunctionSize(memory_mb=512, timeout_seconds=29),
    # This function only serves files from memory.
    FunctionName.CONSOLE: FunctionSize(memory_mb=256, timeout_seconds=10),
    # The longest time for publishing a batch of changes; the shard's next batch waits until then.
    FunctionName.BROADCAST: FunctionSize(memory_mb=512, timeout_seconds=60),
    # A batch has up to a thousand tasks, each with a payload and a result of up to 200 KB before compression.
    FunctionName.ARCHIVE: FunctionSize(memory_mb=1024, timeout_seconds=300),
    # This function mostly waits, but needs CPU so that ten concurrent TLS handshakes leave time for the endpoints.
    FunctionName.EGRESS: FunctionSize(memory_mb=512, timeout_seconds=900),
    # The longest timeout that Lambda allows, because a handler may use all of it.
    FunctionName.HANDLERS: FunctionSize(memory_mb=512, timeout_seconds=900),
    # This function waits for the API, and retries writes to which the store does not respond.
    FunctionName.ATTEMPTS: FunctionSize(memory_mb=512, timeout_seconds=60),
    # Source: API Gateway quotas, at most ten seconds for a Lambda authorizer.
    FunctionName.AUTHORIZER: FunctionSize(memory_mb=512, timeout_seconds=10),
}
"""Default size of each function."""


_SELDOM = {
    FunctionName.BULK: 10,
    FunctionName.DEADLETTER: 10,
    FunctionName.BROADCAST: 10,
    FunctionName.WATCH: 10,
    # This function is invoked once every five minutes for each shard of the table's stream.
    FunctionName.ARCHIVE: 2,
    FunctionName.ATTEMPTS: 10,
    # The authorizer needs only a few milliseconds for a request with a key.
    FunctionName.AUTHORIZER: 10,
}
"""Concurrency assumed for rarely invoked functions without a reservation."""

CLOUD = Target.of_lambda("3.14", "arm64")
"""Lambda's newest Python, on the processor that costs a fifth less for the same work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The settings of one deployment."""

    name: str
    """The value of `-c env=`, and part of the stack's name."""
    target: Target = CLOUD
    """Python and processor of the functions and their layers."""
    sizes: Mapping[FunctionName, FunctionSize] = field(default_factory=lambda: SIZES)
    """Memory and timeout of each function."""

    table: str = ""
    """Name of an existing tasks table that the stack uses instead of its own: a restored table (`duetime restore`
    prints its name), or a table left by a deleted stack. Empty: the stack creates its own table."""
    table_stream_arn: str = ""
    """ARN of the stream of `table`; set both or neither."""
    content_bucket: str = ""
    """Name of an existing bucket of large payloads and results, left by a deleted stack. Empty: the stack creates a
    bucket. The CORS rules of an existing bucket must allow the console's origin to read and upload (`GET`; `PUT`, with
    the headers `content-type` and `if-none-match`)."""
    epoch: int = 0
    """How often the table was restored; `duetime restore` prints it. The epoch is part of every fence, and must never
    decrease."""
    regions: tuple[str, ...] = ()
    """The two Regions of a deployment with a standby, beginning with the Region whose stack created the table:
    `("eu-west-1", "eu-central-1")`. Set the same value in both stacks, and never change the order. The first Region is
    active until `duetime region takeover` makes the other Region active. Empty: the deployment has one Region."""
    shards: int = 16
    """S, the number of shards that new tasks are spread over (1 to 65536)."""
    look_ahead_seconds: int = 180
    """How far ahead of the clock the trigger reads."""
    precision: Precision = Precision.NORMAL
    """How long workers wait, and are billed, to start tasks exactly on time."""
    lease_seconds: int = 30
    """Seconds after which another worker may take over the task of a silent worker (at least 15)."""
    retention_days: int = 30
    """How long a finished task can be read, in days (2 to 3653)."""
    retention_days_by_type: Mapping[str, int] = field(default_factory=dict)
    """How long finished tasks of some types can be read, in days (2 to 3653), by patterns of types, such as
    `{"audit.*": 400, "ping": 2}`; the first pattern that matches a type decides. The nodes of a topology are kept at
    least as long as the topology, regardless of their types. A change applies to tasks that end after the change."""
    archive_days: int = 0
    """How long ended tasks are kept in the S3 archive after the table's retention, in days; tasks deleted by their user
    are not archived. 0: no archive."""
    archive_days_by_type: Mapping[str, int] = field(default_factory=dict)
    """How long the archive keeps tasks of some types, by patterns as in `retention_days_by_type`; 0: these tasks are
    not archived. A change applies to tasks that reach the archive after the change."""
    keep_tracebacks: bool = True
    """Whether the traceback of a task's last failed attempt is stored with the task's attempts, which costs one more
    write per failed attempt. Otherwise, tracebacks are only logged."""
    concurrency: Mapping[Priority, int] = field(
        default_factory=lambda: {Priority.HIGH: 100, Priority.NORMAL: 100, Priority.LOW: 20}
    )
    """Maximum number of concurrent worker invocations for each priority's queue (2 to 1000), each with up to ten
    tasks."""
    provisioned_pollers: Mapping[Priority, Pollers] = field(default_factory=dict)
    """Priorities whose queues have provisioned pollers, with their minimum and maximum number: `{Priority.HIGH:
    Pollers(minimum=20, maximum=200)}`. Each poller invokes up to 10 workers at once, so `concurrency` does not limit
    these priorities. There can be up to 2,000 pollers. The minimum number is always ready for a burst, and AWS bills
    each poller by the hour. Empty: Lambda's standard pollers, at no charge."""
    worker_batches: Mapping[Priority, WorkerBatch] = field(default_factory=dict)
    """Priorities whose workers get more than ten tasks at once, for batch handlers or to run rare tasks together:
    `{Priority.LOW: WorkerBatch(size=100, seconds=5)}`. Lambda waits up to `seconds` (1 to 300) until there are `size`
    tasks (1 to 100), so every task of that priority may start up to `seconds` later. Empty: at most ten tasks, without
    a wait."""
    reserved: Mapping[FunctionName, int] = field(default_factory=dict)
    """Reserved concurrency of functions, which is both guaranteed and the maximum, and is taken from the limit that all
    functions in the account share. Empty: functions share the unreserved concurrency."""

    long_polls: int = 5
    """Maximum number of API requests that wait at once (`wait_seconds`), for an outcome or for tasks to lease; each
    waiting request occupies one execution of the API function. Additional requests are answered immediately, as if
    their wait had ended."""

    authentication: Authentication = Authentication.IAM
    """Who may call the API: signed requests (`iam`), bearer tokens (`jwt`), anyone (`none`, local only)."""
    jwt_issuer: str = ""
    """`jwt` only: the issuer whose tokens are accepted, an https URL."""
    jwt_audience: tuple[str, ...] = ()
    """`jwt` only: the audiences (client ids) that are accepted."""
    pulled_types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Task types that pull workers lease (each has its own queue), and who may lease them: patterns (with `*` and `?`)
    of identities in the form of owners, such as `123456789012:role/Workers`; `*` allows any caller of the API. Pull
    workers receive the tasks of all owners."""
    type_owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Reserved task types, by patterns of types, with patterns of the owners for whom they are reserved: `{"billing.*":
    ("123456789012:role/Billing*",)}`. Other owners cannot create tasks of these types, regardless of the target. The
    first pattern that matches a type decides; a type that matches no pattern is open to all owners."""
    operators: tuple[str, ...] = ()
    """Who sees, stops and limits all owners' tasks: identities in the form of owners, such as
    `123456789012:role/Operations`."""
    admins: tuple[str, ...] = ()
    """Who may do everything, including creating API keys: identities in the form of owners, such as
    `123456789012:role/Platform`."""
    api_keys: bool = False
    """Whether programs may also call the API with API keys, which administrators create, at `/key/v1` instead of
    `/v1`."""
    key_cache_seconds: int = 0
    """Seconds (0 to 300) for which API Gateway may accept a key without invoking the authorizer again. A revoked
    key may be accepted for that long; with 0, a revoked key is rejected at once, and each request with a key invokes
    the authorizer."""
    teams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Owners that several callers act for, by name, with the identities of these callers in the form of owners, such as
    `{"billing": ("123456789012:role/Billing", "auth0|5f7c")}`. A request names the owner in `X-Duetime-Owner`."""
    teams_claim: str = ""
    """`jwt` only: the claim of a token that lists the owners that its caller may act for, such as `cognito:groups`: a
    list, or text with spaces. Empty: only `teams` decides."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the API from a browser, such as `https://console.example.org`. Empty: no pages
    may."""
    console: bool = False
    """Whether the web console is served at `/console` of the API. With `iam`, the console also needs `api_keys`,
    because a browser cannot sign requests."""
    sign_in_client_id: str = ""
    """Client id of the console at the identity provider (`jwt_issuer`): people sign in there with OpenID Connect's code
    flow and PKCE. Use a public client without a secret, with the console's URL as its redirect URL. Add its id to
    `jwt_audience`, unless the provider's access tokens name another of these audiences. Empty: the console asks for a
    token."""
    sign_in_origins: tuple[str, ...] = ()
    """Additional origins of the identity provider from which the console requests tokens, such as
    `https://example.auth.eu-west-1.amazoncognito.com`."""
    codec_endpoint: str = ""
    """Address of your endpoint that decrypts payloads for people in the console, such as
    `https://codec.example.org`; it must allow the console's origin (CORS). The endpoint gets the token of the person
    who has signed in. Empty: encrypted payloads stay encrypted in the console."""
    domain_name: str = ""
    """Your domain for the API and the console, such as `tasks.example.org`; it needs `certificate_arn`, and a DNS
    alias to the output `ApiDomainTarget`. Empty: the API has only AWS's address."""
    certificate_arn: str = ""
    """ARN of that domain's certificate in AWS Certificate Manager, in the stack's Region."""
    quotas: Quotas | None = None
    """Default quotas of each owner, which operators can change for single owners without a deployment (`duetime quotas
    set`): `Quotas(creates_per_second=100, concurrent_attempts=200)`. `Quotas()`: only the quotas that operators set.
    `None`: no quotas, for one team."""
    requests_per_second: int = 500
    """Steady rate of API requests; requests above this rate get 429."""
    request_burst: int = 1000
    """Requests allowed in a burst above that rate."""

    handlers_folder: str = ""
    """Folder of your handlers, relative to the project: the package, its `requirements.txt` and its `grants.json`."""
    handlers_package: str = ""
    """Import name of your handlers' package in that folder; empty if the folder has only one package."""
    handlers_imported: bool = True
    """Whether the package is imported before it is deployed. If so, a package that fails to import is rejected, and so
    are tasks of types without a handler. `False` for a package that can only be imported in Lambda."""
    handlers_environment: HandlersEnvironment = field(default_factory=HandlersEnvironment)
    """Environment variables, secrets, VPC, memory, layers and policies of the function that runs your handlers; see
    below."""
    handlers_packages: tuple[HandlersPackage, ...] = ()
    """Additional packages of handlers, each in a function with its own role, dependencies and VPC:
    `(HandlersPackage(name="billing", folder="billing", types=("billing.*",)),)`. With such packages,
    `handlers_folder` may be empty."""
    http_allow: tuple[str, ...] = ()
    """Non-public hosts that HTTP targets may reach."""
    http_secrets: Mapping[str, HttpSecret] = field(default_factory=dict)
    """Secrets Manager secrets that HTTP targets may use, by the names used in tasks, each with the hosts that the
    secret may be sent to: `{"crm": HttpSecret("arn:…", hosts=("api.crm.example",))}`. With `owners` (patterns), only
    these owners' tasks may use the secret. The egress function may read only these secrets and the signing
    secret."""

    aws_targets: tuple[str, ...] = ()
    """ARN patterns (with `*` and `?`) of the AWS resources that tasks may call; the worker may call only these
    resources. For ECS, list task definitions, their clusters and their containers' roles; for Batch, list job
    definitions and job queues."""
    target_owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Reserved AWS resources, by patterns of ARNs, with patterns of the owners for whom they are reserved:
    `{"arn:aws:lambda:*:function:billing-*": ("123456789012:role/Billing*",)}`. Tasks of other owners cannot call these
    resources, nor their versions, aliases and revisions. The first pattern that matches an ARN, with or without its
    version, decides; a resource that matches no pattern is open to all owners."""

    intake_owner: str = ""
    """Owner of the tasks created from events: an identity in the form of owners. Empty: there is no intake."""
    intake_bus: str = "default"
    """Name of the event bus whose events become tasks."""
    intake_detail_type: str = "duetime task"
    """Detail type of the events on `intake_bus` that become tasks."""
    intake_patterns: tuple[Mapping[str, Any], ...] = ()
    """EventBridge event patterns: events on `intake_bus` that match a pattern are passed to the intake rules, which
    operators set through the API: `({"source": ["com.example.orders"]}, {"source": ["aws.s3"]})`."""
    intake_queues: tuple[str, ...] = ()
    """ARNs of SQS queues whose messages are events for the intake rules."""
    intake_streams: tuple[str, ...] = ()
    """ARNs of the streams of DynamoDB tables whose changes are events for the intake rules."""
    intake_log_groups: tuple[str, ...] = ()
    """Names of log groups whose lines are events for the intake rules. Do not name the deployment's own log groups."""
    intake_batch_size: int = 100
    """Maximum number of events per invocation (1 to 10000; more than 10 need a batching window)."""
    intake_batch_seconds: int = 1
    """Batching window of the intake queue, in seconds (0 to 300)."""
    intake_concurrency: int = 20
    """Maximum number of concurrent intake invocations (2 to 1000)."""

    event_bus: str = ""
    """Name of the event bus that receives events about tasks and skipped occurrences, such as `default`; AWS bills each
    event. Empty: no events are sent."""
    summary_spread: int = 1
    """Number of parts into which each owner's task counts are split to spread the writes. Use one part per 1,000 tasks
    a second. The number can be raised but not lowered. 0: tasks are not counted, and there is no `GET /v1/summary`."""
    summary_recount_megabytes: int = 100
    """Megabytes of the table read every five minutes while older tasks are recounted (100: at most 0.5 dollars and some
    25 million tasks a day). 0: there is no recount, and the summary lacks tasks that the stream did not report."""
    task_lists: int = 1
    """Lists of tasks by state, type, name, tag, schedule and end, kept from the table's stream for owners with more
    than about a thousand tasks. The lists cost two to five write units for an isolated task, and a tenth of that in
    busy seconds. 0: there are no lists, and a filter reads all of an owner's tasks. A different number rebuilds the
    lists, which is needed after they were off."""
    broadcast_batch_size: int = 500
    """Maximum number of table changes per invocation of `broadcast` (1 to 1000; they must fit into 6 MB)."""
    broadcast_batch_seconds: int | None = None
    """Batching window of the table's stream, in seconds (0 to 300): a longer window means fewer invocations and summary
    writes, but later live updates, events and lists. `None`: 5 with `console`, `event_bus` or `open_tasks` of `quotas`,
    which wait for changes, otherwise 30. Use 1 if people watch the console; with few tasks, each change is then billed
    separately."""
    broadcast_concurrency: int = 1
    """Maximum number of concurrent invocations of `broadcast` per shard of the table's stream (1 to 10)."""

    redact: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values in payloads and results of tasks that are hidden from read-only callers and from the archive, by patterns
    of types: names of fields at any depth, JSON pointers (`/customer/email`; `*` is any field or element), or `*` for
    everything: `{"*": ["password"], "payment.*": ["card"]}`. All patterns that match a type apply to it."""

    log_level: Literal["DEBUG", "INFO", "WARN", "ERROR"] = "INFO"
    """The lowest level that the functions log."""
    log_retention: Literal["ONE_DAY", "ONE_WEEK", "ONE_MONTH", "THREE_MONTHS", "ONE_YEAR"] = "ONE_MONTH"
    """How long logs are kept."""
    audit_retention: Literal["", "ONE_MONTH", "ONE_YEAR", "THIRTEEN_MONTHS", "TWO_YEARS", "FIVE_YEARS", "TEN_YEARS"] = (
        "THIRTEEN_MONTHS"
    )
    """How long the audit log is kept; empty for no audit log. The log records who controlled or administered what, why
    and from where."""
    kms_key_arn: str = ""
    """ARN of your KMS key for the table, the queues, the buckets, the logs and the signing secret; if empty, AWS's own
    keys are used. A change does not re-encrypt existing messages and objects."""
    protected: bool = True
    """Whether the table and the bucket are protected from deletion and retained when the stack is deleted."""
    metric_owners: tuple[str, ...] = ()
    """Owners with separate metrics for final failures. CloudWatch bills each metric."""
    metric_types: tuple[str, ...] = ()
    """Task types with separate metrics for lateness, duration and expiry. CloudWatch bills each metric."""
    xray: bool = False
    """Whether X-Ray traces the invocations of the functions and the runs of topologies (active tracing). X-Ray records
    the first request of each second and 5% of all others, which cannot be changed in Lambda. Sparse traffic is
    therefore traced completely, and the traces cost more than the tasks."""
    otlp_endpoint: str = ""
    """URL that the functions export spans to, with OTLP over HTTP, such as `http://localhost:4318` for the collector in
    the layer below; empty for none."""
    otlp_layer: str = ""
    """ARN of the version of a Lambda layer with OpenTelemetry's SDK and its OTLP exporter for Python, such as AWS's own
    layer (ADOT), which also contains a collector; needed with `otlp_endpoint`."""
    canary: Canary | None = None
    """Share of the work that new versions of the functions get first, and for how long: `Canary(share=10, minutes=10)`.
    If an alarm goes off during this time, or too many attempts that call handlers fail in a new version, all functions
    return to their previous versions, and the deployment fails. A deployment with a canary also fails if an alarm is
    already on. `None`: all functions change to their new versions at once."""
    heartbeat_url: str = ""
    """URL of an external monitor (a dead man's switch), requested after each successful tick; empty for none."""
    failures_alarm: int = 10
    """Number of final failures within five minutes that triggers an alarm."""
    accepted_objective: float = 99.9
    """Objective for API requests without a server error, in percent; 0 for no alarm."""
    on_time_objective: float = 99
    """Objective for attempts that start within a second of their planned time, in percent; 0 for no alarm."""
    docs_url: str = ""
    """Base URL of these docs for links in alarms, such as the URL of a repository."""
    alarm_email: str = ""
    """E-mail address for alarms; empty for none (you can subscribe to the topic)."""

    @property
    def canaries(self) -> Mapping[str, Canary]:
        """The canaries of the functions that run handlers, by package name; the worker's name is `""`."""
        found = {"": self.canary, **{each.name: each.canary or self.canary for each in self.handlers_packages}}
        return {name: canary for name, canary in found.items() if canary}

    @property
    def functions(self) -> list[FunctionName]:
        """The functions that are deployed once."""
        without = {
            FunctionName.HANDLERS: True,
            FunctionName.ATTEMPTS: not self.handlers_packages,
            FunctionName.AUTHORIZER: not self.api_keys,
            FunctionName.INTAKE: not self.intake_owner,
            FunctionName.ARCHIVE: not self.longest_archive_days,
            FunctionName.CONSOLE: not self.console,
        }
        return [name for name in FunctionName if not without.get(name)]

    def size_of(self, name: FunctionName) -> FunctionSize:
        """Memory and timeout of a function."""
        size, own = self.sizes[name], self.handlers_environment.memory_mb
        return replace(size, memory_mb=own) if own is not None and name is FunctionName.WORKER else size

    @property
    def stream_seconds(self) -> int:
        """The batching window of the table's stream, in seconds."""
        if self.broadcast_batch_seconds is not None:
            return self.broadcast_batch_seconds
        is_quota = self.quotas is not None and self.quotas.open_tasks is not None
        return WATCHED_STREAM_SECONDS if self.console or self.event_bus or is_quota else STREAM_SECONDS

    @property
    def recounts_summary(self) -> bool:
        """Whether older tasks are recounted by reading the table."""
        return self.summary_spread > 0 and self.summary_recount_megabytes > 0

    def workers_at_once(self, priority: Priority) -> int:
        """The maximum number of concurrent worker invocations for a priority."""
        pollers = self.provisioned_pollers.get(priority)
        return pollers.maximum * POLLER_INVOCATIONS if pollers else self.concurrency[priority]

    @property
    def concurrency_needed(self) -> int:
        """The account limit of concurrent executions that this environment needs; Lambda keeps 100 unreserved."""
        intake = self.intake_concurrency if self.intake_owner else 0
        others = {name: number for name, number in _SELDOM.items() if name in self.functions}
        seldom = sum(number for name, number in others.items() if name not in self.reserved)
        shared = sum(map(self.workers_at_once, self.concurrency)) + intake + seldom
        # Each attempt in a package's function occupies a separate execution.
        packages = sum(package.reserved or 0 for package in self.handlers_packages)
        return sum(self.reserved.values()) + packages + max(shared, _LEAST_UNRESERVED)

    def __post_init__(self) -> None:
        """Reject settings that leave the deployment open or incomplete."""
        if not 1 <= self.shards <= MAX_SHARDS:
            raise UnsafeEnvironment(f"environment {self.name!r}: `shards` must be 1 to {MAX_SHARDS}, not {self.shards}")
        if self.lease_seconds < SHORTEST_WORKER_LEASE_SECONDS:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: a lease of {self.lease_seconds} s cannot be renewed in time;"
                f" {SHORTEST_WORKER_LEASE_SECONDS} s is the minimum"
            )
        self._check_table()
        api = self.reserved.get(FunctionName.API)
        if not 0 < self.long_polls < (api or _LEAST_UNRESERVED):
            raise UnsafeEnvironment(
                f"environment {self.name!r}: `long_polls` must be at least 1 and less than the"
                f" {api or _LEAST_UNRESERVED} executions of the API, not {self.long_polls}"
            )
        self._check_worker()
        self._check_quotas()
        self._check_pollers()
        self._check_regions()
        self._check_worker_batches()
        self._check_identities()
        self._check_targets()
        self._check_retention()
        if self.heartbeat_url and not self.heartbeat_url.startswith("https://"):
            raise UnsafeEnvironment(f"environment {self.name!r}: the URL of a monitor begins with https://")
        if bool(self.otlp_endpoint) != bool(self.otlp_layer):
            raise UnsafeEnvironment(f"environment {self.name!r}: `otlp_endpoint` and `otlp_layer` need each other")
        if self.otlp_endpoint and not self.otlp_endpoint.startswith(("https://", "http://localhost:")):
            raise UnsafeEnvironment(
                f"environment {self.name!r}: spans are exported to https://…, or to a collector at http://localhost:…"
            )
        for values in (self.metric_owners, self.metric_types):
            if len(values) > MAX_METRIC_VALUES or any(not value or set(value) & set(" \t\n") for value in values):
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: at most {MAX_METRIC_VALUES} owners and types, without spaces, can have"
                    " metrics of their own"
                )

    def _check_table(self) -> None:
        """Check the existing table and bucket."""
        if bool(self.table) != bool(self.table_stream_arn):
            raise UnsafeEnvironment(f"environment {self.name!r}: `table` and `table_stream_arn` need each other")
        stream = _TABLE_STREAM.fullmatch(self.table_stream_arn)
        if self.table and (stream is None or stream["table"] != self.table):
            raise UnsafeEnvironment(
                f"environment {self.name!r}: {self.table_stream_arn!r} is not the ARN of a stream of the table"
                f" {self.table!r}; `duetime restore` prints it"
            )
        if self.content_bucket and _BUCKET.fullmatch(self.content_bucket) is None:
            raise UnsafeEnvironment(f"environment {self.name!r}: {self.content_bucket!r} is not the name of a bucket")
        if not 0 <= self.epoch <= MAX_EPOCH:
            raise UnsafeEnvironment(f"environment {self.name!r}: `epoch` must be 0 to {MAX_EPOCH}, not {self.epoch}")

    def _check_worker(self) -> None:
        """Check the function that runs handlers."""
        self.handlers_environment.check(f"environment {self.name!r}")
        check_packages(self.handlers_packages, f"environment {self.name!r}")
        if self.canary:
            self.canary.check(f"environment {self.name!r}")
        timeout = self.sizes[FunctionName.WORKER].timeout_seconds
        if timeout != WORKER_FUNCTION_SECONDS:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: the worker's timeout is {WORKER_FUNCTION_SECONDS} s, not {timeout}: tasks"
                " may run for that long, and Lambda bills what is used. Limit a task by its `timeout_seconds`"
            )

    def _check_quotas(self) -> None:
        quotas = self.quotas
        if quotas is None:
            return
        limits = [limit for quota in Quota if (limit := quotas.limit(quota)) is not None]
        if any(not 1 <= limit <= MAX_QUOTA for limit in limits):
            raise UnsafeEnvironment(f"environment {self.name!r}: each of `quotas` must be 1 to {MAX_QUOTA}")
        is_counted = self.summary_spread > 0 and self.stream_seconds <= MAX_QUOTA_BATCHING_SECONDS
        if quotas.open_tasks is not None and not is_counted:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: `open_tasks` of `quotas` needs `summary_spread`, and"
                f" `broadcast_batch_seconds` of at most {MAX_QUOTA_BATCHING_SECONDS}"
            )

    def check_region(self, region: str) -> None:
        """Check the Region that a stack with a standby is deployed to, if it is known before the deployment.

        Raises:
            UnsafeEnvironment: the settings name other Regions, or the second Region has no replica to use.
        """
        if not self.regions or "${Token[" in region:
            return
        if region not in self.regions:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: the stack is deployed to {region}, which is not in `regions`"
            )
        if region == self.regions[1] and not self.table:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: the stack in {region} needs `table` and `table_stream_arn` of the replica,"
                " which `duetime region add` prints"
            )

    def _check_regions(self) -> None:
        """Check the Regions of a deployment with a standby."""
        if not self.regions:
            return
        first, *others = self.regions
        are_two = len(others) == 1 and first not in others
        if isinstance(self.regions, str) or not are_two or not all(map(_REGION.fullmatch, self.regions)):
            raise UnsafeEnvironment(
                f'environment {self.name!r}: `regions` needs two different Regions, such as ("eu-west-1",'
                f' "eu-central-1"), not {self.regions!r}'
            )

    def _check_pollers(self) -> None:
        for priority, pollers in self.provisioned_pollers.items():
            are_ready = LEAST_POLLERS <= pollers.minimum <= MOST_READY_POLLERS
            if not are_ready or not pollers.minimum <= pollers.maximum <= MOST_POLLERS:
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: the pollers of {priority} tasks must be at least {LEAST_POLLERS} to"
                    f" {MOST_READY_POLLERS} and at most {MOST_POLLERS}, not {pollers.minimum} to {pollers.maximum}"
                )

    def _check_worker_batches(self) -> None:
        for priority, batch in self.worker_batches.items():
            if not (1 <= batch.size <= MAX_WORKER_BATCH and 1 <= batch.seconds <= MAX_BATCHING_SECONDS):
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: workers of {priority} tasks get 1 to {MAX_WORKER_BATCH} tasks after 1"
                    f" to {MAX_BATCHING_SECONDS} seconds, not {batch.size} after {batch.seconds}"
                )

    def _check_identities(self) -> None:
        """Check the identities of callers, pull workers, operators and the intake owner."""
        if self.authentication is Authentication.NONE and self.name != LOCAL:
            raise UnsafeEnvironment(f"environment {self.name!r} would let anyone call its API; use `iam` or `jwt`")
        if (self.authentication is Authentication.JWT) != bool(self.jwt_issuer and self.jwt_audience):
            raise UnsafeEnvironment(f"environment {self.name!r}: `jwt` needs issuer and audience, and only `jwt` does")
        if self.console and self.authentication is Authentication.IAM and not self.api_keys:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: a browser cannot sign requests for `iam`; the console needs `jwt` or"
                " `api_keys`"
            )
        if self.sign_in_client_id and not (self.console and self.authentication is Authentication.JWT):
            raise UnsafeEnvironment(f"environment {self.name!r}: people sign in to a console with `jwt` only")
        for origin in (*self.cors_origins, *self.sign_in_origins):
            if _ORIGIN.fullmatch(origin) is None:
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: {origin!r} is not an origin such as"
                    " https://console.example.org; http is allowed for http://localhost and http://127.0.0.1 only"
                )
        if self.codec_endpoint and _ORIGIN.match(self.codec_endpoint) is None:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: {self.codec_endpoint!r} is not an address such as https://codec.example.org"
            )
        self._check_domain()
        self._check_key()
        self._check_roles_and_teams()
        if self.intake_owner and _OWNER.fullmatch(self.intake_owner) is None:
            raise UnsafeEnvironment(f"environment {self.name!r}: {self.intake_owner!r} cannot own tasks")
        self._check_intake()

    def _check_intake(self) -> None:
        """Check the sources of events for intake rules."""
        sources = (*self.intake_patterns, *self.intake_queues, *self.intake_streams, *self.intake_log_groups)
        if sources and not self.intake_owner:
            raise UnsafeEnvironment(f"environment {self.name!r}: events for intake rules need an `intake_owner`")
        for pattern in self.intake_patterns:
            try:
                reject_pattern(pattern)
            except PatternInvalid as fault:
                place = ".".join(("intake_patterns", *fault.place))
                raise UnsafeEnvironment(f"environment {self.name!r}: {place} {fault}") from None
        for name, arns, form in (
            ("intake_queues", self.intake_queues, _QUEUE_ARN),
            ("intake_streams", self.intake_streams, _STREAM_ARN),
            ("intake_log_groups", self.intake_log_groups, _LOG_GROUP),
        ):
            for each in arns:
                if isinstance(arns, str) or form.fullmatch(each) is None:
                    raise UnsafeEnvironment(f"environment {self.name!r}: {each!r} in `{name}` is not valid")

    def _check_roles_and_teams(self) -> None:
        """Check the identities of operators and administrators, and the teams with their members."""
        if any(not name or set(name) & set(" \t\n#") for name in (*self.operators, *self.admins)):
            raise UnsafeEnvironment(f"environment {self.name!r}: an operator's identity has neither spaces nor `#`")
        for owner, members in self.teams.items():
            if _OWNER.fullmatch(owner) is None:
                raise UnsafeEnvironment(f"environment {self.name!r}: {owner!r} in `teams` cannot own tasks")
            if isinstance(members, str) or any(_OWNER.fullmatch(each) is None for each in members):
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: `teams` needs identities in the form of owners for {owner!r}, such as"
                    ' ("123456789012:role/Billing",)'
                )
        if not 0 <= self.key_cache_seconds <= MAX_KEY_CACHE_SECONDS:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: `key_cache_seconds` must be 0 to {MAX_KEY_CACHE_SECONDS}, as a revoked "
                "key may be accepted for that long"
            )
        if self.teams_claim and self.authentication is not Authentication.JWT:
            raise UnsafeEnvironment(f"environment {self.name!r}: only tokens (`jwt`) have a `teams_claim`")

    def _check_key(self) -> None:
        """Check the customer's key, which must not be an alias, because an alias could refer to another key later."""
        if self.kms_key_arn and not ("${Token[" in self.kms_key_arn or _KMS_KEY.fullmatch(self.kms_key_arn)):
            raise UnsafeEnvironment(
                f"environment {self.name!r}: {self.kms_key_arn!r} is not the ARN of a key in KMS, such as"
                " arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
            )

    def _check_domain(self) -> None:
        """Check the API's own domain."""
        if bool(self.domain_name) != bool(self.certificate_arn):
            raise UnsafeEnvironment(f"environment {self.name!r}: `domain_name` and `certificate_arn` need each other")
        if self.domain_name and _DOMAIN.fullmatch(self.domain_name) is None:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: {self.domain_name!r} is not a domain such as tasks.example.org"
            )
        if self.domain_name and not (
            "${Token[" in self.certificate_arn or _CERTIFICATE.fullmatch(self.certificate_arn)
        ):
            raise UnsafeEnvironment(
                f"environment {self.name!r}: {self.certificate_arn!r} is not the ARN of a certificate in AWS"
                " Certificate Manager"
            )

    def _check_retention(self) -> None:
        """Check retention and redaction.

        Tasks must outlive idempotency keys, so that a repeated request does not create them again.
        """
        limits = (
            ("retention_days", _SHORTEST_RETENTION_DAYS, MAX_RETENTION_DAYS),
            ("archive_days", 0, MAX_ARCHIVE_DAYS),
        )
        for setting, least, most in limits:
            by_type = f"{setting}_by_type"
            for name, days in (
                (setting, getattr(self, setting)),
                *((by_type, each) for each in getattr(self, by_type).values()),
            ):
                if not least <= days <= most:
                    raise UnsafeEnvironment(
                        f"environment {self.name!r}: `{name}` must be {least} to {most}, not {days}"
                    )
        for pattern, paths in self.redact.items():
            if isinstance(paths, str) or not all(_REDACTED.fullmatch(each) for each in paths):
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: `redact` for {pattern!r} must be a list of names, pointers such as"
                    f" '/customer/email', or '*', not {paths!r}"
                )
        for setting in ("retention_days_by_type", "archive_days_by_type", "redact"):
            for pattern in getattr(self, setting):
                if _TYPES.fullmatch(pattern) is None:
                    raise UnsafeEnvironment(f"environment {self.name!r}: {pattern!r} in `{setting}` can match nothing")

    @property
    def shortest_retention_days(self) -> int:
        """The shortest retention of ended tasks of any type, in days."""
        return min([self.retention_days, *self.retention_days_by_type.values()])

    @property
    def longest_archive_days(self) -> int:
        """The longest time that the archive keeps ended tasks of any type, in days; 0 if there is no archive."""
        return max([self.archive_days, *self.archive_days_by_type.values()])

    @property
    def longest_retention_days(self) -> int:
        """The longest retention of ended tasks of any type, in days."""
        return max([self.retention_days, *self.retention_days_by_type.values()])

    def _check_targets(self) -> None:
        """Check the pulled types and the targets."""
        for name, secret in self.http_secrets.items():
            if re.fullmatch(SECRET_NAME_PATTERN, name) is None or _SECRET_ARN.fullmatch(secret.arn) is None:
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: the secret {name!r} needs a name of letters, digits and _ . / -, and"
                    " the complete ARN of a secret in Secrets Manager"
                )
            if not secret.hosts or any(not host or set(host) & set("*/: \t\n") for host in secret.hosts):
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: say which hosts the secret {name!r} is sent to,"
                    " such as api.example.org"
                )
        for task_type, pullers in self.pulled_types.items():
            if re.fullmatch(TYPE_PATTERN, task_type) is None:
                raise UnsafeEnvironment(f"environment {self.name!r}: {task_type!r} cannot be a task's type")
            if not _are_owners(pullers):
                raise UnsafeEnvironment(f"environment {self.name!r}: say who may pull {task_type!r}; `*` is any caller")
        for pattern in self.aws_targets:
            is_target = service_of(pattern) is not None and _TARGETS.fullmatch(pattern) is not None
            if not is_target and not is_role(pattern):
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: {pattern!r} is not the ARN, with service and account,"
                    " of a function, queue, topic, event bus, state machine, task or job definition, cluster, job"
                    " queue, build project, Glue job or role"
                )
        self._check_reservations("type_owners", self.type_owners, _TYPES)
        self._check_reservations("target_owners", self.target_owners, _ARNS)

    def _check_reservations(
        self, setting: str, reserved: Mapping[str, tuple[str, ...]], patterns: re.Pattern[str]
    ) -> None:
        """Check reservations for owners, because a pattern that never matches would not protect anything."""
        for pattern, owners in reserved.items():
            if patterns.fullmatch(pattern) is None:
                raise UnsafeEnvironment(f"environment {self.name!r}: {pattern!r} in `{setting}` can match nothing")
            if not _are_owners(owners):
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: `{setting}` needs the owners of {pattern!r}, such as"
                    " 123456789012:role/Billing; `*` allows everybody"
                )


def _are_owners(patterns: Sequence[str]) -> bool:
    """Whether a setting is a tuple of owners or patterns of owners; a plain string is a common mistake."""
    return (
        bool(patterns)
        and not isinstance(patterns, str)
        and all(_OWNER.fullmatch(each) is not None for each in patterns)
    )


DEV = Environment(
    name="dev",
    concurrency={Priority.HIGH: 10, Priority.NORMAL: 10, Priority.LOW: 5},
    requests_per_second=50,
    request_burst=100,
    log_retention="ONE_WEEK",
    protected=False,
)
STAGING = Environment(
    name="staging",
    # Workers depend on the egress function, and everything depends on the trigger and the API, so these functions get
    # reserved concurrency.
    reserved={
        FunctionName.TRIGGER: 10,
        FunctionName.API: 100,
        FunctionName.EGRESS: 220,
        FunctionName.TOPOLOGY: 50,
        FunctionName.BULK: 10,
        FunctionName.DEADLETTER: 10,
    },
    long_polls=50,
    archive_days=30,
)
PROD = Environment(
    name="prod",
    # With the reservations, these numbers use up the default account limit of 1,000 (Source: AWS Lambda quotas). In an
    # account with a higher limit, raise all of them.
    concurrency={Priority.HIGH: 185, Priority.NORMAL: 185, Priority.LOW: 38},
    reserved={
        FunctionName.TRIGGER: 20,
        FunctionName.API: 150,
        FunctionName.EGRESS: 300,
        FunctionName.TOPOLOGY: 80,
        FunctionName.BULK: 10,
        FunctionName.DEADLETTER: 10,
    },
    long_polls=75,
    archive_days=400,
    # Half of an account's default rate, and all of its default burst (Source: API Gateway quotas).
    requests_per_second=5000,
    request_burst=5000,
    log_retention="THREE_MONTHS",
)
LOCAL_STACK = replace(
    DEV,
    name=LOCAL,
    target=Target.of_this_machine(),
    # The emulator's poller does not notice that a delay has expired, so only `exact` delivers every message in time.
    precision=Precision.EXACT,
    # Each invocation is a separate process on this machine and handles ten tasks at once.
    concurrency={Priority.HIGH: 4, Priority.NORMAL: 4, Priority.LOW: 4},
    authentication=Authentication.NONE,
    operators=("*",),
    admins=("*",),
    api_keys=True,
    console=True,
    long_polls=20,
    # This is the owner of requests that name no owner.
    intake_owner="local",
    event_bus="default",
    # People watch the local console, and nothing is billed.
    broadcast_batch_seconds=1,
    pulled_types={"pulled": ("*",)},
    # The address of a console under development.
    cors_origins=("http://localhost:5173", "http://127.0.0.1:5173"),
    # The demo's receiver listens on this machine.
    http_allow=("127.0.0.1",),
    requests_per_second=10_000,
    request_burst=10_000,
    # Logging a line takes longer than running a task, because the emulator waits until the line is printed.
    log_level="WARN",
    log_retention="ONE_DAY",
    audit_retention="",
)

PRESETS: Mapping[str, Environment] = {
    environment.name: environment for environment in (DEV, STAGING, PROD, LOCAL_STACK)
}
"""The presets by name."""


def with_settings(environment: Environment | str, settings: Mapping[str, Any]) -> Environment:
    """An environment, or the preset of that name, with some settings replaced.

    Raises:
        UnknownEnvironment: there is no preset of that name.
        UnknownSetting: there is no such setting.
        UnsafeEnvironment: the settings would leave the deployment open, or contradict each other.
    """
    if isinstance(environment, str):
        if environment not in PRESETS:
            raise UnknownEnvironment(environment, PRESETS)
        environment = PRESETS[environment]
    known = {field.name for field in fields(Environment)}
    for name in settings:
        if name not in known:
            raise UnknownSetting(name)
    return replace(environment, **settings)
