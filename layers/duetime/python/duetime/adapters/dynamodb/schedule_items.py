"""Encodes a schedule as two items, with its definition in one item and its active runs in another item."""

from __future__ import annotations

import json
from dataclasses import MISSING, astuple, fields, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import attribute_values, field_codecs, schema
from duetime.adapters.dynamodb.owner_index import place_in_list
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, decoded, encoded
from duetime.adapters.dynamodb.versioned_items import version_of
from duetime.domain.ids import TaskId
from duetime.domain.schedules.backfill import Backfill, BackfillCursor
from duetime.domain.schedules.calendars import Calendar, CalendarMode, Span, Window
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.definition import (
    CatchUpMode,
    ChangedOccurrence,
    OnExcluded,
    Overlap,
    ScheduleSpec,
    Written,
)
from duetime.domain.schedules.occurrences import Occurrence
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.run_history import (
    Activity,
    BackfillRun,
    BegunRun,
    CalendarEnd,
    ExpectationState,
    LastRun,
    Remark,
)
from duetime.domain.schedules.schedule import RevisionEnd, ScheduleState, StoppedOccurrence
from duetime.domain.schedules.schedule_history import (
    NO_SCHEDULE_ACTIONS,
    NewValue,
    ScheduleAction,
    ScheduleActionRecord,
    ScheduleHistory,
)
from duetime.domain.schedules.schedule_record import RemovedSchedule, StoredSchedule
from duetime.domain.schedules.time_zones import Fold, Gap, zone_named
from duetime.domain.tasks.action_history import ActorType, Attribution
from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.tasks.task_options import TASK_OPTIONS
from duetime.domain.tasks.type_defaults import TaskSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value


ACTIVITY = "a"
UID = "u"
_GENERATION, _DONE, _SPEC, _TEMPLATE, _PAYLOAD, _COURSE, _LOG = "t", "d", "b", "T", "P", "c", "L"
_REVISION_ENDS, _STOPPED = "R", "S"
_EXPECTATION, _FORMER_PAYLOAD, _ACTIONS, _TRACEPARENT = "E", "F", "Q", "V"
_CALENDAR_END = "C"
_OUTSIDE = "o"
"""Attribute of a deletion marker with the payloads that are stored outside the schedule."""
ACTIVE, WAITING = "a", "w"
BEGUN, BY_HAND, COUNTED, LATEST = "b", "h", "C", "r"
_RUNS_LIMIT, _LATEST_RUN, _RUNS_BEFORE = "l", "r", "k"


def is_schedule(key: StoredItem) -> bool:
    """Whether a key is the key of a schedule, or of a deleted schedule's marker."""
    partition, sort = (str(key[name]["S"]) for name in (schema.PARTITION_KEY, schema.SORT_KEY))
    return partition.startswith(schema.SCHEDULE_PREFIX) and sort.startswith(schema.SCHEDULE_HEAD_MARK)


def schedule_of(item: StoredItem) -> StoredSchedule:
    """The schedule in an item."""
    # A name contains no `#`, so the last `#` separates the owner from the name.
    owner = str(item[schema.PARTITION_KEY]["S"]).removeprefix(schema.SCHEDULE_PREFIX).rpartition("#")[0]
    return stored_of(owner, item)


def partition_of(owner: str, name: str) -> str:
    """The partition key of a schedule."""
    # A name contains no `#`, so the last `#` separates the owner from the name.
    return f"{schema.SCHEDULE_PREFIX}{owner}#{name}"


def key_of(owner: str, name: str) -> Item:
    """The primary key of a schedule's definition."""
    return {
        schema.PARTITION_KEY: attribute_values.text(partition_of(owner, name)),
        schema.SORT_KEY: attribute_values.text(f"{schema.SCHEDULE_HEAD_MARK}{name}"),
    }


def activity_key(owner: str, name: str) -> Item:
    """The primary key of a schedule's active runs."""
    return {
        schema.PARTITION_KEY: attribute_values.text(partition_of(owner, name)),
        schema.SORT_KEY: attribute_values.text(ACTIVITY),
    }


def item_of(stored: StoredSchedule) -> Item:
    """A schedule's definition as an item."""
    owner, name = stored.owner, stored.name
    item = {
        **key_of(owner, name),
        schema.OWNER_KEY: place_in_list(owner, schema.SCHEDULE_LIST_MARK, name),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        UID: attribute_values.text(stored.uid.text),
        _GENERATION: attribute_values.number(stored.generation),
        _DONE: attribute_values.number(stored.done),
        _SPEC: packed(spec_form(stored.spec)),
        _TEMPLATE: template_form(stored.spec.task, stored.later_options),
        _PAYLOAD: field_codecs.content(stored.payload),
        _COURSE: packed(_next_action(stored)),
    }
    return item | _marks(stored) | _of_its_runs(stored)


def _marks(stored: StoredSchedule) -> Item:
    """The optional attributes of a schedule's definition."""
    item: Item = {}
    if stored.revision_ends:
        item[_REVISION_ENDS] = packed(ends_form(stored.revision_ends))
    if stored.stopped:
        item[_STOPPED] = packed(stopped_form(stored.stopped))
    if stored.former_payload is not None:
        item[_FORMER_PAYLOAD] = field_codecs.content(stored.former_payload)
    if stored.traceparent is not None:
        item[_TRACEPARENT] = field_codecs.traceparent(stored.traceparent)
    if stored.actions.records:
        item[_ACTIONS] = schedule_actions(stored.actions)
    return item


def _of_its_runs(stored: StoredSchedule) -> Item:
    """The optional attributes for a schedule's runs."""
    item: Item = {}
    if stored.expectation is not None:
        item[_EXPECTATION] = packed(expectation_form(stored.expectation))
    if stored.calendar_end is not None:
        item[_CALENDAR_END] = packed([stored.calendar_end.name, stored.calendar_end.known_until])
    if stored.runs_limit is not None:
        item[_RUNS_LIMIT] = attribute_values.number(stored.runs_limit)
    if stored.latest_run is not None:
        item[_LATEST_RUN] = _begun_run(stored.latest_run)
    if stored.runs_before:
        item[_RUNS_BEFORE] = attribute_values.number(stored.runs_before)
    if stored.log:
        item[_LOG] = packed([[each.at, each.key, each.note] for each in stored.log])
    return item


def _next_action(stored: StoredSchedule) -> list[Any]:
    """The progress of a schedule. These values are read by position, so a new value needs a new attribute."""
    last, owed = stored.last_run, stored.owed
    return [
        stored.shards,
        stored.created_at,
        stored.updated_at,
        stored.state,
        stored.paused_reason,
        stored.revision,
        stored.version,
        stored.tzdata,
        stored.remaining_runs,
        None if last is None else [last.task_id.text, last.nominal, last.revision],
        None if owed is None else [owed.nominal, owed.at, owed.due_at, owed.key, owed.runs, owed.note],
        [backfill_form(run) for run in stored.backfills],
        stored.runs_started,
        stored.runs_skipped,
    ]


def marker_of(stored: StoredSchedule) -> Item:
    """A deleted schedule's marker, with the schedule's identity and the payloads that are stored elsewhere."""
    return {
        **key_of(stored.owner, stored.name),
        UID: attribute_values.text(stored.uid.text),
        _OUTSIDE: {"L": [field_codecs.content(each) for each in stored.outside_payloads]},
    }


def removed_of(item: StoredItem) -> RemovedSchedule:
    """The deleted schedule that a marker represents."""
    payloads = tuple(field_codecs.read_content("payload", each) for each in item[_OUTSIDE]["L"])
    return RemovedSchedule(TaskId(attribute_values.string(item[UID])), payloads)


def stored_of(owner: str, item: StoredItem) -> StoredSchedule:
    """An owner's schedule in an item."""
    name = item[schema.SORT_KEY]["S"].removeprefix(schema.SCHEDULE_HEAD_MARK)
    shards, created_at, changed_at, state, note, revision, version, *rest = unpacked(item[_COURSE])
    tzdata, remaining, last, owed, runs, placed, skipped = rest
    return StoredSchedule(
        owner=owner,
        uid=TaskId(attribute_values.string(item[UID])),
        shards=shards,
        spec=read_spec(name, unpacked(item[_SPEC]), item[_TEMPLATE]["M"]),
        payload=field_codecs.read_content("payload", item[_PAYLOAD]),
        created_at=created_at,
        updated_at=changed_at,
        done=attribute_values.integer(item[_DONE]),
        state=ScheduleState(state),
        paused_reason=note,
        revision=revision,
        version=version,
        incarnation=version_of(item),
        generation=attribute_values.integer(item[_GENERATION]),
        tzdata=tzdata,
        remaining_runs=remaining,
        last_run=None if last is None else LastRun(TaskId(last[0]), *last[1:]),
        owed=None if owed is None else Occurrence(*owed),
        backfills=tuple(map(read_backfill, runs)),
        log=tuple(Remark(*each) for each in unpacked(item[_LOG])) if _LOG in item else (),
        runs_started=placed,
        runs_skipped=skipped,
        revision_ends=read_ends(unpacked(item[_REVISION_ENDS])) if _REVISION_ENDS in item else (),
        expectation=read_expectation(unpacked(item[_EXPECTATION])) if _EXPECTATION in item else None,
        stopped=read_stopped(unpacked(item[_STOPPED])) if _STOPPED in item else (),
        actions=read_schedule_actions(item[_ACTIONS]) if _ACTIONS in item else NO_SCHEDULE_ACTIONS,
        former_payload=field_codecs.read_content("payload", item[_FORMER_PAYLOAD]) if _FORMER_PAYLOAD in item else None,
        traceparent=field_codecs.read_traceparent(item[_TRACEPARENT]) if _TRACEPARENT in item else None,
        calendar_end=CalendarEnd(*unpacked(item[_CALENDAR_END])) if _CALENDAR_END in item else None,
        later_options=later_options(item[_TEMPLATE]["M"]),
        runs_limit=attribute_values.integer(item[_RUNS_LIMIT]) if _RUNS_LIMIT in item else None,
        latest_run=_read_begun_run(item[_LATEST_RUN]) if _LATEST_RUN in item else None,
        runs_before=attribute_values.integer(item[_RUNS_BEFORE]) if _RUNS_BEFORE in item else 0,
    )


def _begun_run(run: BegunRun) -> Value:
    return packed([run.task_id.text, run.nominal, run.started_at])


def _read_begun_run(value: Value) -> BegunRun:
    task_id, *times = unpacked(value)
    return BegunRun(TaskId(task_id), *times)


def activity_form(activity: Activity) -> Item:
    """Encode a schedule's active run and its waiting runs."""
    ids = {UID: activity.uid, ACTIVE: activity.active}
    item: Item = {name: attribute_values.text(each.text) for name, each in ids.items() if each is not None}
    if activity.waiting:
        item[WAITING] = packed([each.text for each in activity.waiting])
    numbers = {BEGUN: activity.begun, BY_HAND: activity.by_hand}
    item |= {name: attribute_values.number(number) for name, number in numbers.items() if number}
    if activity.counted:
        item[COUNTED] = packed([each.text for each in activity.counted])
    if activity.latest is not None:
        item[LATEST] = _begun_run(activity.latest)
    return item


def activity_of(item: StoredItem) -> Activity:
    """Decode a schedule's active run and its waiting runs."""
    uid, active = (TaskId(attribute_values.string(item[name])) if name in item else None for name in (UID, ACTIVE))
    waiting = tuple(map(TaskId, unpacked(item[WAITING]))) if WAITING in item else ()
    begun, by_hand = (attribute_values.integer(item[name]) if name in item else 0 for name in (BEGUN, BY_HAND))
    counted = tuple(map(TaskId, unpacked(item[COUNTED]))) if COUNTED in item else ()
    latest = _read_begun_run(item[LATEST]) if LATEST in item else None
    return Activity(uid, active, waiting, version_of(item), begun, by_hand, counted, latest)


_TEMPLATE_FIELDS = ("type", "target", "order", *TASK_OPTIONS)
"""The fields of `TaskSpec` that are stored like the fields with the same names in `Task`."""
_HANDLER = "handler"
"""Attribute of a template that says that the client requested the handler target explicitly."""
_EXPLICIT = "explicit"
"""Attribute of a template with the options that the client set to their built-in defaults, so that no type default
replaces them."""
_TEMPLATE_ATTRIBUTES = {_HANDLER, _EXPLICIT} | {ATTRIBUTES[field].name for field in _TEMPLATE_FIELDS}
_LISTS = ("calendars", "extra_dates", "excluded_dates")
_PLAIN = ("on_excluded", "spread_seconds", "jitter_seconds", "start_at", "end_at", "remaining_runs", "overlap")
_EXPECTATIONS = ("expect_success_by", "expect_every_seconds", "expect_duration_factor")
_RULES = ("catch_up_seconds", "catch_up_mode", "pause_on_failure", *_EXPECTATIONS)
_CHANGED = "changed_occurrences"
_SPEC_FIELDS = (*_PLAIN, *_RULES, *_LISTS)
_ACTION_LETTERS = {
    ScheduleAction.UPDATED: "u",
    ScheduleAction.PAUSED: "p",
    ScheduleAction.RESUMED: "g",
    ScheduleAction.RUN_REQUESTED: "n",
    ScheduleAction.BACKFILL_REQUESTED: "b",
    ScheduleAction.BACKFILL_CANCELLED: "c",
}
_LETTERS = {letter: action for action, letter in _ACTION_LETTERS.items()}
_ACTORS = {ActorType.USER: "u", ActorType.SYSTEM: "y"}
_ACTOR_LETTERS = {letter: actor for actor, letter in _ACTORS.items()}
_READ = {"on_excluded": OnExcluded, "overlap": Overlap, "catch_up_mode": CatchUpMode, **dict.fromkeys(_LISTS, tuple)}


def packed(value: object) -> Value:
    """JSON in as few bytes as possible."""
    return attribute_values.packed(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def unpacked(value: Value) -> Any:  # noqa: ANN401 - any JSON
    """Read JSON."""
    return json.loads(attribute_values.unpacked(value))


def spec_form(spec: ScheduleSpec) -> dict[str, Any]:
    """Encode a client's specification of a schedule, without the name, which is in the key, and without the task."""
    clock = spec.clock
    return {
        "written": _written_form(spec.written),
        "clock": [clock.zone.name, clock.gap, clock.fold],
        **{name: value for name, value in _given(spec).items() if name in _SPEC_FIELDS},
        **({_CHANGED: [[each.nominal, each.at] for each in changed]} if (changed := spec.changed_occurrences) else {}),
    }


def read_spec(name: str, form: dict[str, Any], template: StoredItem) -> ScheduleSpec:
    """Decode a schedule's specification."""
    zone, gap, fold = form["clock"]
    others = {field: _READ.get(field, _same)(form[field]) for field in _SPEC_FIELDS if field in form}
    others[_CHANGED] = tuple(ChangedOccurrence(*each) for each in form.get(_CHANGED, ()))
    return ScheduleSpec(
        _written(form["written"]), _template(template), name, Clock(zone_named(zone), Gap(gap), Fold(fold)), **others
    )


def template_form(task: TaskSpec, later_options: tuple[tuple[str, Any], ...]) -> Value:
    """Encode the task of a schedule's occurrences like a task, but without the payload, which is stored elsewhere."""
    form: dict[str, Any] = dict(later_options)
    for field in _TEMPLATE_FIELDS:
        if (stored := encoded(field, getattr(task, field))) is not None:
            form[ATTRIBUTES[field].name] = stored
    if isinstance(task.target, HandlerTarget):
        form[_HANDLER] = {"BOOL": True}
    if task.explicit:
        form[_EXPLICIT] = attribute_values.text(" ".join(sorted(task.explicit)))
    return {"M": form}


def later_options(template: StoredItem) -> tuple[tuple[str, Value], ...]:
    """Options of a schedule's task that are unknown, because a newer version wrote them during a deployment."""
    return tuple((name, stored) for name, stored in template.items() if name not in _TEMPLATE_ATTRIBUTES)


def _template(form: StoredItem) -> TaskSpec:
    given = decoded(form, _TEMPLATE_FIELDS)
    if _HANDLER in form:
        given["target"] = HandlerTarget()
    if _EXPLICIT in form:
        given["explicit"] = frozenset(attribute_values.string(form[_EXPLICIT]).split())
    return TaskSpec(payload=b"", **given)


def _written_form(written: Written) -> dict[str, Any]:
    form = _given(written)
    if written.timings is not None:
        form["timings"] = [_written_form(each) for each in written.timings]
    return form


def _written(form: dict[str, Any]) -> Written:
    if "timings" in form:
        form["timings"] = tuple(map(_written, form["timings"]))
    if "dates" in form:
        form["dates"] = tuple(form["dates"])
    if "dialect" in form:
        form["dialect"] = Dialect(form["dialect"])
    return Written(**form)


def _given(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass of plain values
    """The fields that differ from their defaults."""
    return {
        each.name: getattr(value, each.name)
        for each in fields(value)
        if each.default is MISSING or getattr(value, each.name) != each.default
    }


def _same(value: Any) -> Any:  # noqa: ANN401 - any value
    return value


def expectation_form(state: ExpectationState) -> list[Any]:
    """Encode the state of checking a schedule's expectations."""
    *plain, open_runs = (getattr(state, each.name) for each in fields(state))
    return [*plain, [each.text for each in open_runs]]


def read_expectation(form: list[Any]) -> ExpectationState:
    """Decode the state of checking expectations."""
    *plain, open_runs = form
    return replace(ExpectationState(*plain), open_runs=tuple(map(TaskId, open_runs)))


def ends_form(ends: Sequence[RevisionEnd]) -> list[Any]:
    """Encode the ends of revisions."""
    return [list(astuple(each)) for each in ends]


def read_ends(form: list[Any]) -> tuple[RevisionEnd, ...]:
    """Decode the ends of revisions."""
    return tuple(RevisionEnd(*each) for each in form)


def backfill_form(run: BackfillRun) -> list[Any]:
    """Encode a backfill and its progress. These values are read by position."""
    wanted = run.backfill
    options = [wanted.per_minute, wanted.asked_at, wanted.only_missing, wanted.overlap]
    cursor = None if run.cursor is None else list(astuple(run.cursor))
    return [run.id, wanted.start, wanted.end, *options, run.occurrences, cursor, run.finished_at]


def read_backfill(form: list[Any]) -> BackfillRun:
    """Decode a backfill."""
    name, start, end, per_minute, asked_at, only_missing, overlap, occurrences, at, finished_at = form
    wanted = Backfill(start, end, per_minute, asked_at, only_missing, Overlap(overlap))
    return BackfillRun(name, wanted, occurrences, None if at is None else BackfillCursor(*at), finished_at)


def stopped_form(stopped: Sequence[StoppedOccurrence]) -> list[Any]:
    """Encode the occurrences that a user has stopped."""
    return [[each.nominal, each.task_id.text, each.revision] for each in stopped]


def read_stopped(form: list[Any]) -> tuple[StoppedOccurrence, ...]:
    """Decode the stopped occurrences."""
    return tuple(StoppedOccurrence(nominal, TaskId(task_id), revision) for nominal, task_id, revision in form)


def schedule_actions(value: ScheduleHistory) -> Value:
    """Encode the latest actions, preceded by the number of dropped actions."""
    return packed([value.dropped, *map(_action_line, value.records)])


def read_schedule_actions(value: Value) -> ScheduleHistory:
    """Decode the latest actions."""
    dropped, *lines = unpacked(value)
    return ScheduleHistory(tuple(map(_read_action_line, lines)), dropped)


def _action_line(value: ScheduleActionRecord) -> list[Any]:
    """Encode an action as two letters, followed by numbers and strings. Trailing empty values are omitted."""
    by = value.by
    letters = f"{_ACTION_LETTERS[value.action]}{_ACTORS[by.actor]}"
    values = [[each.field, each.before, each.after] for each in value.values]
    names = ",".join(value.fields)
    line: list[Any] = [letters, value.at, value.version, by.reason, by.name, names, value.subject, values]
    while not line[-1]:
        line.pop()
    return line


def _read_action_line(value: list[Any]) -> ScheduleActionRecord:
    letters, at, version, reason, name, names, subject, values = [*value, "", "", "", "", ()][:8]
    by = Attribution(_ACTOR_LETTERS[letters[1]], name, reason)
    changed = tuple(names.split(",")) if names else ()
    new = tuple(NewValue(*each) for each in values)
    return ScheduleActionRecord(_LETTERS[letters[0]], at, by, version, changed, subject, new)


def calendar_form(calendar: Calendar) -> dict[str, Any]:
    """Encode a calendar without its name, which is in the key."""
    return {
        "kind": calendar.mode,
        "zone": calendar.zone.name,
        "dates": {day.isoformat(): label for day, label in sorted(calendar.dates.items())},
        "except": [day.isoformat() for day in sorted(calendar.except_dates)],
        "weekdays": sorted(calendar.weekdays),
        "windows": [[each.start, each.end, sorted(each.weekdays), each.label] for each in calendar.windows],
        "spans": [[each.start, each.end, each.reason] for each in calendar.spans],
        **({} if calendar.known_until is None else {"until": calendar.known_until}),
    }


def read_calendar(name: str, form: dict[str, Any]) -> Calendar:
    """Decode a calendar."""
    return Calendar(
        name,
        CalendarMode(form["kind"]),
        zone_named(form["zone"]),
        dates={date.fromisoformat(day): label for day, label in form["dates"].items()},
        except_dates=frozenset(map(date.fromisoformat, form["except"])),
        weekdays=frozenset(form["weekdays"]),
        windows=tuple(Window(start, end, frozenset(days), label) for start, end, days, label in form["windows"]),
        spans=tuple(Span(*each) for each in form["spans"]),
        known_until=form.get("until"),
    )
