"""Encodes a task's small fields as attribute values, and decodes them.

If an encoding is `None`, the attribute is left out, which means that the field has its default.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeAlias

from duetime.adapters.dynamodb.attribute_values import packed, unpacked
from duetime.domain.ids import TaskId
from duetime.domain.tasks.action_history import Action, ActionHistory, ActionRecord, ActorType, Attribution
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord, TaskError, Wait
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import (
    ApprovalTarget,
    Auth,
    AuthScheme,
    AwsService,
    AwsTarget,
    BodyKind,
    CallbackTarget,
    CallBatch,
    DefinitionRef,
    EventTarget,
    HandlerTarget,
    HttpRequest,
    HttpTarget,
    Keep,
    OnTimeout,
    Phase,
    PullTarget,
    Query,
    RequestBody,
    ResponseOptions,
    TopologyTarget,
    WaitingTarget,
    service_of,
)
from duetime.domain.tasks.task import (
    Cause,
    Content,
    ContentPlace,
    NodeRef,
    Progress,
    RequestedAction,
    ScheduleRef,
    Task,
)
from duetime.domain.tasks.task_options import (
    DEFAULT_RETRY,
    AfterFailure,
    Debounce,
    LockMode,
    LockScope,
    LockSpec,
    NotifyOn,
    OnConflict,
    OrderKey,
    Priority,
    Rate,
    RetryPolicy,
    Unique,
    Until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.adapters.dynamodb.attribute_values import Value
    from duetime.domain.tasks.dependencies import Dependencies
    from duetime.domain.tasks.targets import Target


Part: TypeAlias = "tuple[Callable[[Any], str], Callable[[str], Any]]"
"""A function that encodes one field as text, and a function that decodes this text."""
_INTEGER: Part = (str, int)
_HEXADECIMAL: Part = (lambda number: f"{number:x}", lambda text: int(text, 16))
_FLOAT: Part = (repr, float)
_OR_ZERO: Part = (lambda number: str(number or 0), lambda text: int(text) or None)
_FLAG: Part = (lambda flag: "f" if flag else "-", lambda text: text == "f")
_TEXT: Part = (str, str)


class TextCodec:
    """Encodes a small value as text with its fields in order, separated by spaces.

    Only the last field may contain spaces.
    """

    def __init__(self, kind: type, **parts: Part) -> None:
        self._kind, self._parts = kind, parts

    def encode(self, value: object) -> Value:
        """Encode the value."""
        return {"S": " ".join(write(getattr(value, name)) for name, (write, _) in self._parts.items())}

    def decode(self, value: Value) -> Any:  # noqa: ANN401 - an object of the class `kind`
        """Decode the value."""
        texts = str(value["S"]).split(" ", len(self._parts) - 1)
        parts = zip(self._parts.items(), texts, strict=True)
        return self._kind(**{name: read(text) for (name, (_, read)), text in parts})


class _NotifyOnCodec:
    """Encodes `NotifyOn` as text: flag, seconds of lateness and any limit for long runs, and address."""

    _RUN = "+"

    def encode(self, value: NotifyOn) -> Value:
        """Encode the value."""
        run = "" if value.running_seconds is None else f"{self._RUN}{value.running_seconds}"
        return {"S": f"{_FLAG[0](value.failed)} {_OR_ZERO[0](value.late_seconds)}{run} {value.to}"}

    def decode(self, value: Value) -> NotifyOn:
        """Decode the value."""
        failed, times, to = str(value["S"]).split(" ", 2)
        late, _, run = times.partition(self._RUN)
        return NotifyOn(to, _FLAG[1](failed), _OR_ZERO[1](late), int(run) if run else None)


RETRY = TextCodec(
    RetryPolicy,
    max_attempts=_INTEGER,
    initial_seconds=_FLOAT,
    multiplier=_FLOAT,
    max_seconds=_FLOAT,
    max_duration_seconds=_OR_ZERO,
)
LOCK = TextCodec(
    LockSpec,
    max_holders=_OR_ZERO,
    scope=(str, LockScope),
    wait_seconds=_OR_ZERO,
    mode=(lambda mode: mode.value[0], {mode.value[0]: mode for mode in LockMode}.__getitem__),
    key=_TEXT,
)
RATE = TextCodec(Rate, limit=_INTEGER, per_seconds=_INTEGER, burst=_INTEGER, key=_TEXT)
NOTIFY_ON = _NotifyOnCodec()
UNIQUE = TextCodec(Unique, until=(str, Until), on_conflict=(str, OnConflict), key=_TEXT)
ORDER = TextCodec(OrderKey, on_failure=(str, AfterFailure), key=_TEXT)
DEBOUNCE = TextCodec(Debounce, seconds=_INTEGER, max_seconds=_OR_ZERO, key=_TEXT)
PROGRESS = TextCodec(Progress, percent=_INTEGER, message=_TEXT)
_WAIT = TextCodec(Wait, since=_HEXADECIMAL, reason=_TEXT)


def traceparent(value: str) -> Value:
    """Encode the trace of a task's creation in 25 bytes, with the trace id, the parent and the flags."""
    return {"B": bytes.fromhex("".join(value.split("-")[1:]))}


def read_traceparent(value: Value) -> str:
    """Decode the trace of a task's creation."""
    data = bytes(value["B"]).hex()
    return f"00-{data[:32]}-{data[32:48]}-{data[48:]}"


def name(value: str) -> Value | None:
    """Encode a task's name; `None` for an empty name."""
    return {"S": value} if value else None


def state(value: State) -> Value:
    """Encode a task's state."""
    return {"S": value.value}


def read_state(value: Value) -> State:
    """Decode a task's state."""
    return State(value["S"])


def priority(value: Priority) -> Value | None:
    """Encode a priority; `None` for the default."""
    return None if value is Priority.NORMAL else {"S": value.value}


def read_priority(value: Value) -> Priority:
    """Decode a priority."""
    return Priority(value["S"])


def unless_default(field: str) -> Callable[[int], Value | None]:
    """Return a function that encodes a number, or returns `None` for the field's default."""
    default = Task.__dataclass_fields__[field].default
    return lambda value: None if value == default else {"N": str(value)}


def requested_action(value: RequestedAction) -> Value:
    """Encode a user's request to the running attempt."""
    return {"S": value.value}


def read_requested_action(value: Value) -> RequestedAction:
    """Decode a user's request to the running attempt."""
    return RequestedAction(value["S"])


def content(value: Content) -> Value:
    """Encode a payload or result as its packed bytes, or as the place where it is stored and its name there."""
    if not value.is_outside:
        return packed(value.data or b"")
    return {"L": [{"S": value.place.value}, {"S": value.name}]}


def read_content(field: str, value: Value) -> Content:
    """Decode a payload or result. Content in the record is named after its field."""
    if "L" in value:
        place, name = value["L"]
        return Content(ContentPlace(place["S"]), name["S"])
    return Content(ContentPlace.RECORD, field, unpacked(value))


def locks(value: tuple[LockSpec, ...]) -> Value | None:
    """Encode several locks; `None` for no locks."""
    return {"L": [LOCK.encode(each) for each in value]} if value else None


def read_locks(value: Value) -> tuple[LockSpec, ...]:
    """Decode several locks."""
    return tuple(LOCK.decode(each) for each in value["L"])


def retry(value: RetryPolicy) -> Value | None:
    """Encode a retry policy; `None` for the default."""
    return None if value == DEFAULT_RETRY else RETRY.encode(value)


def rate_places(value: Mapping[str, int]) -> Value | None:
    """Encode places in the queues of rates, by key; `None` for no places."""
    return {"M": {key: {"N": str(place)} for key, place in value.items()}} if value else None


def read_rate_places(value: Value) -> Mapping[str, int]:
    """Decode places in the queues of rates."""
    return {key: int(place["N"]) for key, place in value["M"].items()}


def tags(value: dict[str, str]) -> Value | None:
    """Encode tags; `None` for no tags."""
    return {"M": {key: {"S": tag} for key, tag in value.items()}} if value else None


def read_tags(value: Value) -> dict[str, str]:
    """Decode tags."""
    return {key: tag["S"] for key, tag in value["M"].items()}


def nodes(value: tuple[str, ...]) -> Value | None:
    """Encode node names; `None` for no names."""
    return {"L": [{"S": name} for name in value]} if value else None


def read_nodes(value: Value) -> tuple[str, ...]:
    """Decode node names."""
    return tuple(str(each["S"]) for each in value["L"])


def waits(value: tuple[Wait, ...]) -> Value | None:
    """Encode a task's waits; `None` for no waits."""
    return {"L": [_WAIT.encode(wait) for wait in value]} if value else None


def read_waits(value: Value) -> tuple[Wait, ...]:
    """Decode a task's waits."""
    return tuple(map(_WAIT.decode, value["L"]))


TOPOLOGY = "topology"
"""Key that only a topology target's map has."""
_HTTP = "http"
_PULL = "pull"
_APPROVAL = "approval"
_EVENT = "event"
_BEFORE_CONDITION = "\n"
"""Separates an event's key from the condition. Keys contain no control characters."""
_ARN = "arn:"
_CALLBACK = "callback"
_NOTIFIES = "async"
_PHASES = {Phase.PREPARE: "P", Phase.RUN: "R", Phase.CLEAN: "C", Phase.ROLLBACK: "B"}
_QUERIES = {Query.STATUS: "S", Query.PROGRESS: "O", Query.SUMMARY: "M"}


def target(value: Target) -> Value | None:
    """Encode a target as its kind with its phases, followed by its address; `None` for the default.

    An AWS resource has no kind, because its name determines the kind; the call's details follow the name. A custom
    request is a separate element, and so are a job's parameters. A topology is a map, so that a condition can test for
    topologies.
    """
    if isinstance(value, HandlerTarget):
        return None
    if isinstance(value, HttpTarget):
        return _http_target(value)
    if isinstance(value, TopologyTarget):
        return _topology_target(value)
    if isinstance(value, AwsTarget) and value.is_job:
        return {"L": [{"S": value.arn}, _packed_job(value)]}
    return {"S": _text(value)}


def _text(value: PullTarget | WaitingTarget | CallbackTarget | AwsTarget) -> str:
    if isinstance(value, PullTarget):
        return _PULL
    if isinstance(value, ApprovalTarget):
        return f"{_APPROVAL} {value.timeout_seconds} {value.on_timeout}"
    if isinstance(value, EventTarget):
        condition = "" if value.when is None else f"{_BEFORE_CONDITION}{value.when}"
        return f"{_EVENT} {value.timeout_seconds} {value.lookback_seconds} {value.event} {value.key}{condition}"
    if isinstance(value, CallbackTarget):
        return f"{_CALLBACK} {value.url}"
    option = value.detail_type if value.waits else _NOTIFIES
    return f"{value.arn} {option}" if option else value.arn


def _http_target(value: HttpTarget) -> Value:
    letters = [_PHASES[phase] for phase in value.phases] + [_QUERIES[query] for query in value.queries]
    address: Value = {"S": f"{_HTTP}{''.join(sorted(letters))} {value.url}"}
    if value.request == HttpRequest() and value.batch is None:
        return address
    return {"L": [address, _packed_request(value.request, value.batch)]}


def read_target(value: Value) -> Target:
    """Decode a target."""
    if "M" in value:
        return _read_topology_target(value["M"][TOPOLOGY])
    if "L" in value:
        address, more = value["L"]
        if address["S"].startswith(_ARN):
            return _read_job(address["S"], more)
        form = json.loads(unpacked(more))
        return _read_http_target(address["S"], _read_request(form), _read_batch(form))
    return _read_text(value["S"])


def _read_text(text: str) -> Target:
    if text == _PULL:
        return PullTarget()
    if text.startswith(_APPROVAL):
        _, seconds, on_timeout = text.split(" ")
        return ApprovalTarget(int(seconds), OnTimeout(on_timeout))
    if text.startswith(_EVENT):
        signal, newline, condition = text.partition(_BEFORE_CONDITION)
        _, seconds, lookback, event, key = signal.split(" ", 4)
        return EventTarget(event, key, int(seconds), int(lookback), condition if newline else None)
    if text.startswith(_ARN):
        return _read_aws_target(text)
    if text.startswith(_CALLBACK):
        return CallbackTarget(text.partition(" ")[2])
    return _read_http_target(text, HttpRequest())


def _topology_target(value: TopologyTarget) -> Value:
    """Encode a topology.

    A definition's run also has the name, version and parameters; version 0 means the latest version.
    """
    ref = value.definition
    text = "" if ref is None else f"{ref.name} {ref.version or 0} {ref.parameters}"
    return {"M": {TOPOLOGY: packed(text.encode())}}


def _read_topology_target(value: Value) -> TopologyTarget:
    if not (text := unpacked(value).decode()):
        return TopologyTarget()
    name, version, parameters = text.split(" ", 2)
    return TopologyTarget(DefinitionRef(name, int(version) or None, parameters))


def _read_http_target(text: str, request: HttpRequest, batch: CallBatch | None = None) -> HttpTarget:
    kind, address = text.split(" ", 1)
    offered = kind.removeprefix(_HTTP)
    return HttpTarget(
        address,
        phases=frozenset(phase for phase, letter in _PHASES.items() if letter in offered),
        queries=frozenset(query for query, letter in _QUERIES.items() if letter in offered),
        request=request,
        batch=batch,
    )


def _packed_request(request: HttpRequest, batch: CallBatch | None) -> Value:
    """Encode a request, and how tasks share calls, as compact JSON without default values."""
    body, auth, response = request.body, request.auth, request.response
    form: dict[str, Any] = {
        "m": request.method,
        "h": request.headers,
        "q": request.query,
        "b": body and [body.kind.value, body.text],
        "s": request.success,
        "a": auth and [auth.secret, auth.scheme.value, auth.header],
        "r": response != ResponseOptions() and [response.keep.value, response.max_bytes, response.truncates],
        "n": batch and [batch.max_size, batch.max_wait_seconds],
    }
    given = {name: value for name, value in form.items() if value}
    return packed(json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode())


def _read_batch(form: Mapping[str, Any]) -> CallBatch | None:
    return CallBatch(*form["n"]) if "n" in form else None


def _read_request(form: Mapping[str, Any]) -> HttpRequest:
    """Decode a request."""
    body, auth, response = form.get("b"), form.get("a"), form.get("r")
    return HttpRequest(
        method=form.get("m", ""),
        headers=tuple((name, text) for name, text in form.get("h", ())),
        query=tuple((name, text) for name, text in form.get("q", ())),
        body=RequestBody(BodyKind(body[0]), body[1]) if body else None,
        success=tuple(form.get("s", ())),
        auth=Auth(auth[0], AuthScheme(auth[1]), auth[2]) if auth else None,
        response=ResponseOptions(Keep(response[0]), response[1], response[2]) if response else ResponseOptions(),
    )


def _read_aws_target(text: str) -> AwsTarget:
    arn, _, option = text.partition(" ")
    service = AwsService(service_of(arn) or "")
    if service is AwsService.LAMBDA:
        return AwsTarget(service, arn, waits=option != _NOTIFIES)
    return AwsTarget(service, arn, detail_type=option)


def _packed_job(value: AwsTarget) -> Value:
    form = {"c": value.place, "n": value.container, "p": value.parameters}
    given = {name: text for name, text in form.items() if text}
    return packed(json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode())


def _read_job(arn: str, value: Value) -> AwsTarget:
    form: dict[str, str] = json.loads(unpacked(value))
    return AwsTarget(
        AwsService(service_of(arn) or ""),
        arn,
        is_job=True,
        place=form.get("c", ""),
        container=form.get("n", ""),
        parameters=form.get("p", ""),
    )


_CAUSES = {Cause.SCHEDULE: "s", Cause.CATCH_UP: "c", Cause.MANUAL: "m", Cause.BACKFILL: "b"}
_CAUSE_LETTERS = {letter: cause for cause, letter in _CAUSES.items()}
_BUFFERED = "q"
"""Letter that replaces the cause's letter if a backfill's run waits for the end of other runs."""
_OCCURRENCE = re.compile(r"([a-z])(?:-([0-9a-f]+))?(?:\+([0-9a-f]+))?(!?)")
"""Pattern of an occurrence's cause, its distances to the previous and next occurrence, and whether its end is
reported."""
_REPORTS = "!"
"""Mark at the end of an occurrence if the schedule needs a report when the occurrence ends."""
_GIVEN = "!"
"""Mark that precedes a node's note if the node receives results from its parents."""


def schedule_ref(value: ScheduleRef) -> Value:
    """Encode a task's schedule occurrence as hexadecimal numbers, a letter and a mark, followed by the name."""
    before = "" if value.previous is None else f"-{value.nominal - value.previous:x}"
    after = "" if value.next is None else f"+{value.next - value.nominal:x}"
    cause = _BUFFERED if value.is_buffered else _CAUSES[value.cause]
    occurrence = f"{cause}{before}{after}{_REPORTS if value.reports else ''}"
    return {"S": f"{value.revision:x} {value.nominal:x} {occurrence} {value.mark} {value.schedule}"}


def read_schedule_ref(value: Value) -> ScheduleRef:
    """Decode a task's schedule occurrence."""
    revision, at, occurrence, mark, schedule = str(value["S"]).split(" ", 4)
    if (found := _OCCURRENCE.fullmatch(occurrence)) is None:
        raise ValueError(f"no occurrence of a schedule: {occurrence!r}")
    letter, before, after, reports = found.groups()
    is_buffered = letter == _BUFFERED
    cause = Cause.BACKFILL if is_buffered else _CAUSE_LETTERS[letter]
    nominal = int(at, 16)
    return ScheduleRef(
        schedule,
        int(revision, 16),
        nominal,
        cause,
        mark,
        reports == _REPORTS,
        None if before is None else nominal - int(before, 16),
        None if after is None else nominal + int(after, 16),
        is_buffered,
    )


def task_id(value: TaskId) -> Value:
    """Encode the id of another task."""
    return {"S": value.text}


def read_task_id(value: Value) -> TaskId:
    """Decode the id of another task."""
    return TaskId.parse(value["S"])


def after(value: Dependencies) -> Value:
    """Encode a task's dependencies in binary form, with 17 bytes for each task."""
    # Few tasks wait for other tasks, so the module is not imported at startup.
    from duetime.adapters.dynamodb.dependencies import encoded  # noqa: PLC0415 - see the line above

    return {"B": encoded(value)}


def read_after(value: Value) -> Dependencies:
    """Decode a task's dependencies."""
    from duetime.adapters.dynamodb.dependencies import decoded  # noqa: PLC0415 - as above

    return decoded(bytes(value["B"]))


def node_ref(value: NodeRef) -> Value:
    """Encode a task's topology node as the run in hexadecimal, the topology and a note, followed by the name."""
    note = (_GIVEN if value.inputs else "") + value.note
    return {"S": f"{value.run:x} {value.topology} {note} {value.key}"}


def read_node_ref(value: Value) -> NodeRef:
    """Decode a task's topology node."""
    run, topology, note, key = str(value["S"]).split(" ", 3)
    return NodeRef(TaskId(topology), int(run, 16), key, note.startswith(_GIVEN), note.removeprefix(_GIVEN))


_OUTCOMES = {
    AttemptOutcome.SUCCEEDED: "s",
    AttemptOutcome.RETRIED: "r",
    AttemptOutcome.FAILED: "f",
    AttemptOutcome.LOST: "l",
    AttemptOutcome.PAUSED: "p",
    AttemptOutcome.CANCELLED: "c",
    AttemptOutcome.ROLLED_BACK: "b",
}
_OUTCOME_LETTERS = {letter: outcome for outcome, letter in _OUTCOMES.items()}


def error(value: TaskError) -> Value:
    """Encode an attempt's error as the type and the packed message."""
    return {"L": [{"S": value.type}, packed(value.message.encode())]}


def read_error(value: Value) -> TaskError:
    """Decode an attempt's error."""
    kind, message = value["L"]
    return TaskError(kind["S"], unpacked(message).decode())


def line(value: AttemptRecord) -> Value:
    """Encode one attempt in packed form."""
    return packed(_compact(_line(value)))


def read_attempt(value: Value) -> AttemptRecord:
    """Decode one attempt."""
    return _read_line(json.loads(unpacked(value)))


def attempt_history(value: tuple[AttemptRecord, ...]) -> Value | None:
    """Encode the latest attempts, packed together because they are similar; `None` if there are no attempts."""
    return packed(_compact([_line(each) for each in value])) if value else None


def read_attempt_history(value: Value) -> tuple[AttemptRecord, ...]:
    """Decode the latest attempts."""
    return tuple(_read_line(each) for each in json.loads(unpacked(value)))


_VERSION_AFTER = "\t"
"""Separates a worker from its function's version, which is stored only if it is known."""


def _line(value: AttemptRecord) -> str | list[str]:
    """Encode an attempt as hexadecimal numbers, the worker (whose name may contain any character), and any error."""
    numbers = f"{value.attempt:x} {value.fence:x} {value.started_at:x} {value.late:x} {value.took:x}"
    is_split = value.function_version or _VERSION_AFTER in value.worker
    holder = f"{value.worker}{_VERSION_AFTER}{value.function_version}" if is_split else value.worker
    text = f"{numbers} {_OUTCOMES[value.outcome]} {holder}"
    return text if value.error is None else [text, value.error.type, value.error.message]


def _read_line(value: str | list[str]) -> AttemptRecord:
    text, *why = [value] if isinstance(value, str) else value
    *numbers, outcome, holder = text.split(" ", 6)
    attempt, fence, started_at, late, took = (int(number, 16) for number in numbers)
    failed = TaskError(*why) if why else None
    worker, is_split, version = holder.rpartition(_VERSION_AFTER)
    ended = _OUTCOME_LETTERS[outcome]
    worker, version = (worker, version) if is_split else (holder, "")
    return AttemptRecord(attempt, fence, worker, started_at, late, took, ended, failed, version)


def _compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


_ACTIONS = {
    Action.UPDATED: "u",
    Action.PAUSED: "p",
    Action.PAUSE_REQUESTED: "q",
    Action.RESUMED: "g",
    Action.RUN_REQUESTED: "n",
    Action.RETRIED: "r",
    Action.ROLLBACK_REQUESTED: "b",
    Action.CANCELLED: "c",
    Action.CANCEL_REQUESTED: "d",
    Action.APPROVED: "a",
    Action.REJECTED: "x",
}
_ACTION_LETTERS = {letter: action for action, letter in _ACTIONS.items()}
_ACTORS = {ActorType.USER: "u", ActorType.SCHEDULE: "s", ActorType.TOPOLOGY: "t", ActorType.SYSTEM: "y"}
_ACTOR_LETTERS = {letter: actor for actor, letter in _ACTORS.items()}


def actions(value: ActionHistory) -> Value | None:
    """Encode the number of dropped actions and the latest actions, packed together; `None` if there are no actions."""
    return packed(_compact_action([value.dropped, *map(_action_line, value.records)])) if value.records else None


def read_actions(value: Value) -> ActionHistory:
    """Decode the latest actions."""
    dropped, *lines = json.loads(unpacked(value))
    return ActionHistory(tuple(map(_read_action_line, lines)), dropped)


def action(value: ActionRecord) -> Value:
    """Encode one action in packed form."""
    return packed(_compact_action(_action_line(value)))


def read_action(value: Value) -> ActionRecord:
    """Decode one action."""
    return _read_action_line(json.loads(unpacked(value)))


def _action_line(value: ActionRecord) -> list[str]:
    """Encode an action as two letters, hexadecimal numbers, and strings, without empty strings at the end."""
    by = value.by
    version = "" if value.version is None else f"{value.version:x}"
    head = f"{_ACTIONS[value.action]}{_ACTORS[by.actor]}{value.at:x} {version}"
    operation = "" if by.operation is None else by.operation.text
    # Names of fields and nodes contain no commas, so a comma separates them.
    line = [head, by.reason, by.name, ",".join(value.fields), operation, ",".join(value.nodes)]
    while not line[-1]:
        line.pop()
    return line


def _read_action_line(value: list[str]) -> ActionRecord:
    head, reason, name, fields, operation, nodes = [*value, "", "", "", "", ""][:6]
    at, _, version = head[2:].partition(" ")
    by = Attribution(_ACTOR_LETTERS[head[1]], name, reason, TaskId(operation) if operation else None)
    return ActionRecord(
        _ACTION_LETTERS[head[0]], int(at, 16), by, int(version, 16) if version else None, _names(fields), _names(nodes)
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _compact_action(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
