"""Estimates when a task would start if it were created now, with the gates of an explanation as reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.explanations.gate import Gate, GateName, GateState, OtherTask, OtherTasks, span
from duetime.domain.operating_parameters import BACKLOG_WITHOUT_ESTIMATE
from duetime.domain.tasks.task_options import OnConflict
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.quotas import Quota
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Unique
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class SpentQuota:
    """A quota of which an owner has nothing left.

    Attributes:
        refuses: whether it refuses the creation; otherwise the task waits.
    """

    quota: Quota
    limit: int
    used: float
    refuses: bool


@dataclass(frozen=True, slots=True)
class StartConditions:
    """What decides about the start of a task that is not created yet.

    Attributes:
        now: when it was read.
        closed: the gates that would keep the task from starting under present conditions.
        unique: its unique key; `None` if it has none.
        holder: the task that holds that key; `None` if none does.
        quotas: quotas that are used up.
        queue: name of its queue.
        backlog: messages that wait there.
    """

    now: Millis
    closed: Sequence[Gate]
    unique: Unique | None
    holder: Task | None
    quotas: Sequence[SpentQuota]
    queue: str
    backlog: int


@dataclass(frozen=True, slots=True)
class StartPreview:
    """When a task would start.

    Attributes:
        task: the task as it would be created.
        expected_start: when it would start; `None` if that is not known, or if it would not be created.
        reasons: what it would wait for.
    """

    as_of: Millis
    task: Task
    expected_start: Millis | None
    reasons: tuple[Gate, ...]

    @property
    def text(self) -> str:
        """The answer in words."""
        away = 0 if self.expected_start is None else self.expected_start - self.as_of
        when = (
            "It is not known when it would start."
            if self.expected_start is None
            else f"It would start at {to_iso(self.expected_start)}, {'now' if away <= 0 else f'in {span(away)}'}."
        )
        return " ".join([when, *(gate.text for gate in self.reasons)])


def preview(task: Task, known: StartConditions) -> StartPreview:
    """Estimate when a task would start, with the reasons."""
    reasons = tuple(_reasons(task, known))
    ends = [max(task.due_at, known.now), *(gate.until for gate in reasons)]
    is_known = all(end is not None for end in ends)
    return StartPreview(known.now, task, max(end or 0 for end in ends) if is_known else None, reasons)


def _reasons(task: Task, known: StartConditions) -> Iterator[Gate]:
    if known.holder is not None and known.unique is not None:
        yield _held_key(known.holder, known.unique)
    for spent in known.quotas:
        then = "a creation is refused" if spent.refuses else "due tasks wait"
        text = f"The quota {spent.quota} is used up ({spent.used:g} of {spent.limit}): {then}."
        yield Gate(name=GateName.QUOTA, state=GateState.AHEAD, text=text)
    if task.due_at > known.now:
        text = f"It is due at {to_iso(task.due_at)}, in {span(task.due_at - known.now)}."
        yield Gate(name=GateName.DUE, state=GateState.AHEAD, text=text, until=task.due_at)
    yield from known.closed
    if known.backlog:
        text = f"{known.backlog} messages wait in the queue {known.queue}; those that are due earlier start first."
        is_long = known.backlog >= BACKLOG_WITHOUT_ESTIMATE
        until = None if is_long else max(task.due_at, known.now)
        yield Gate(name=GateName.QUEUE, state=GateState.AHEAD, text=text, until=until)


def _held_key(holder: Task, unique: Unique) -> Gate:
    then = {
        OnConflict.KEEP: "that task is returned",
        OnConflict.REPLACE: "that task gets the fields of the request if it has not started",
        OnConflict.REFUSE: "the creation is refused",
    }[unique.on_conflict]
    text = f"The task {holder.id} ({holder.state}) holds the unique key {unique.key}: nothing is created, {then}."
    held_by = OtherTasks((OtherTask(holder.id, holder.state, since=holder.run_at),))
    return Gate(name=GateName.UNIQUE_KEY, state=GateState.AHEAD, text=text, waits_for=held_by)
