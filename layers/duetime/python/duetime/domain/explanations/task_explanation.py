"""Why a task has not run yet, or where its time went: its gates in order, in words and as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.explanations.gate import Gate, GateName, GateState
from duetime.domain.explanations.present_gate import present_gate
from duetime.domain.explanations.start_gates import closed_gates
from duetime.domain.explanations.time_breakdown import summary_of, timeline
from duetime.domain.tasks.attempt_run import waiting_since
from duetime.domain.tasks.states import NOT_STARTED, State
from duetime.domain.times import SECOND, to_iso

if TYPE_CHECKING:
    from duetime.domain.explanations.facts import Facts
    from duetime.domain.explanations.time_breakdown import Part
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class TaskExplanation:
    """Why a task has not run yet, or where its time went.

    Attributes:
        as_of: when that was found.
        text: the answer in one sentence or two.
        gates: what it has passed, in order, then where it waits, then what else would keep it from beginning now. The
            durations of the gates sum to `total`.
        since: its creation or its due time, whichever is earlier.
        until: its end; `as_of` while it has not ended.
    """

    task: Task
    as_of: Millis
    text: str
    gates: tuple[Gate, ...]
    since: Millis
    until: Millis

    @property
    def total(self) -> Millis:
        """How long its life is, in milliseconds."""
        return self.until - self.since

    @property
    def overdue(self) -> Millis:
        """How much of that is after its due time."""
        return max(0, self.until - self.task.due_at)


def explain(task: Task, facts: Facts) -> TaskExplanation:
    """Explain a task."""
    parts = timeline(task, facts.older, facts.now)
    since, until = parts[0].since, parts[-1].until
    if task.finished_at is not None:
        gates = tuple(_passed(part) for part in parts)
        return TaskExplanation(task, facts.now, _ended_text(task, parts), gates, since, until)
    closed = closed_gates(task, facts) if task.state in NOT_STARTED else ()
    last = parts[-1]
    present = present_gate(task, facts, closed)
    present = replace(present, since=last.since, duration=last.duration)
    ahead = tuple(gate for gate in closed if gate.name is not present.name)
    gates = (*(_passed(part) for part in parts[:-1]), present, *ahead)
    text = f"{_open_text(present, ahead)}{_expiry_text(task)}"
    return TaskExplanation(task, facts.now, text, gates, since, until)


def _passed(part: Part) -> Gate:
    state = GateState.UNKNOWN if part.gate is GateName.NOT_RECORDED else GateState.PASSED
    return Gate(
        name=part.gate,
        state=state,
        text=f"{part.text[:1].upper()}{part.text[1:]}.",
        since=part.since,
        until=part.until,
        duration=part.duration,
    )


def _ended_text(task: Task, parts: tuple[Part, ...]) -> str:
    why = ""
    if task.state in {State.FAILED, State.CANCELLED} and task.error is not None:
        why = f" {task.error.type}: {task.error.message}"
    return f"{summary_of(task, parts)}{why}"


def _expiry_text(task: Task) -> str:
    """Until when its next attempt may start."""
    if task.state not in NOT_STARTED:
        return ""
    text = ""
    if task.start_by is not None and task.started_at is None:
        text = f" If it has not started by {to_iso(task.start_by)}, it expires."
    if task.retry_by is not None:
        text += f" No attempt starts after {to_iso(task.retry_by)}: it fails then."
    lock = task.lock
    if lock is not None and lock.wait_seconds is not None and task.waiting_for is not None:
        since = waiting_since(task, f"lock {lock.key}")
        if since is not None:
            text += f" If it has not got its lock by {to_iso(since + lock.wait_seconds * SECOND)}, it fails."
    return text


def _open_text(present: Gate, ahead: tuple[Gate, ...]) -> str:
    return " ".join([present.text, *(gate.text for gate in ahead)])
