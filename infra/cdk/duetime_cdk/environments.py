"""The settings of a deployment, and four sets of them to begin with: `DEV`, `STAGING`, `PROD` and `LOCAL`.

A project's own settings are one of these with what is different: `replace(PROD, alarm_email="ops@example.org")`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from duetime.contract.tasks.fields import OWNER_PATTERN, TYPE_PATTERN
from duetime.contract.tasks.http_request_fields import SECRET_NAME_PATTERN
from duetime.domain.dispatch.enqueue_plan import Precision
from duetime.domain.ids import MAX_SHARDS
from duetime.domain.limits import (
    MAX_ARCHIVE_DAYS,
    MAX_METRIC_VALUES,
    SHORTEST_WORKER_LEASE_SECONDS,
    WORKER_FUNCTION_SECONDS,
)
from duetime.domain.tasks.arns import is_role, service_of
from duetime.domain.tasks.costs import WORKER_GIGABYTES
from duetime.domain.tasks.task_options import Priority
from duetime.settings import Authentication
from duetime_cdk.errors import NotDeployable
from duetime_cdk.layers.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.domain.tasks.allowed_targets import HttpSecret

LOCAL = "local"
"""The environment that is deployed to the embedded AWS of one machine."""
_LEAST_UNRESERVED = 100
"""Concurrency that must be left to functions without a reservation (Source: AWS Lambda Developer Guide, reserved
concurrency)."""
_TARGETS = re.compile(r"arn:aws(-[a-z]+)*:[a-z]+:[a-z0-9*?-]+:[0-9]{12}:[A-Za-z0-9_./:$*?-]+")
_OWNER = re.compile(OWNER_PATTERN)
_SECRET_ARN = re.compile(r"arn:aws(-[a-z]+)*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+-\w{6}")
_ORIGIN = re.compile(r"(https://[a-z0-9]([a-z0-9.-]*[a-z0-9])?|http://(localhost|127\.0\.0\.1))(:[0-9]{1,5})?")


class UnknownEnvironment(NotDeployable, LookupError):
    """An environment was requested that nothing describes."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no environment {name!r}; choose one of {', '.join(sorted(known))}: -c env=dev")


class UnknownSetting(NotDeployable, TypeError):
    """A setting was given that environments do not have."""

    def __init__(self, name: str) -> None:
        meant = get_close_matches(name, [field.name for field in fields(Environment)], n=1)
        super().__init__(f"there is no setting {name!r}{f'; did you mean {meant[0]!r}?' if meant else ''}")


@dataclass(frozen=True, slots=True)
class Pollers:
    """Provisioned pollers of a queue: they are ready for a burst, and are paid for by the hour.

    Source: AWS Lambda API Reference, "ProvisionedPollerConfig".
    """

    minimum: int
    """How many are always ready."""
    maximum: int
    """How many there are at most."""


POLLER_INVOCATIONS = 10
"""Invocations at once of one provisioned poller (Source: AWS Lambda Developer Guide, "Configuring scaling behavior for
SQS event source mappings")."""
LEAST_POLLERS, MOST_READY_POLLERS, MOST_POLLERS = 2, 200, 2_000
"""How many of one queue can always be ready, at least and at most, and how many there can be (Source: AWS Lambda API
Reference, "ProvisionedPollerConfig")."""


class UnsafeEnvironment(NotDeployable, ValueError):
    """The settings of an environment would leave it open, or contradict each other."""


class FunctionName(StrEnum):
    """The functions: each is a folder of `functions/`."""

    API = "api"
    """Answers REST calls."""
    TRIGGER = "trigger"
    """Reads the due minutes and fills the queues."""
    WORKER = "worker"
    """Claims tasks and runs their targets."""
    DEADLETTER = "deadletter"
    """Handles messages that the worker could not."""
    INTAKE = "intake"
    """Makes tasks of events; deployed where the settings name their owner."""
    TOPOLOGY = "topology"
    """Does the states of the state machine that runs topologies."""
    BULK = "bulk"
    """Carries out what concerns many tasks: cancels by a filter, pauses of large topologies."""
    WATCH = "watch"
    """Takes the events of the WebSocket API: connections of those who watch, and what they subscribe to."""
    BROADCAST = "broadcast"
    """Reads the table's stream, and tells others of the changes."""
    CONSOLE = "console"
    """Serves the files of the web console; deployed where the settings say so."""
    ARCHIVE = "archive"
    """Copies the tasks that TTL removes from the table to S3; deployed where the settings say how long to keep them."""
    EGRESS = "egress"
    """Makes the HTTP calls of the worker and the API; it may do nothing else."""


@dataclass(frozen=True, slots=True)
class FunctionSize:
    """How large one function is."""

    memory_mb: int
    """Memory; the share of a processor grows with it (1769 MB is one)."""
    timeout_seconds: int
    """How long an invocation may take."""


SIZES: Mapping[FunctionName, FunctionSize] = {
    # The HTTP API itself gives up after 30 seconds.
    FunctionName.API: FunctionSize(memory_mb=512, timeout_seconds=29),
    FunctionName.TRIGGER: FunctionSize(memory_mb=1024, timeout_seconds=300),
    # The longest that Lambda allows, for a target may use it up.
    FunctionName.WORKER: FunctionSize(
        memory_mb=round(WORKER_GIGABYTES * 1024), timeout_seconds=WORKER_FUNCTION_SECONDS
    ),
    FunctionName.DEADLETTER: FunctionSize(memory_mb=256, timeout_seconds=60),
    FunctionName.INTAKE: FunctionSize(memory_mb=512, timeout_seconds=60),
    # Creates the tasks of up to 10 000 nodes.
    FunctionName.TOPOLOGY: FunctionSize(memory_mb=1024, timeout_seconds=300),
    # As long as Lambda allows: what is slow on purpose goes on for hours, in one invocation after the other.
    FunctionName.BULK: FunctionSize(memory_mb=1024, timeout_seconds=900),
    # The WebSocket API itself gives up after 29 seconds.
    FunctionName.WATCH: FunctionSize(memory_mb=512, timeout_seconds=29),
    # It hands out files that it has in memory.
    FunctionName.CONSOLE: FunctionSize(memory_mb=256, timeout_seconds=10),
    # As long as a batch of changes may take to be told; the next one of the same shard waits for it.
    FunctionName.BROADCAST: FunctionSize(memory_mb=512, timeout_seconds=60),
    # A thousand tasks, each with a payload and a result of up to 200 KB before they are compressed together.
    FunctionName.ARCHIVE: FunctionSize(memory_mb=1024, timeout_seconds=300),
    # It waits; but ten handshakes at once should not take their time from the endpoints.
    FunctionName.EGRESS: FunctionSize(memory_mb=512, timeout_seconds=900),
}
"""Size of each function, where an environment does not say otherwise."""


_SELDOM = {
    FunctionName.BULK: 10,
    FunctionName.DEADLETTER: 10,
    FunctionName.BROADCAST: 10,
    FunctionName.WATCH: 10,
    # Once in five minutes for each shard of the table's stream.
    FunctionName.ARCHIVE: 2,
}
"""Concurrency for functions that are seldom invoked, where nothing is reserved for them."""

CLOUD = Target.of_lambda("3.14", "arm64")
"""The newest Python that Lambda offers, on the processor that does the same for a fifth less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One deployment of the whole stack."""

    name: str
    """What `-c env=` chooses and the stack is named after."""
    target: Target = CLOUD
    """Python and processor of the functions and their layers."""
    sizes: Mapping[FunctionName, FunctionSize] = field(default_factory=lambda: SIZES)
    """Memory and timeout of each function."""

    shards: int = 16
    """S, the number of shards that new tasks are spread over (1 to 65536)."""
    look_ahead_seconds: int = 180
    """How far ahead of the clock the trigger reads."""
    precision: Precision = Precision.NORMAL
    """How much of a wait the worker holds to be on time, and so is paid for."""
    lease_seconds: int = 30
    """How long a silent worker keeps its task before another may take it (at least 15)."""
    retention_days: int = 30
    """How long a finished task can be read."""
    archive_days: int = 0
    """How long ended tasks are kept in the archive in S3 after the table's retention; one that its user deletes before
    that is not archived. 0: there is no archive, and what the retention is over of is gone."""
    keep_tracebacks: bool = True
    """Whether the traceback of a task's last failed attempt can be read with its attempts; it is one more write of each
    attempt that fails. If not, it is only logged."""
    concurrency: Mapping[Priority, int] = field(
        default_factory=lambda: {Priority.HIGH: 100, Priority.NORMAL: 100, Priority.LOW: 20}
    )
    """Most worker invocations at once for each priority's queue (2 to 1000), ten tasks each."""
    provisioned_pollers: Mapping[Priority, Pollers] = field(default_factory=dict)
    """Priorities whose queues are read by pollers of their own, at least and at most so many: `{Priority.HIGH:
    Pollers(minimum=20, maximum=200)}`. Each invokes up to 10 workers at once, so `concurrency` no longer limits these
    priorities; there are up to 2 000 pollers instead of 1 000 invocations, a burst finds the least number ready, and
    AWS bills each hour of each poller. Empty: Lambda's own pollers, at no price."""
    reserved: Mapping[FunctionName, int] = field(default_factory=dict)
    """Concurrent invocations that are kept free for a function, and are the most that it gets: of the account's limit,
    which all functions of the account share. Empty: the functions take what is left."""

    long_polls: int = 5
    """Maximum number of API requests that wait at once (`wait_seconds`), for an outcome or for tasks to lease: each
    keeps one of the API's executions busy meanwhile. Further requests are answered at once, as at the end of their
    wait."""

    authentication: Authentication = Authentication.IAM
    """Who may call the API: signed requests (`iam`), bearer tokens (`jwt`), anyone (`none`, local only)."""
    jwt_issuer: str = ""
    """`jwt` only: the issuer whose tokens are accepted, an https URL."""
    jwt_audience: tuple[str, ...] = ()
    """`jwt` only: the audiences (client ids) that are accepted."""
    pulled_types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Task types that pull workers lease, a queue each, and who may lease them: identities as owners are named, such
    as `123456789012:role/Workers`; `*` is any caller of the API. They are handed the tasks of all owners."""
    operators: tuple[str, ...] = ()
    """Who may use switches for all owners: identities as owners are named, such as `123456789012:role/Operations`."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the API from a browser, such as `https://console.example.org`. Empty: none may."""
    console: bool = False
    """Whether the web console is served, at `/console` of the API; not with `iam`, because a browser cannot sign
    requests."""
    sign_in_client_id: str = ""
    """Client id of the console at the identity provider (`jwt_issuer`): people sign in there, by OpenID Connect's code
    flow with PKCE. A public client, without a secret, whose redirect URL is the console's. One of `jwt_audience`,
    unless the provider's access tokens name another of them. Empty: the console asks for a token."""
    sign_in_origins: tuple[str, ...] = ()
    """Origins of the identity provider besides the issuer's own that the console asks for tokens, such as
    `https://example.auth.eu-west-1.amazoncognito.com`."""
    requests_per_second: int = 500
    """Steady rate of API requests above which callers get 429."""
    request_burst: int = 1000
    """Requests that may come at once before that rate is enforced."""

    handlers_folder: str = ""
    """Folder of your handlers, in that of the project: the package, its `requirements.txt` and its `grants.json`."""
    handlers_package: str = ""
    """Import name of your package of handlers in that folder; empty for the only one there."""
    handlers_imported: bool = True
    """Whether that package is imported before it is deployed: one that cannot be is rejected, and so are tasks of types
    that it does not handle. `False` for a package that can be imported in Lambda only."""
    http_allow: tuple[str, ...] = ()
    """Hosts that HTTP targets may reach although they are not public."""
    http_secrets: Mapping[str, HttpSecret] = field(default_factory=dict)
    """Secrets of Secrets Manager that HTTP targets may be called with, by the names that tasks give, and the hosts that
    each is sent to: `{"crm": HttpSecret("arn:…", hosts=("api.crm.example",))}`. With `owners`, only their tasks may use
    it. The egress function is granted exactly these."""

    aws_targets: tuple[str, ...] = ()
    """ARNs of the AWS resources that tasks may call, with `*` and `?`; the worker is granted exactly these.
    For tasks of ECS: task definitions, the clusters that they run on, and the roles that their containers are given;
    for jobs of Batch: job definitions and job queues."""

    intake_owner: str = ""
    """Who owns the tasks that are made of events: an identity as owners are named. Empty: there is no intake."""
    intake_bus: str = "default"
    """Name of the event bus whose events become tasks."""
    intake_detail_type: str = "duetime task"
    """Detail type of those events."""
    intake_batch_size: int = 100
    """Most events that an invocation is given (1 to 10000; above 10 it needs a window)."""
    intake_batch_seconds: int = 1
    """Batching window of the intake queue, in seconds (0 to 300)."""
    intake_concurrency: int = 20
    """Most intake invocations at once (2 to 1000)."""

    event_bus: str = ""
    """Name of the event bus that receives events of tasks and skipped occurrences, such as `default`; each
    event costs. Empty: none are."""
    summary_spread: int = 1
    """Into how many parts each owner's counts of tasks are split, so that none is written too often: one for each 1 000
    tasks a second. It may be raised, not lowered. 0: tasks are not counted, and there is no `GET /v1/summary`."""
    summary_recount_megabytes: int = 100
    """How many megabytes of the table are read every five minutes while older tasks are counted anew (100: at most 0.5
    dollars a day, and some 25 million tasks). 0: they are not, and the summary lacks what its changes did not tell."""
    broadcast_batch_size: int = 500
    """Most changes of the table that an invocation of `broadcast` is given (1 to 1000; 6 MB must hold them)."""
    broadcast_batch_seconds: int = 5
    """Batching window of the table's stream, in seconds (0 to 300): longer means fewer invocations and writes of the
    summary, later live updates and events. 1 where people watch; with few tasks, each change is then paid for alone."""
    broadcast_concurrency: int = 1
    """Most invocations of `broadcast` at once for each shard of the table's stream (1 to 10)."""

    log_level: Literal["DEBUG", "INFO", "WARN", "ERROR"] = "INFO"
    """The least severe level that the functions log."""
    log_retention: Literal["ONE_DAY", "ONE_WEEK", "ONE_MONTH", "THREE_MONTHS", "ONE_YEAR"] = "ONE_MONTH"
    """How long logs are kept."""
    protected: bool = True
    """Whether the table and the bucket reject deletion and outlive the stack."""
    metric_owners: tuple[str, ...] = ()
    """Owners whose tasks' final failures have metrics of their own. CloudWatch bills each one."""
    metric_types: tuple[str, ...] = ()
    """Types of tasks whose lateness and duration have metrics of their own. CloudWatch bills each one."""
    xray: bool = False
    """Whether X-Ray traces the invocations of the functions and the runs of topologies (active tracing). It records the
    first request of each second and a twentieth of the others, which Lambda lets nobody change: traffic that is thin is
    recorded completely, which costs more than its tasks do."""
    otlp_endpoint: str = ""
    """URL that the functions export spans to, with OTLP over HTTP, such as `http://localhost:4318` for the collector of
    the layer below; empty for none."""
    otlp_layer: str = ""
    """ARN of the version of a Lambda layer with OpenTelemetry's SDK and its OTLP exporter for Python, such as AWS's own
    (ADOT), which brings a collector too; needed with `otlp_endpoint`."""
    heartbeat_url: str = ""
    """URL of a monitor outside (a dead man's switch), which is fetched after each good tick; empty for none."""
    failures_alarm: int = 10
    """Final failures of tasks within five minutes that are an alarm."""
    accepted_objective: float = 99.9
    """Percent of requests that the API must not answer with a server error; 0 for no alarm."""
    on_time_objective: float = 99
    """Percent of attempts that must start within a second of their plan; 0 for no alarm."""
    docs_url: str = ""
    """Base URL of these docs in the texts of alarms, such as the URL of a repository."""
    alarm_email: str = ""
    """E-mail address for alarms; empty for none (the topic can be subscribed to)."""

    @property
    def functions(self) -> list[FunctionName]:
        """The functions that are deployed."""
        without = {
            FunctionName.INTAKE: not self.intake_owner,
            FunctionName.ARCHIVE: not self.archive_days,
            FunctionName.CONSOLE: not self.console,
        }
        return [name for name in FunctionName if not without.get(name)]

    @property
    def recounts_summary(self) -> bool:
        """Whether older tasks are counted anew by reading the table."""
        return self.summary_spread > 0 and self.summary_recount_megabytes > 0

    def workers_at_once(self, priority: Priority) -> int:
        """The most worker invocations at once for a priority."""
        pollers = self.provisioned_pollers.get(priority)
        return pollers.maximum * POLLER_INVOCATIONS if pollers else self.concurrency[priority]

    @property
    def concurrency_needed(self) -> int:
        """The account's limit of concurrent executions that holds all of this: Lambda keeps 100 unreserved."""
        intake = self.intake_concurrency if self.intake_owner else 0
        others = {name: number for name, number in _SELDOM.items() if name in self.functions}
        seldom = sum(number for name, number in others.items() if name not in self.reserved)
        shared = sum(map(self.workers_at_once, self.concurrency)) + intake + seldom
        return sum(self.reserved.values()) + max(shared, _LEAST_UNRESERVED)

    def __post_init__(self) -> None:
        """Reject settings that would leave the deployment open or half configured."""
        if not 1 <= self.shards <= MAX_SHARDS:
            raise UnsafeEnvironment(f"environment {self.name!r}: {self.shards} shards; 1 to {MAX_SHARDS} are possible")
        if self.lease_seconds < SHORTEST_WORKER_LEASE_SECONDS:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: a lease of {self.lease_seconds} s cannot be renewed in time;"
                f" {SHORTEST_WORKER_LEASE_SECONDS} s is the shortest"
            )
        api = self.reserved.get(FunctionName.API)
        if not 0 < self.long_polls < (api or _LEAST_UNRESERVED):
            raise UnsafeEnvironment(
                f"environment {self.name!r}: {self.long_polls} requests that wait would leave the API nothing of"
                f" {api or _LEAST_UNRESERVED} executions, or is no number of them"
            )
        if not 0 <= self.archive_days <= MAX_ARCHIVE_DAYS:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: an archive of {self.archive_days} days; 0 (none) to {MAX_ARCHIVE_DAYS} are"
                " possible"
            )
        self._check_pollers()
        self._check_identities()
        self._check_targets()
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

    def _check_pollers(self) -> None:
        for priority, pollers in self.provisioned_pollers.items():
            are_ready = LEAST_POLLERS <= pollers.minimum <= MOST_READY_POLLERS
            if not are_ready or not pollers.minimum <= pollers.maximum <= MOST_POLLERS:
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: {pollers.minimum} to {pollers.maximum} pollers of {priority} tasks;"
                    f" {LEAST_POLLERS} to {MOST_READY_POLLERS} can be ready, and {MOST_POLLERS} are the most"
                )

    def _check_identities(self) -> None:
        """Who may call, pull, operate, and own what events make."""
        if self.authentication is Authentication.NONE and self.name != LOCAL:
            raise UnsafeEnvironment(f"environment {self.name!r} would let anyone call its API; use `iam` or `jwt`")
        if (self.authentication is Authentication.JWT) != bool(self.jwt_issuer and self.jwt_audience):
            raise UnsafeEnvironment(f"environment {self.name!r}: `jwt` needs issuer and audience, and only `jwt` does")
        if self.console and self.authentication is Authentication.IAM:
            raise UnsafeEnvironment(
                f"environment {self.name!r}: a browser cannot sign requests for `iam`; the console needs `jwt`"
            )
        if self.sign_in_client_id and not (self.console and self.authentication is Authentication.JWT):
            raise UnsafeEnvironment(f"environment {self.name!r}: people sign in to a console with `jwt` only")
        for origin in (*self.cors_origins, *self.sign_in_origins):
            if _ORIGIN.fullmatch(origin) is None:
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: {origin!r} is no origin such as https://console.example.org; without"
                    " encryption only http://localhost and http://127.0.0.1 are"
                )
        if any(not name or set(name) & set(" \t\n#") for name in self.operators):
            raise UnsafeEnvironment(f"environment {self.name!r}: an operator's identity has neither spaces nor `#`")
        if self.intake_owner and _OWNER.fullmatch(self.intake_owner) is None:
            raise UnsafeEnvironment(f"environment {self.name!r}: {self.intake_owner!r} cannot own tasks")

    def _check_targets(self) -> None:
        """What may be pulled, and called."""
        for name, secret in self.http_secrets.items():
            if re.fullmatch(SECRET_NAME_PATTERN, name) is None or _SECRET_ARN.fullmatch(secret.arn) is None:
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: the secret {name!r} needs a name of letters, digits and _ . / -, and"
                    " the whole ARN of a secret in Secrets Manager"
                )
            if not secret.hosts or any(not host or set(host) & set("*/: \t\n") for host in secret.hosts):
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: say which hosts the secret {name!r} is sent to,"
                    " such as api.example.org"
                )
        for task_type, pullers in self.pulled_types.items():
            if re.fullmatch(TYPE_PATTERN, task_type) is None:
                raise UnsafeEnvironment(f"environment {self.name!r}: {task_type!r} cannot be a task's type")
            if not pullers or any(not name or set(name) & set(" \t\n#") for name in pullers):
                raise UnsafeEnvironment(f"environment {self.name!r}: say who may pull {task_type!r}; `*` is any caller")
        for pattern in self.aws_targets:
            is_target = service_of(pattern) is not None and _TARGETS.fullmatch(pattern) is not None
            if not is_target and not is_role(pattern):
                raise UnsafeEnvironment(
                    f"environment {self.name!r}: {pattern!r} is no ARN of a function, queue, topic, event bus, state"
                    " machine, task or job definition, cluster, job queue, build project, Glue job or role whose"
                    " service and account are named"
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
    # Workers wait for the egress, and everything for the trigger and the API: these come first.
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
    # With what is reserved, all of the 1 000 that an account has at first (Source: AWS Lambda quotas). An account whose
    # limit was raised can have more of everything.
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
    # Half of an account's rate, and all of its burst, as they are at first (Source: API Gateway quotas).
    requests_per_second=5000,
    request_burst=5000,
    log_retention="THREE_MONTHS",
)
LOCAL_STACK = replace(
    DEV,
    name=LOCAL,
    target=Target.of_this_machine(),
    # The emulator's poller does not wake for an expired delay: only `exact` has every message there in time.
    precision=Precision.EXACT,
    # Each is a process of its own on this machine; it works on ten tasks at once.
    concurrency={Priority.HIGH: 4, Priority.NORMAL: 4, Priority.LOW: 4},
    authentication=Authentication.NONE,
    operators=("*",),
    console=True,
    long_polls=20,
    # The owner of requests that name none.
    intake_owner="local",
    event_bus="default",
    # Its console is watched, and nothing is paid for.
    broadcast_batch_seconds=1,
    pulled_types={"pulled": ("*",)},
    # Where a console that is being worked on is served.
    cors_origins=("http://localhost:5173", "http://127.0.0.1:5173"),
    # The demo's receiver listens on this machine.
    http_allow=("127.0.0.1",),
    requests_per_second=10_000,
    request_burst=10_000,
    # A printed line costs more than a task there, because the emulator waits for it.
    log_level="WARN",
    log_retention="ONE_DAY",
)

PRESETS: Mapping[str, Environment] = {
    environment.name: environment for environment in (DEV, STAGING, PROD, LOCAL_STACK)
}
"""The sets of settings to begin with, by name."""


def with_settings(environment: Environment | str, settings: Mapping[str, Any]) -> Environment:
    """An environment, or the preset of that name, with other values of some settings.

    Raises:
        UnknownEnvironment: there is no preset of that name.
        UnknownSetting: environments have no such setting.
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
