"""Codecs of a task's references to the schedule and the topology that it belongs to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from duetime.domain.ids import TaskId
from duetime.domain.tasks.parent_references import Cause, NodeRef, ScheduleRef

if TYPE_CHECKING:
    from duetime.adapters.dynamodb.attribute_values import Value

_CAUSES = {Cause.SCHEDULE: "s", Cause.CATCH_UP: "c", Cause.MANUAL: "m", Cause.BACKFILL: "b"}
_LETTERS = {letter: cause for cause, letter in _CAUSES.items()}
_BUFFERED = "q"
"""In place of the letter of a backfill: its run waits for the end of others."""
_OCCURRENCE = re.compile(r"([a-z])(?:-([0-9a-f]+))?(?:\+([0-9a-f]+))?(!?)")
"""An occurrence's cause, how far the one before it and the one after it are, and whether its end is reported."""
_REPORTS = "!"
"""Behind the letter of its cause: the schedule wants to hear of the occurrence's end."""
_GIVEN = "!"
"""In front of a node's note: it is given results of its parents."""


def schedule_ref(value: ScheduleRef) -> Value:
    """The schedule's occurrence that a task is: hexadecimal numbers, a letter, a mark, and last the name."""
    before = "" if value.previous is None else f"-{value.nominal - value.previous:x}"
    after = "" if value.next is None else f"+{value.next - value.nominal:x}"
    cause = _BUFFERED if value.is_buffered else _CAUSES[value.cause]
    occurrence = f"{cause}{before}{after}{_REPORTS if value.reports else ''}"
    return {"S": f"{value.revision:x} {value.nominal:x} {occurrence} {value.mark} {value.schedule}"}


def read_schedule_ref(value: Value) -> ScheduleRef:
    """Read the schedule's occurrence that a task is."""
    revision, at, occurrence, mark, schedule = str(value["S"]).split(" ", 4)
    if (found := _OCCURRENCE.fullmatch(occurrence)) is None:
        raise ValueError(f"no occurrence of a schedule: {occurrence!r}")
    letter, before, after, reports = found.groups()
    is_buffered = letter == _BUFFERED
    cause = Cause.BACKFILL if is_buffered else _LETTERS[letter]
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


def node_ref(value: NodeRef) -> Value:
    """Which node of a topology a task is: the run in hexadecimal, the topology, a note, and last the name."""
    note = (_GIVEN if value.inputs else "") + value.note
    return {"S": f"{value.run:x} {value.topology} {note} {value.key}"}


def read_node_ref(value: Value) -> NodeRef:
    """Read which node of a topology a task is."""
    run, topology, note, key = str(value["S"]).split(" ", 3)
    return NodeRef(TaskId(topology), int(run, 16), key, note.startswith(_GIVEN), note.removeprefix(_GIVEN))
