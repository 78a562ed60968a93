"""Computes the differences between a file's schedules and the existing schedules, and the steps that apply them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from duetime_client.task_request_fields import TaskFields
from duetime_common.limits import DEFAULT_BATCH_SIZE, DEFAULT_BATCH_WAIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime_client.manifests.reader import Entry
    from duetime_client.schedule_models import Schedule

TIMINGS = ("cron", "rate", "interval", "dates", "permanent", "timings")
SCHEDULE_DEFAULTS: Mapping[str, Any] = {
    "dialect": "cron",
    "timezone": "UTC",
    "dst_gap": "skip",
    "dst_fold": "first",
    "calendars": [],
    "on_excluded": "skip",
    "extra_dates": [],
    "excluded_dates": [],
    "spread_seconds": 0,
    "jitter_seconds": 0,
    "start_at": None,
    "end_at": None,
    "overlap": "skip",
    "catch_up_seconds": 3600,
    "catch_up_mode": "latest",
    "pause_on_failure": False,
    "expect_success_by": None,
    "expect_every_seconds": None,
    "expect_duration_factor": None,
}
"""The API's defaults for omitted fields of a schedule. `remaining_runs` is excluded because the API counts it down."""
_SAID_ONCE = "allow_unknown_type"
"""A field that the API accepts but does not store."""
_OF_A_CREATION = frozenset(
    {"due_at", "delay_seconds", "unique", "debounce", "parent_task_id", "group", "after", "trigger_rule"}
)
"""Task fields that a schedule's task cannot have."""
TASK_DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(TaskFields.__annotations__.keys() - {_SAID_ONCE, *_OF_A_CREATION, "target", "retry"}),
    "priority": "normal",
    "timeout_seconds": 60,
    "notify_within_seconds": 3600,
    "rollback_on_failure": False,
    "name": "",
    "tags": {},
    "locks": [],
    "fair_weight": 1,
}
"""The defaults of a schedule's task; fields not listed default to null."""
RETRY_DEFAULTS: Mapping[str, Any] = {
    "max_attempts": 5,
    "initial_seconds": 1,
    "multiplier": 2,
    "max_seconds": 300,
    "max_duration_seconds": None,
}
NOTIFY_ON_DEFAULTS: Mapping[str, Any] = {"failed": False, "late_seconds": None, "running_seconds": None}
LOCK_DEFAULTS: Mapping[str, Any] = {"mode": "exclusive", "scope": "task", "wait_seconds": None}
RATE_DEFAULTS: Mapping[str, Any] = {"per_seconds": 1, "burst": 0}
_BODY = "body"
"""The target's field `body`, whose value the API replaces completely."""
_REQUEST = ("method", "headers", "query", "body", "success", "auth", "response", "batch")
_BATCH_DEFAULTS: Mapping[str, object] = {
    "max_size": DEFAULT_BATCH_SIZE,
    "max_wait_seconds": DEFAULT_BATCH_WAIT_SECONDS,
}
_RESPONSE_DEFAULTS: Mapping[str, object] = {"keep": "body", "max_bytes": 262_144, "when_larger": "fail"}
_BY_TYPE = ({"kind": "handler"}, {"kind": "pull"}, None)
"""Targets that follow from a task's type; a file can omit these targets."""
_TASK = "task"
_OPAQUE = "payload"
"""The task's field `payload`, whose value the API replaces completely."""
_INSTANTS = frozenset({"start_at", "end_at"})


class Action(StrEnum):
    """The action for one schedule."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    KEEP = "keep"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Difference:
    """A field whose value differs. `path` is the field's path in the API, such as `task.payload`."""

    path: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class Step:
    """The action for one schedule, with the details of the request.

    Attributes:
        line: Line of the entry in the file; 0 for a schedule that is not in the file.
        fields: All fields for a new schedule; a merge patch of the differences for an update.
        etag: The schedule's version that the step is based on.
        fault: Why the entry is not valid.
    """

    action: Action
    name: str
    line: int = 0
    fields: Mapping[str, Any] | None = None
    differences: tuple[Difference, ...] = ()
    etag: str | None = None
    fault: str = ""


def plan(entries: Sequence[Entry], present: Mapping[str, Schedule], to_delete: Sequence[str] = ()) -> list[Step]:
    """Return the steps that turn the existing schedules into the file's schedules, in the file's order, deletions last.

    Args:
        entries: The file's schedules.
        present: The existing schedules, by name.
        to_delete: The names of the schedules to delete.
    """
    steps = [step_of(entry, present.get(entry.name)) for entry in entries]
    return [*steps, *(Step(Action.DELETE, name, etag=present[name].etag) for name in sorted(to_delete))]


def step_of(entry: Entry, schedule: Schedule | None) -> Step:
    """Return the step for one entry."""
    if entry.fault:
        return Step(Action.REJECT, entry.name, entry.line, fault=entry.fault)
    if schedule is None:
        return Step(Action.CREATE, entry.name, entry.line, entry.fields)
    found = tuple(differences(entry.fields, schedule.document))
    if not found:
        return Step(Action.KEEP, entry.name, entry.line)
    return Step(
        Action.UPDATE, entry.name, entry.line, changes(entry.fields, schedule.document, found), found, schedule.etag
    )


def changes(wanted: Mapping[str, Any], document: Mapping[str, Any], found: Sequence[Difference]) -> dict[str, Any]:
    """Return an update's merge patch: the fields that differ; a field that the file omits is set to its default."""
    names = dict.fromkeys(each.path.partition(".")[0] for each in found)
    if any(name in names for name in TIMINGS):
        # The dialect determines the syntax of the timing, so both are sent together.
        names = {**names, "dialect": None}
    fields = {name: wanted.get(name, SCHEDULE_DEFAULTS.get(name)) for name in names if name != _TASK}
    given = {name: value for name, value in fields.items() if name not in TIMINGS or name in wanted}
    if _TASK not in names:
        return given
    differing = [each.path.partition(".")[2] for each in found if each.path.startswith(f"{_TASK}.")]
    return {**given, _TASK: _task_patch(_mapping(wanted.get(_TASK)), _mapping(document.get(_TASK)), differing)}


def _task_patch(wanted: Mapping[str, Any], document: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    said_once = {name: value for name, value in wanted.items() if name == _SAID_ONCE}
    patch = {name: _patch(document.get(name), wanted.get(name), opaque=name == _OPAQUE) for name in names}
    return {**said_once, **patch}


def _patch(before: object, after: object, *, opaque: bool = False) -> object:
    """Return the merge patch (RFC 7396) that turns one value into the other value."""
    if opaque or not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return after
    gone: dict[str, object] = dict.fromkeys(name for name in before if name not in after)
    return gone | {
        name: _patch(before.get(name), value, opaque=name == _BODY)
        for name, value in after.items()
        if before.get(name) != value
    }


def differences(wanted: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the fields in which an entry and a schedule differ, after defaults are filled in on both sides."""
    known = {*TIMINGS, *SCHEDULE_DEFAULTS}
    names = [*TIMINGS, *SCHEDULE_DEFAULTS, *(key for key in wanted if key not in {*known, _TASK, "remaining_runs"})]
    for name in names:
        default = SCHEDULE_DEFAULTS.get(name)
        before, after = document.get(name, default), wanted.get(name, default)
        if _canonical(name, before) != _canonical(name, after):
            yield Difference(name, before, after)
    task = wanted.get(_TASK)
    present = document.get(_TASK)
    yield from _task_differences(
        task if isinstance(task, Mapping) else {}, present if isinstance(present, Mapping) else {}
    )


def non_default_fields(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a task that differ from their defaults."""
    usual = {**TASK_DEFAULTS, "retry": dict(RETRY_DEFAULTS)}
    return {name: value for name, value in _complete_task(task).items() if name not in usual or usual[name] != value}


def _task_differences(wanted: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Difference]:
    after, before = _complete_task(wanted), _complete_task(document)
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield Difference(f"task.{name}", before.get(name), after.get(name))


def _complete_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task with its defaults; a default also replaces a null in the API's response."""
    given = {name: value for name, value in task.items() if value is not None and name != _SAID_ONCE}
    complete = {**TASK_DEFAULTS, **given, "retry": {**RETRY_DEFAULTS, **_mapping(given.get("retry"))}}
    complete |= _complete_locks(complete["lock"], complete["locks"])
    if complete["rate"] is not None:
        complete["rate"] = {**RATE_DEFAULTS, **_mapping(complete["rate"])}
    if complete["notify_on"] is not None:
        complete["notify_on"] = {**NOTIFY_ON_DEFAULTS, **_mapping(complete["notify_on"])}
    target = complete.pop("target", None)
    return complete if target in _BY_TYPE else {**complete, "target": _complete_target(_mapping(target))}


def _complete_locks(lock: object, locks: object) -> dict[str, Any]:
    """Return a task's locks as the API does: a single lock as `lock`, several locks as `locks` sorted by key."""
    listed = [lock] if lock is not None else locks if isinstance(locks, list) else []
    several = sorted((_complete_lock(_mapping(each)) for each in listed), key=lambda each: str(each.get("key")))
    return {"lock": several[0], "locks": []} if len(several) == 1 else {"lock": None, "locks": several}


def _complete_lock(lock: Mapping[str, Any]) -> dict[str, Any]:
    complete = {**LOCK_DEFAULTS, **lock}
    usual = 1 if complete["mode"] == "exclusive" else None
    return {**complete, "max_holders": usual if complete.get("max_holders") is None else complete["max_holders"]}


def _complete_target(target: Mapping[str, Any]) -> dict[str, Any]:
    lists = {name: sorted(map(str, target.get(name) or [])) for name in ("phases", "queries")}
    return {**{name: value for name, value in target.items() if name not in _REQUEST}, **lists, **_request(target)}


def _request(target: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request settings of an HTTP target, without values that equal the defaults."""
    auth, response = _mapping(target.get("auth")), _mapping(target.get("response"))
    written = {
        **{name: target.get(name) for name in _REQUEST},
        "success": sorted(set(target.get("success") or [])),
        "auth": {name: value for name, value in auth.items() if value is not None},
        "response": {name: value for name, value in response.items() if value != _RESPONSE_DEFAULTS.get(name)},
        "batch": {**_BATCH_DEFAULTS, **_mapping(batch)} if (batch := target.get("batch")) is not None else None,
    }
    return {name: value for name, value in written.items() if value}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _canonical(name: str, value: object) -> object:
    """Normalize a value, so that equivalent values compare equal, such as two notations of the same time."""
    if name in _INSTANTS and isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            return value
    if name == "timings" and isinstance(value, list):
        return [_given(each) if isinstance(each, Mapping) else each for each in value]
    return value


def _given(timing: Mapping[str, object]) -> Mapping[str, object]:
    """Return an entry of `timings` without the fields that the API adds."""
    return {name: value for name, value in timing.items() if value is not None and (name, value) != ("dialect", "cron")}
