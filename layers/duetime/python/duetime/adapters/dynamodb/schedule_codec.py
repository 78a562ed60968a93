"""Definitions of schedules and calendars as compact JSON, for the items that hold them; defaults are left out."""

from __future__ import annotations

import json
from dataclasses import MISSING, astuple, fields, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import attribute_values
from duetime.adapters.dynamodb.attribute_mapping import ATTRIBUTES, decoded, encoded
from duetime.domain.ids import TaskId
from duetime.domain.schedules.backfill import Backfill, BackfillCursor
from duetime.domain.schedules.calendars import Calendar, CalendarMode, Span, Window
from duetime.domain.schedules.changed_occurrences import ChangedOccurrence
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.definition import CatchUpMode, OnExcluded, Overlap, ScheduleSpec, Written
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.revisions import RevisionEnd, StoppedOccurrence
from duetime.domain.schedules.run_history import BackfillRun, ExpectationState
from duetime.domain.schedules.schedule_history import ScheduleAction, ScheduleActionRecord, ScheduleHistory
from duetime.domain.schedules.time_zones import Fold, Gap, zone_named
from duetime.domain.tasks.action_history import ActorType, Attribution
from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.tasks.task_options import TASK_OPTIONS
from duetime.domain.tasks.task_spec import TaskSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.adapters.dynamodb.attribute_values import StoredItem, Value

_TEMPLATE_FIELDS = ("type", "target", *TASK_OPTIONS)
"""Of `TaskSpec`, each stored as the field of that name of a task."""
_HANDLER = "handler"
"""Of a template: a handler was requested, not left to the type."""
_TEMPLATE_ATTRIBUTES = {_HANDLER} | {ATTRIBUTES[field].name for field in _TEMPLATE_FIELDS}
_LISTS = ("calendars", "extra_dates", "excluded_dates")
_PLAIN = ("on_excluded", "spread_seconds", "jitter_seconds", "start_at", "end_at", "remaining_runs", "overlap")
_RULES = ("catch_up_seconds", "catch_up_mode", "pause_on_failure", "expect_success_by", "expect_every_seconds")
_CHANGED = "changed_occurrences"
_SPEC_FIELDS = (*_PLAIN, *_RULES, *_LISTS)
_ACTIONS = {
    ScheduleAction.UPDATED: "u",
    ScheduleAction.PAUSED: "p",
    ScheduleAction.RESUMED: "g",
    ScheduleAction.RUN_REQUESTED: "n",
    ScheduleAction.BACKFILL_REQUESTED: "b",
    ScheduleAction.BACKFILL_CANCELLED: "c",
}
_LETTERS = {letter: action for action, letter in _ACTIONS.items()}
_ACTORS = {ActorType.USER: "u", ActorType.SYSTEM: "y"}
_ACTOR_LETTERS = {letter: actor for actor, letter in _ACTORS.items()}
_READ = {"on_excluded": OnExcluded, "overlap": Overlap, "catch_up_mode": CatchUpMode, **dict.fromkeys(_LISTS, tuple)}


def packed(value: object) -> Value:
    """JSON in the fewest bytes."""
    return attribute_values.packed(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def unpacked(value: Value) -> Any:  # noqa: ANN401 - what JSON may be
    """Read JSON."""
    return json.loads(attribute_values.unpacked(value))


def spec_form(spec: ScheduleSpec) -> dict[str, Any]:
    """What a client said of a schedule; its name is in the key, and its task stands elsewhere."""
    clock = spec.clock
    return {
        "written": _written_form(spec.written),
        "clock": [clock.zone.name, clock.gap, clock.fold],
        **{name: value for name, value in _given(spec).items() if name in _SPEC_FIELDS},
        **({_CHANGED: [[each.nominal, each.at] for each in changed]} if (changed := spec.changed_occurrences) else {}),
    }


def read_spec(name: str, form: dict[str, Any], template: StoredItem) -> ScheduleSpec:
    """Read what a client said of a schedule."""
    zone, gap, fold = form["clock"]
    others = {field: _READ.get(field, _same)(form[field]) for field in _SPEC_FIELDS if field in form}
    others[_CHANGED] = tuple(ChangedOccurrence(*each) for each in form.get(_CHANGED, ()))
    return ScheduleSpec(
        _written(form["written"]), _template(template), name, Clock(zone_named(zone), Gap(gap), Fold(fold)), **others
    )


def template_form(task: TaskSpec, later_options: tuple[tuple[str, Any], ...]) -> Value:
    """The task of a schedule's occurrences, by the attributes of tasks; its payload stands elsewhere."""
    form: dict[str, Any] = dict(later_options)
    for field in _TEMPLATE_FIELDS:
        if (stored := encoded(field, getattr(task, field))) is not None:
            form[ATTRIBUTES[field].name] = stored
    if isinstance(task.target, HandlerTarget):
        form[_HANDLER] = {"BOOL": True}
    return {"M": form}


def later_options(template: StoredItem) -> tuple[tuple[str, Value], ...]:
    """Options of a schedule's task that this code does not know: while a new version is deployed, both write."""
    return tuple((name, stored) for name, stored in template.items() if name not in _TEMPLATE_ATTRIBUTES)


def _template(form: StoredItem) -> TaskSpec:
    given = decoded(form, _TEMPLATE_FIELDS)
    if _HANDLER in form:
        given["target"] = HandlerTarget()
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


def _same(value: Any) -> Any:  # noqa: ANN401 - whatever it is
    return value


def expectation_form(state: ExpectationState) -> list[Any]:
    """How far what is expected of a schedule was looked into."""
    *plain, open_runs = (getattr(state, each.name) for each in fields(state))
    return [*plain, [each.text for each in open_runs]]


def read_expectation(form: list[Any]) -> ExpectationState:
    """Read it."""
    *plain, open_runs = form
    return replace(ExpectationState(*plain), open_runs=tuple(map(TaskId, open_runs)))


def ends_form(ends: Sequence[RevisionEnd]) -> list[Any]:
    """The ends of revisions."""
    return [list(astuple(each)) for each in ends]


def read_ends(form: list[Any]) -> tuple[RevisionEnd, ...]:
    """Read them."""
    return tuple(RevisionEnd(*each) for each in form)


def backfill_form(run: BackfillRun) -> list[Any]:
    """A backfill and how far it has come; values are read by their places."""
    wanted = run.backfill
    options = [wanted.per_minute, wanted.asked_at, wanted.only_missing, wanted.overlap]
    cursor = None if run.cursor is None else list(astuple(run.cursor))
    return [run.id, wanted.start, wanted.end, *options, run.occurrences, cursor, run.finished_at]


def read_backfill(form: list[Any]) -> BackfillRun:
    """Read a backfill."""
    name, start, end, per_minute, asked_at, only_missing, overlap, occurrences, at, finished_at = form
    wanted = Backfill(start, end, per_minute, asked_at, only_missing, Overlap(overlap))
    return BackfillRun(name, wanted, occurrences, None if at is None else BackfillCursor(*at), finished_at)


def stopped_form(stopped: Sequence[StoppedOccurrence]) -> list[Any]:
    """The occurrences that their user stopped."""
    return [[each.nominal, each.task_id.text, each.revision] for each in stopped]


def read_stopped(form: list[Any]) -> tuple[StoppedOccurrence, ...]:
    """Read them."""
    return tuple(StoppedOccurrence(nominal, TaskId(task_id), revision) for nominal, task_id, revision in form)


def schedule_actions(value: ScheduleHistory) -> Value:
    """The latest actions, behind the number of those that were dropped."""
    return packed([value.dropped, *map(_action_line, value.records)])


def read_schedule_actions(value: Value) -> ScheduleHistory:
    """Read the latest actions."""
    dropped, *lines = unpacked(value)
    return ScheduleHistory(tuple(map(_read_action_line, lines)), dropped)


def _action_line(value: ScheduleActionRecord) -> list[Any]:
    """Two letters, then numbers and texts; those at the end that are empty are left out."""
    by = value.by
    letters = f"{_ACTIONS[value.action]}{_ACTORS[by.actor]}"
    line: list[Any] = [letters, value.at, value.version, by.reason, by.name, ",".join(value.fields), value.subject]
    while not line[-1]:
        line.pop()
    return line


def _read_action_line(value: list[Any]) -> ScheduleActionRecord:
    letters, at, version, reason, name, names, subject = [*value, "", "", "", ""][:7]
    by = Attribution(_ACTOR_LETTERS[letters[1]], name, reason)
    return ScheduleActionRecord(
        _LETTERS[letters[0]], at, by, version, tuple(names.split(",")) if names else (), subject
    )


def calendar_form(calendar: Calendar) -> dict[str, Any]:
    """A calendar; its name is in the key."""
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
    """Read a calendar."""
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
