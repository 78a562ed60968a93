"""The items of a schedule: its definition in one, its running occurrence in another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import attribute_values, field_codecs, schema
from duetime.adapters.dynamodb.owner_index import place_in_list
from duetime.adapters.dynamodb.schedule_codec import (
    backfill_form,
    ends_form,
    expectation_form,
    later_options,
    packed,
    read_backfill,
    read_ends,
    read_expectation,
    read_schedule_actions,
    read_spec,
    read_stopped,
    schedule_actions,
    spec_form,
    stopped_form,
    template_form,
    unpacked,
)
from duetime.adapters.dynamodb.versioned_items import version_of
from duetime.domain.ids import TaskId
from duetime.domain.schedules.occurrences import Occurrence
from duetime.domain.schedules.run_history import Activity, BegunRun, CalendarEnd, LastRun, Remark
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.schedule_history import NO_SCHEDULE_ACTIONS
from duetime.domain.schedules.schedule_record import RemovedSchedule, StoredSchedule

if TYPE_CHECKING:
    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value


ACTIVITY = "a"
UID = "u"
_GENERATION, _DONE, _SPEC, _TEMPLATE, _PAYLOAD, _COURSE, _LOG = "t", "d", "b", "T", "P", "c", "L"
_REVISION_ENDS, _STOPPED = "R", "S"
_EXPECTATION, _FORMER_PAYLOAD, _ACTIONS, _TRACEPARENT = "E", "F", "Q", "V"
_CALENDAR_END = "C"
_OUTSIDE = "o"
"""Of a deletion marker: the payloads that lie outside of the schedule."""
ACTIVE, WAITING = "a", "w"
BEGUN, BY_HAND, COUNTED, LATEST = "b", "h", "C", "r"
_RUNS_LIMIT, _LATEST_RUN, _RUNS_BEFORE = "l", "r", "k"


def is_schedule(key: StoredItem) -> bool:
    """Whether a key is that of a schedule, or of the marker that a deleted one has left."""
    partition, sort = (str(key[name]["S"]) for name in (schema.PARTITION_KEY, schema.SORT_KEY))
    return partition.startswith(schema.SCHEDULE_PREFIX) and sort.startswith(schema.SCHEDULE_HEAD_MARK)


def schedule_of(item: StoredItem) -> StoredSchedule:
    """The schedule that an item holds."""
    # An owner may hold the separator itself: only the last one is ours.
    owner = str(item[schema.PARTITION_KEY]["S"]).removeprefix(schema.SCHEDULE_PREFIX).rpartition("#")[0]
    return stored_of(owner, item)


def partition_of(owner: str, name: str) -> str:
    """The partition of a schedule."""
    # A name has no `#`, so the last one is between the two.
    return f"{schema.SCHEDULE_PREFIX}{owner}#{name}"


def key_of(owner: str, name: str) -> Item:
    """The key of what a schedule is."""
    return {
        schema.PARTITION_KEY: attribute_values.text(partition_of(owner, name)),
        schema.SORT_KEY: attribute_values.text(f"{schema.SCHEDULE_HEAD_MARK}{name}"),
    }


def activity_key(owner: str, name: str) -> Item:
    """The key of which occurrence of a schedule goes on."""
    return {
        schema.PARTITION_KEY: attribute_values.text(partition_of(owner, name)),
        schema.SORT_KEY: attribute_values.text(ACTIVITY),
    }


def item_of(stored: StoredSchedule) -> Item:
    """What a schedule is, as an item."""
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
    """What else is stored of its definition, as far as it has any."""
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
    """What is stored of its runs besides how far it has come, as far as there is any."""
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
    """How far a schedule has come; values are read by their places, so a later one needs an attribute."""
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
    """What is left of a schedule that was removed: which it was, and the payloads that lie outside of it."""
    return {
        **key_of(stored.owner, stored.name),
        UID: attribute_values.text(stored.uid.text),
        _OUTSIDE: {"L": [field_codecs.content(each) for each in stored.outside_payloads]},
    }


def removed_of(item: StoredItem) -> RemovedSchedule:
    """The removed schedule whose marker an item is."""
    payloads = tuple(field_codecs.read_content("payload", each) for each in item[_OUTSIDE]["L"])
    return RemovedSchedule(TaskId(attribute_values.string(item[UID])), payloads)


def stored_of(owner: str, item: StoredItem) -> StoredSchedule:
    """The schedule of an owner that an item holds."""
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
    """Which occurrence of a schedule goes on, and which wait."""
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
    """Which occurrence of a schedule goes on, as an item has it."""
    uid, active = (TaskId(attribute_values.string(item[name])) if name in item else None for name in (UID, ACTIVE))
    waiting = tuple(map(TaskId, unpacked(item[WAITING]))) if WAITING in item else ()
    begun, by_hand = (attribute_values.integer(item[name]) if name in item else 0 for name in (BEGUN, BY_HAND))
    counted = tuple(map(TaskId, unpacked(item[COUNTED]))) if COUNTED in item else ()
    latest = _read_begun_run(item[LATEST]) if LATEST in item else None
    return Activity(uid, active, waiting, version_of(item), begun, by_hand, counted, latest)
