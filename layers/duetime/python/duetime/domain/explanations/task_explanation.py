"""Explains, as text and as a sequence of gates, why a task has not run yet or where its time went."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from duetime.domain.explanations.gate import Gate, GateName, GateState, OtherTask, OtherTasks, span
from duetime.domain.explanations.present_gate import closed_gates, present_gate
from duetime.domain.operating_parameters import BACKLOG_WITHOUT_ESTIMATE
from duetime.domain.tasks.attempt_records import FORGOTTEN, PAUSED, QUEUED, RECEIVED, RESUMED, AttemptOutcome, Wait
from duetime.domain.tasks.attempt_run import ended_attempts
from duetime.domain.tasks.states import LEASED, NOT_STARTED, State
from duetime.domain.tasks.task_options import OnConflict
from duetime.domain.tasks.wait_reasons import wait_reason
from duetime.domain.tasks.waits import waiting_for_locks_since
from duetime.domain.times import SECOND, to_iso
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.explanations.gate import Facts
    from duetime.domain.quotas import Quota
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Unique
    from duetime.domain.times import Millis


@frozen
class TaskExplanation:
    """Why a task has not run yet, or where its time went.

    Attributes:
        as_of: when the explanation was made.
        text: the answer in one or two sentences.
        gates: passed gates in order, then the current gate, then other gates that would prevent the task from starting
            now. The durations of the gates sum to `total`.
        since: the task's creation or due time, whichever is earlier.
        until: the task's end; `as_of` while the task has not ended.
        steps: names of the steps that the task's handler has completed.
    """

    task: Task
    as_of: Millis
    text: str
    gates: tuple[Gate, ...]
    since: Millis
    until: Millis
    steps: tuple[str, ...] = ()

    @property
    def total(self) -> Millis:
        """Duration from `since` to `until`, in milliseconds."""
        return self.until - self.since

    @property
    def overdue(self) -> Millis:
        """The part of `total` that lies after the task's due time, in milliseconds."""
        return max(0, self.until - self.task.due_at)


def explain(task: Task, facts: Facts) -> TaskExplanation:
    """Explain a task."""
    parts = timeline(task, facts.older, facts.now)
    since, until = parts[0].since, parts[-1].until
    if task.finished_at is not None:
        gates = tuple(_passed(part) for part in parts)
        return TaskExplanation(task, facts.now, _ended_text(task, parts), gates, since, until, facts.steps)
    closed = closed_gates(task, facts) if task.state in NOT_STARTED else ()
    last = parts[-1]
    present = present_gate(task, facts, closed)
    present = replace(present, since=last.since, duration=last.duration)
    ahead = tuple(gate for gate in closed if gate.name is not present.name)
    gates = (*(_passed(part) for part in parts[:-1]), present, *ahead)
    text = f"{_open_text(present, ahead)}{_expiry_text(task)}"
    return TaskExplanation(task, facts.now, text, gates, since, until, facts.steps)


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
    """The deadlines for the start of the task's next attempt, as text."""
    if task.state not in NOT_STARTED:
        return ""
    text = ""
    if task.start_by is not None and task.started_at is None:
        text = f" If it has not started by {to_iso(task.start_by)}, it expires."
    if task.retry_by is not None:
        text += f" No attempt starts after {to_iso(task.retry_by)}: it fails then."
    since = None if task.waiting_for is None else waiting_for_locks_since(task)
    for lock in task.all_locks:
        if since is not None and lock.wait_seconds is not None:
            which = f"the lock {lock.key}" if task.locks else "its lock"
            text += f" If it has not got {which} by {to_iso(since + lock.wait_seconds * SECOND)}, it fails."
    return text


def _open_text(present: Gate, ahead: tuple[Gate, ...]) -> str:
    return " ".join([present.text, *(gate.text for gate in ahead)])


_AFTER = {
    AttemptOutcome.RETRIED: (GateName.RETRY, "waited before the next attempt"),
    AttemptOutcome.PAUSED: (GateName.PAUSED, "it was paused"),
}
_OF_ITS_USER = {
    PAUSED: (GateName.PAUSED, "it was paused"),
    RESUMED: (GateName.DUE, "waited for its due time after it was resumed"),
}
_OF_ITS_MESSAGE = {
    QUEUED: (GateName.QUEUE, "its message was on the queue"),
    RECEIVED: (GateName.WORKER, "a worker had received it but had not started it"),
}
_STAGES = {**_OF_ITS_USER, **_OF_ITS_MESSAGE}
_TRIGGER = (
    GateName.TRIGGER,
    "the trigger had not sent its message, or that message was lost and had not been replaced",
)
_LOST = (GateName.TRIGGER, "its first message was lost and had not been replaced")
_FOLLOW_UP = (GateName.FOLLOW_UP, "its follow-ups")
_ENDED = (GateName.ENDED, "ended, until it was retried or rolled back")
_DISPATCH = (GateName.DISPATCH, "on its way to a worker: the trigger, the queue and the worker")


@frozen
class Part:
    """A period in a task's life that was spent at one gate.

    Attributes:
        text: explanation for people.
    """

    gate: GateName
    since: Millis
    until: Millis
    text: str

    @property
    def duration(self) -> Millis:
        """The duration of the period."""
        return self.until - self.since


@frozen
class _Mark:
    """A mark, which gives the gate where a task is from an instant on."""

    at: Millis
    gate: GateName
    text: str


def timeline(task: Task, older: Sequence[AttemptRecord], now: Millis) -> tuple[Part, ...]:
    """A task's history, from its creation or due time, whichever is earlier, to its end or to now.

    Time that the record does not explain is a separate part.

    Args:
        task: the record.
        older: the attempts that no longer fit into the record.
        now: the time.
    """
    begin = min(task.created_at, task.due_at)
    end = max(begin, now if task.finished_at is None else task.finished_at)
    marks = sorted(_marks(task, ended_attempts(task, older)), key=lambda mark: mark.at)
    reached = [mark for mark in marks if mark.at < end + (mark.gate is GateName.RUN) or mark is marks[0]]
    return tuple(_parts(reached, begin, end))


def _parts(marks: Sequence[_Mark], begin: Millis, end: Millis) -> Iterator[Part]:
    """The parts between marks.

    If several marks have the same instant, the last mark applies; equal neighbors are merged.
    """
    bounds = [max(begin, min(mark.at, end)) for mark in marks]
    current: Part | None = None
    for mark, (since, until) in zip(marks, pairwise([*bounds, end]), strict=True):
        # An attempt can start and end in the same millisecond.
        if since == until and mark.gate is not GateName.RUN and not (mark is marks[-1] and current is None):
            continue
        if current is not None and (current.gate, current.text) == (mark.gate, mark.text):
            current = Part(current.gate, current.since, until, current.text)
            continue
        if current is not None:
            yield current
        current = Part(mark.gate, begin if current is None else since, until, mark.text)
    if current is not None:
        yield current


def _marks(task: Task, lines: Sequence[AttemptRecord]) -> Iterator[_Mark]:
    yield from _before_the_first_check(task, lines)
    for wait in task.waits:
        yield _of_wait(wait)
    previous: AttemptRecord | None = None
    for line in lines:
        yield from _of_line(task, line, previous, is_last=task.is_terminal and line is lines[-1])
        previous = line
    if task.state in LEASED and task.run_at is not None and task.lease_expires_at is not None:
        yield from _of_present(task, previous)
    elif not task.is_terminal and task.state not in {State.PAUSED, State.BLOCKED} and (lines or task.waits):
        yield _Mark(task.next_at, *_DISPATCH)


def _before_the_first_check(task: Task, lines: Sequence[AttemptRecord]) -> Iterator[_Mark]:
    """The time before the task was first enqueued."""
    if task.node_ref is not None:
        yield _Mark(min(task.created_at, task.due_at), GateName.PARENTS, "waited for its parents in the topology")
    elif task.after is not None:
        yield _Mark(min(task.created_at, task.due_at), GateName.PARENTS, "waited for the tasks in its `after`")
    elif task.due_at < task.created_at:
        yield _Mark(task.due_at, GateName.CREATION, "it was due before it was created")
    else:
        yield _Mark(task.created_at, GateName.DUE, "waited for its due time")
    first = _first_check(task, lines)
    is_paused = any(wait.reason == PAUSED and wait.since <= first for wait in task.waits)
    ready = max(task.due_at, task.created_at)
    if not _was_blocked(task) and ready < first and not is_paused:
        if first - ready < SECOND:
            first = ready
        else:
            yield _Mark(ready, GateName.NOT_RECORDED, "the record does not say why")
    if task.state is not State.BLOCKED and not _is_held(task, first):
        yield _Mark(first, *_DISPATCH)


def _first_check(task: Task, lines: Sequence[AttemptRecord]) -> Millis:
    """When the task was first enqueued, according to the record."""
    ready = max(task.due_at, task.created_at)
    waits = [wait.since for wait in task.waits if wait.reason not in _STAGES]
    if waits and not (lines and 0 < lines[0].started_at < waits[0]):
        # A task must have been due and enqueued before it was postponed.
        return waits[0] if _was_blocked(task) else min(waits[0], ready)
    if not lines:
        return task.next_at
    first = lines[0]
    return first.started_at - first.late if first.started_at else min(ready, task.started_at or ready)


def _was_blocked(task: Task) -> bool:
    """Whether the task was initially blocked by other tasks."""
    return task.node_ref is not None or task.after is not None


def _is_held(task: Task, at: Millis) -> bool:
    """Whether the task has been paused since before an instant."""
    return task.state is State.PAUSED and bool(task.waits) and task.waits[-1].since <= at


def _of_wait(wait: Wait) -> _Mark:
    if wait.reason == FORGOTTEN:
        return _Mark(wait.since, GateName.NOT_RECORDED, "several waits that no longer fit into the record")
    if wait.reason in _STAGES:
        return _Mark(wait.since, *_STAGES[wait.reason])
    return _Mark(wait.since, GateName(wait_reason(wait.reason).value), f"waited: {wait.reason}")


def _of_line(task: Task, line: AttemptRecord, previous: AttemptRecord | None, *, is_last: bool) -> Iterator[_Mark]:
    """Marks of an ended attempt and of the time before and after it; the last attempt led to the outcome."""
    is_lost = line.outcome is AttemptOutcome.LOST or not line.started_at
    if is_lost:
        yield _of_lost(task, line, previous)
        return
    planned = line.started_at - line.late
    if previous is None or (previous.started_at and planned >= previous.started_at + previous.took):
        stages = [wait.since for wait in task.waits if wait.reason in _OF_ITS_MESSAGE]
        is_known = any(wait.reason == QUEUED and planned < wait.since <= line.started_at for wait in task.waits)
        # A message that was sent on time already has a stage that starts at this instant.
        if planned not in stages:
            yield _Mark(planned, *(_before_the_queue(task) if is_known else _DISPATCH))
    failed = f": {line.error.type}" if line.error else ""
    yield _Mark(line.started_at, GateName.RUN, f"attempt {line.attempt} ({line.outcome}{failed})")
    yield _Mark(line.started_at + line.took, *_AFTER.get(line.outcome, _FOLLOW_UP if is_last else _ENDED))


def _before_the_queue(task: Task) -> tuple[GateName, str]:
    """Where a task was before the received message was sent; an earlier message may have been lost."""
    return _LOST if task.sent and not task.generation else _TRIGGER


def _of_lost(task: Task, line: AttemptRecord, previous: AttemptRecord | None) -> _Mark:
    """Mark of an attempt that was lost with its worker; only the first attempt's start is known."""
    text = f"attempt {line.attempt}, which was lost with its worker, and the time until this was detected"
    if previous is None and task.started_at is not None:
        return _Mark(task.started_at, GateName.RECOVERY, text)
    at = task.due_at if previous is None else previous.started_at + previous.took
    return _Mark(at, GateName.NOT_RECORDED, f"{text}: the record does not say when it began")


def _of_present(task: Task, previous: AttemptRecord | None) -> Iterator[_Mark]:
    """Marks of the running attempt."""
    began = task.run_at or 0
    if previous is None or previous.started_at:
        yield _Mark(min(task.next_at, began), *_DISPATCH)
    if task.awaiting_notification:
        yield _Mark(began, GateName.NOTIFICATION, f"attempt {task.attempt}, whose target is to report the outcome")
    else:
        yield _Mark(began, GateName.RUN, f"attempt {task.attempt}")
    yield _Mark(task.lease_expires_at or 0, GateName.RECOVERY, "its lease has expired")


def summary_of(task: Task, parts: Sequence[Part]) -> str:
    """One sentence that says where an ended task's time went, with the longest part first."""
    end = parts[-1].until
    spent: dict[GateName, Millis] = {}
    for part in parts:
        if part.until > task.due_at:
            spent[part.gate] = spent.get(part.gate, 0) + part.until - max(part.since, task.due_at)
    if end <= task.due_at:
        return f"It ended {span(task.due_at - end)} before its due time." if end < task.due_at else "It ended on time."
    listed = ", ".join(
        f"{span(length)} {gate.replace('_', ' ')}"
        for gate, length in sorted(spent.items(), key=lambda pair: -pair[1])
        if length
    )
    return f"It ended {span(end - task.due_at)} after its due time: {listed}."


@frozen
class SpentQuota:
    """A quota that an owner has used up.

    Attributes:
        refuses: whether the quota rejects the creation; otherwise the task waits.
    """

    quota: Quota
    limit: int
    used: float
    refuses: bool


@frozen
class StartConditions:
    """The current conditions that determine when a task that has not been created would start.

    Attributes:
        now: when the conditions were read.
        closed: the gates that would keep the task from starting under current conditions.
        unique: the task's unique key; `None` if the task has no unique key.
        holder: the task that holds that key; `None` if no task does.
        quotas: quotas that are used up.
        queue: name of the task's queue.
        backlog: number of messages that wait on the queue.
    """

    now: Millis
    closed: Sequence[Gate]
    unique: Unique | None
    holder: Task | None
    quotas: Sequence[SpentQuota]
    queue: str
    backlog: int


@frozen
class StartPreview:
    """When a task would start.

    Attributes:
        task: the task as it would be created.
        expected_start: when the task would start; `None` if unknown, or if the task would not be created.
        reasons: what the task would wait for.
    """

    as_of: Millis
    task: Task
    expected_start: Millis | None
    reasons: tuple[Gate, ...]

    @property
    def text(self) -> str:
        """The explanation in words."""
        away = 0 if self.expected_start is None else self.expected_start - self.as_of
        when = (
            "It is not known when it would start."
            if self.expected_start is None
            else f"It would start at {to_iso(self.expected_start)}, {'now' if away <= 0 else f'in {span(away)}'}."
        )
        return " ".join([when, *(gate.text for gate in self.reasons)])


def preview(task: Task, known: StartConditions) -> StartPreview:
    """Estimates when a task would start, and lists the reasons for its wait."""
    reasons = tuple(_reasons(task, known))
    ends = [max(task.due_at, known.now), *(gate.until for gate in reasons)]
    is_known = all(end is not None for end in ends)
    return StartPreview(known.now, task, max(end or 0 for end in ends) if is_known else None, reasons)


def _reasons(task: Task, known: StartConditions) -> Iterator[Gate]:
    if known.holder is not None and known.unique is not None:
        yield _held_key(known.holder, known.unique)
    for spent in known.quotas:
        then = "a creation is refused" if spent.refuses else "due tasks wait"
        text = f"The quota {spent.quota} is used up ({spent.used:,} of {spent.limit:,}): {then}."
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
