"""Hypothesis strategies for tasks and writes whose values a store returns unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from duetime.domain.conditional_writes import Guard, Write
from duetime.domain.ids import MAX_SHARDS, TaskId
from duetime.domain.tasks.action_history import NO_ACTIONS, Action, ActionHistory, ActionRecord, ActorType, Attribution
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord, TaskError, Wait
from duetime.domain.tasks.states import LEGAL, Move, State
from duetime.domain.tasks.targets import (
    Auth,
    AuthScheme,
    AwsService,
    AwsTarget,
    BodyKind,
    DefinitionRef,
    HandlerTarget,
    HttpRequest,
    HttpTarget,
    Keep,
    Phase,
    PullTarget,
    Query,
    RequestBody,
    ResponseOptions,
    TopologyTarget,
    arn_pattern,
)
from duetime.domain.tasks.task import Cause, Content, ContentPlace, Progress, RequestedAction, ScheduleRef, Task
from duetime.domain.tasks.task_options import LockMode, LockScope, LockSpec, NotifyOn, Priority, Rate, RetryPolicy
from duetime.domain.times import SECOND

# Each property runs on three implementations. All examples share a store, and each example has a separate task id.
properties = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# DynamoDB stores UTF-8, which cannot encode lone surrogates, and the API refuses them.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
ASCII = st.characters(codec="ascii")
INSTANTS = st.integers(0, 4_000_000_000_000)
COUNTS = st.integers(0, 1_000)
TASK_IDS = st.builds(TaskId.of, INSTANTS, st.integers(0, MAX_SHARDS - 1), st.integers(0, 2**64 - 1))
OWNERS = NAMES | st.sampled_from(["#", "a#b", "ann", "team#7"])
WAITS = st.floats(0, 86_400)


def contents(field: str) -> st.SearchStrategy[Content]:
    """Draw a payload or a result, stored in the record or outside."""
    inside = st.builds(Content, st.just(ContentPlace.RECORD), st.just(field), st.binary(max_size=200))
    json_like = st.builds(
        Content, st.just(ContentPlace.RECORD), st.just(field), TEXT.map(lambda text: text.encode() * 5)
    )
    runtime = st.builds(Content, st.sampled_from([ContentPlace.ITEM, ContentPlace.OBJECT]), NAMES)
    return inside | json_like | runtime


def _schedule_ref(ref: ScheduleRef, before: int | None, after: int | None) -> ScheduleRef:
    at = ref.nominal
    return replace(ref, previous=None if before is None else at - before, next=None if after is None else at + after)


SCHEDULE_REFS = st.builds(
    _schedule_ref,
    st.builds(
        ScheduleRef,
        st.from_regex(r"[A-Za-z0-9_.:-]{1,128}", fullmatch=True),
        COUNTS,
        INSTANTS,
        st.sampled_from(Cause),
        st.from_regex(r"[0-9A-Z]{0,6}", fullmatch=True),
        st.booleans(),
    ),
    st.none() | st.integers(1, 4_000_000_000_000),
    st.none() | st.integers(1, 4_000_000_000_000),
)
LINES = st.builds(
    AttemptRecord,
    st.integers(1, 200),
    st.integers(1, 500),
    TEXT | st.sampled_from(["a\tb", "\t"]),
    INSTANTS,
    COUNTS,
    st.integers(-5, 900_000),
    st.sampled_from(AttemptOutcome),
    st.none() | st.builds(TaskError, TEXT, TEXT),
    st.sampled_from(["", "$LATEST", "17"]),
)


JOBS_ONLY = {AwsService.ECS, AwsService.BATCH, AwsService.CODEBUILD, AwsService.GLUE}
"""Services whose resources can be targets only as jobs."""


def aws_targets(service: AwsService) -> st.SearchStrategy[AwsTarget]:
    """Draw any resource of a service, with any supported options."""
    arns = st.from_regex(arn_pattern(service).removesuffix("$"), fullmatch=True, alphabet=ASCII)
    options: dict[str, st.SearchStrategy[Any]] = {}
    if service is AwsService.LAMBDA:
        durable = st.builds(AwsTarget, st.just(service), arns, is_job=st.just(True))  # noqa: FBT003
        return durable | st.builds(AwsTarget, st.just(service), arns, waits=st.booleans())
    if service is AwsService.EVENTBRIDGE:
        options["detail_type"] = TEXT | st.just("async")
    if service is AwsService.STEP_FUNCTIONS:
        options["is_job"] = st.booleans()
    if service in JOBS_ONLY:
        options |= {"is_job": st.just(True), "parameters": st.just("") | TEXT}  # noqa: FBT003
    if service in {AwsService.ECS, AwsService.BATCH}:
        options["place"] = TEXT
    if service is AwsService.ECS:
        options["container"] = NAMES
    return st.builds(AwsTarget, st.just(service), arns, **options)


ACTIONS = st.builds(
    ActionRecord,
    st.sampled_from(Action),
    INSTANTS,
    st.builds(Attribution, st.sampled_from(ActorType), TEXT, TEXT, st.none() | TASK_IDS),
    st.none() | COUNTS,
    st.lists(st.sampled_from(["payload", "due_at"]), unique=True).map(tuple),
)

PAIRS = st.lists(st.tuples(NAMES, TEXT), max_size=2).map(tuple)
REQUESTS = st.just(HttpRequest()) | st.builds(
    HttpRequest,
    st.sampled_from(["", "GET", "POST"]),
    PAIRS,
    PAIRS,
    st.none() | st.builds(RequestBody, st.sampled_from(BodyKind), TEXT),
    st.lists(st.integers(200, 599), max_size=2).map(tuple),
    st.none() | st.builds(Auth, NAMES, st.sampled_from(AuthScheme), st.just("") | NAMES),
    st.builds(ResponseOptions, st.sampled_from(Keep), st.integers(1, 262_144), st.booleans()),
)


LOCKS = st.builds(
    LockSpec,
    st.from_regex(r"[A-Za-z0-9_.:-]{1,64}", fullmatch=True),
    st.none() | st.integers(1, 100),
    st.sampled_from(LockScope),
    st.none() | st.integers(1, 9),
    st.sampled_from(LockMode),
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "type": NAMES,
    "due_at": INSTANTS,
    "next_at": INSTANTS,
    "created_at": INSTANTS,
    "payload": contents("payload"),
    "priority": st.sampled_from(Priority),
    "target": st.sampled_from([HandlerTarget(), TopologyTarget()])
    | st.builds(DefinitionRef, st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.none() | st.integers(1, 99), TEXT).map(
        TopologyTarget
    )
    | st.just(PullTarget())
    | st.builds(
        HttpTarget, TEXT, st.frozensets(st.sampled_from(Phase)), st.frozensets(st.sampled_from(Query)), REQUESTS
    )
    | st.sampled_from(AwsService).flatmap(aws_targets),
    "retry": st.just(RetryPolicy()) | st.builds(RetryPolicy, st.integers(1, 100), WAITS, WAITS, WAITS),
    "timeout_seconds": st.just(60) | st.integers(1, 1_209_600),
    "notify_within_seconds": st.just(3600) | st.integers(1, 2_592_000),
    "rollback_on_failure": st.booleans(),
    "lock": st.none() | LOCKS,
    "locks": st.just(()) | st.lists(LOCKS, min_size=2, max_size=5).map(tuple),
    "rate": st.none()
    | st.builds(
        Rate,
        st.from_regex(r"[A-Za-z0-9_.:-]{1,64}", fullmatch=True),
        st.integers(1, 10_000),
        st.integers(1, 86_400),
        st.integers(0, 10_000),
    ),
    "rate_places": st.dictionaries(st.sampled_from(["crm", "type/report"]), INSTANTS),
    "callback_url": st.none() | NAMES,
    "notify_on": st.none() | st.builds(NotifyOn, NAMES, st.booleans(), st.none() | st.integers(60, 604_800)),
    "expires_seconds": st.none() | st.integers(1, 2_592_000),
    "fair_key": st.none() | st.sampled_from(["customer-17", "#w#!~"]),
    "fair_weight": st.integers(1, 5),
    "waiting_for": st.none() | TEXT.filter(bool),
    "waits": st.lists(st.builds(Wait, INSTANTS, TEXT), max_size=4).map(tuple),
    "name": TEXT,
    "tags": st.dictionaries(NAMES, TEXT, max_size=4),
    "schedule_ref": st.none() | SCHEDULE_REFS,
    "topology_schedule_ref": st.none() | SCHEDULE_REFS,
    "generation": COUNTS,
    "fence": COUNTS,
    "attempt": COUNTS,
    "sent": st.booleans(),
    "lease_worker": st.none() | TEXT,
    "lease_expires_at": st.none() | INSTANTS,
    "deferred_fence": st.none() | COUNTS,
    "job": st.none() | TEXT,
    "requested_action": st.none() | st.sampled_from(RequestedAction),
    "checkpoint": st.none() | contents("checkpoint"),
    "progress": st.none() | st.builds(Progress, st.integers(0, 100), TEXT),
    "result": st.none() | contents("result"),
    "error": st.none() | st.builds(TaskError, TEXT, TEXT),
    "started_at": st.none() | INSTANTS,
    "run_at": st.none() | INSTANTS,
    "finished_at": st.none() | INSTANTS,
    "expires_at": st.none() | INSTANTS.map(lambda at: at - at % SECOND),
    "attempt_history": st.lists(LINES, max_size=5).map(tuple),
    "actions": st.just(NO_ACTIONS)
    | st.builds(ActionHistory, st.lists(ACTIONS, min_size=1, max_size=5).map(tuple), st.integers(0, 99)),
    "cancellation": st.none() | ACTIONS,
}
"""Fields of a task that a write can change, besides those that every write changes (`state`, `version`, `nonce`)."""

TASKS = st.builds(
    Task,
    id=TASK_IDS,
    owner=OWNERS,
    state=st.sampled_from(State),
    version=st.integers(1, 1_000),
    nonce=TEXT.map(lambda text: f"created {text}"),
    **FIELDS,
)
_ONCE = ("lease_worker", "lease_expires_at", "started_at", "finished_at", "expires_at")
_COUNTED = ("generation", "fence", "attempt")


@st.composite
def writes_to(draw: st.DrawFn, task: Task) -> Write:
    """Draw a write that this task may or may not permit."""
    fitting = [move for move, rule in LEGAL.items() if task.state in rule.sources] or list(Move)
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), unique=True, max_size=6))
    once = draw(st.lists(st.sampled_from(_ONCE), unique=True, max_size=2))
    sets: Any = {name: draw(FIELDS[name]) for name in names}
    sets_once: Any = {name: draw(FIELDS[name].filter(lambda value: value is not None)) for name in once}
    return Write(
        task_id=task.id,
        move=draw(st.sampled_from(fitting) | st.sampled_from(fitting) | st.sampled_from(Move)),
        nonce="written",
        guard=draw(guards_near(task)),
        sets=sets,
        sets_once=sets_once,
        adds=draw(st.dictionaries(st.sampled_from(_COUNTED), st.integers(0, 3), max_size=2)),
    )


def guards_near(task: Task) -> st.SearchStrategy[Guard]:
    """Draw guards that this task satisfies or misses by the smallest step."""

    def near(value: int) -> st.SearchStrategy[int | None]:
        return st.none() | st.just(value) | st.sampled_from([value + 1, max(0, value - 1)])

    usual = st.builds(
        Guard,
        owner=st.sampled_from([None, task.owner]),
        generation=st.sampled_from([None, task.generation]),
        due_by=st.sampled_from([None, task.next_at]),
        leased_until_before=st.sampled_from([None, task.lease_expires_at or 0]),
        alone=st.booleans(),
        open=st.booleans(),
        not_cancelled=st.booleans(),
    )
    return usual | st.builds(
        Guard,
        owner=st.none() | st.just(task.owner) | OWNERS,
        generation=near(task.generation),
        fence=near(task.fence),
        version=near(task.version),
        due_by=near(task.next_at),
        leased_until_before=near(task.lease_expires_at or 0),
        alone=st.booleans(),
        open=st.booleans(),
        not_cancelled=st.booleans(),
    )
