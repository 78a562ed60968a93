"""Handles tasks that wait for an event, and signals, which say that an event has happened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_results import Postponed, failure
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import EventTarget
from duetime.domain.tasks.wait_reasons import EVENT_AWAITED
from duetime.domain.tasks.waits import awaits_target_since
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.tasks.attempt_results import Failed
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

TIMED_OUT = "EventTimedOut"
"""Error type of a task whose event did not happen in time."""
TOO_MANY_SIGNALS = "TooManySignals"
"""Error type of a task whose condition needs too many steps to examine all signals about its event."""
CONDITION_STEPS = 50_000
"""Maximum number of steps of a condition for one signal, which are enough to filter a list as large as the largest
payload."""
_ALL_STEPS = 1_000_000
"""Maximum number of steps for all signals together, which are enough for about 50,000 small signals, or one second."""
_SIGNAL_STEPS = 10
_BYTES_OF_A_STEP = 25
"""Reading a signal takes about as long as `_SIGNAL_STEPS` steps, plus one step per `_BYTES_OF_A_STEP` bytes."""


@frozen
class AwaitedEvent:
    """Identifies an awaited event by its owner, name and key.

    Attributes:
        key: distinguishes events with the same name; empty for no key.
    """

    owner: str
    name: str
    key: str = ""


@frozen
class Signal:
    """A message saying that an event has happened.

    Attributes:
        payload: JSON text in UTF-8, which becomes the result of the tasks that wait for the event.
    """

    name: str
    key: str = ""
    payload: bytes = b"null"


@frozen
class SentSignal:
    """A stored signal.

    Attributes:
        id: the signal's id, which contains the time at which it was sent.
        payload: JSON text in UTF-8.
    """

    id: TaskId
    payload: bytes


@frozen
class WaitingTask:
    """A task that waits for an event, as stored under the event.

    Attributes:
        fence: fence of the claim that stored this waiting task.
    """

    task_id: TaskId
    fence: int


def awaited_event(task: Task) -> AwaitedEvent | None:
    """The event that a task waits for; `None` for other targets, and for a rollback."""
    target = task.target
    if not isinstance(target, EventTarget) or task.state is State.ROLLING_BACK:
        return None
    return AwaitedEvent(task.owner, target.event, target.key)


def first_signal_id(task: Task) -> TaskId:
    """The lowest signal id that a task accepts; its time is `lookback_seconds` before the task's creation or retry."""
    before = task.target.lookback_seconds * SECOND if isinstance(task.target, EventTarget) else 0
    return TaskId.of(max(0, max(task.created_at, task.reopened_at or 0) - before), 0, 0)


class TooManySignals(Exception):
    """A condition needs too many steps for the signals that a task has to examine."""


def is_met(condition: str | None, payload: bytes) -> bool:
    """Whether a task with this condition accepts a signal with this payload.

    If the condition is not true, or cannot be evaluated, the signal is meant for another task.
    """
    return condition is None or _evaluated(condition, payload)[0]


def first_met(condition: str | None, signals: Iterable[SentSignal]) -> SentSignal | None:
    """The first signal that meets a condition.

    Raises:
        TooManySignals: there are too many signals, or the condition takes too many steps.
    """
    left = _ALL_STEPS
    for signal in signals:
        if condition is None:
            return signal
        met, steps = _evaluated(condition, signal.payload)
        if met:
            return signal
        left -= steps + _SIGNAL_STEPS + len(signal.payload) // _BYTES_OF_A_STEP
        if left < 0:
            raise TooManySignals
    return None


def _evaluated(condition: str, payload: bytes) -> tuple[bool, int]:
    """Whether a condition is true, and how many steps its evaluation took."""
    # Few tasks have a condition, so the parser for conditions is imported only when one is evaluated.
    from duetime_common.conditions import PAYLOAD, Budget, evaluate  # noqa: PLC0415 - see the line above

    budget = Budget(CONDITION_STEPS)
    try:
        met = evaluate(condition, {PAYLOAD: json.loads(payload)}, budget) is True
    except Exception:  # noqa: BLE001 - the library lets through whatever Python raises about a value of another type
        met = False
    return met, CONDITION_STEPS - budget.left


def is_waiting(task: Task, event: AwaitedEvent, now: Millis) -> bool:
    """Whether a task waits for this event, and its next check is in the future."""
    is_for_event = task.waiting_for is not None and task.waiting_for.startswith(EVENT_AWAITED)
    waits = task.state is State.WAITING and awaited_event(task) == event and is_for_event
    return waits and task.is_postponed and task.next_at > now


def is_being_checked(task: Task, event: AwaitedEvent) -> bool:
    """Whether a worker has claimed a task and may make the task wait without having seen the latest signal."""
    return task.state is State.RUNNING and awaited_event(task) == event


def has_left(task: Task, event: AwaitedEvent) -> bool:
    """Whether a task has ended or no longer waits for this event.

    If the task waits for the event again, the task is stored again.
    """
    return task.is_terminal or awaited_event(task) != event


def waiting_time(task: Task, target: EventTarget, now: Millis) -> Postponed | None:
    """How long a due task will still wait for its event; `None` if it has timed out."""
    until = awaits_target_since(task, now) + target.timeout_seconds * SECOND
    return Postponed(until, f"{EVENT_AWAITED}{target.event} {target.key}".rstrip()) if now < until else None


def after_timeout(target: EventTarget) -> Failed:
    """The end of a task whose event did not happen in time."""
    with_key = f" with the key {target.key}" if target.key else ""
    condition = f" that meets its condition, {target.when}" if target.when else ""
    reason = f"there was no signal {target.event}{with_key} within {target.timeout_seconds} s{condition}"
    return failure(TIMED_OUT, reason, retriable=False)


def after_too_many_signals(target: EventTarget) -> Failed:
    """The end of a task that cannot examine all signals of its event."""
    reason = f"its condition takes too many steps on all signals {target.event} that were sent meanwhile: {target.when}"
    return failure(TOO_MANY_SIGNALS, reason, retriable=False)
