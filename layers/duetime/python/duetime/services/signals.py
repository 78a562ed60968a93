"""Lets tasks wait for an event without occupying a worker, and wakes all waiting tasks when a signal is sent.

No signal is lost, regardless of the order in which the steps happen. A worker that finds no signal stores a note of the
task with the event, and searches once more before it lets the task wait. A signal is stored before the noted tasks are
enqueued, and each task takes the first stored signal that meets its condition. If a worker is checking a noted task,
the sender reads the task again until the check has ended.
"""

from __future__ import annotations

from enum import Enum
from functools import cache, partial
from typing import TYPE_CHECKING

from duetime.domain.bulk import FilterResult
from duetime.domain.conditional_writes import Applied, Guard
from duetime.domain.errors import Unavailable
from duetime.domain.ids import TaskId
from duetime.domain.limits import SIGNAL_LIFE
from duetime.domain.operating_parameters import EVENT_WAITER_KEPT
from duetime.domain.tasks.attempt_results import Succeeded
from duetime.domain.tasks.event_waits import (
    AwaitedEvent,
    SentSignal,
    TooManySignals,
    WaitingTask,
    after_timeout,
    after_too_many_signals,
    awaited_event,
    first_met,
    first_signal_id,
    has_left,
    is_being_checked,
    is_met,
    is_waiting,
    waiting_time,
)
from duetime.domain.tasks.states import Move
from duetime.domain.tasks.targets import EventTarget
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.tasks.attempt_results import Failed, Postponed
    from duetime.domain.tasks.event_waits import Signal
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer

_AT_ONCE = 100
"""Number of waiting tasks read and enqueued together, and of signals compared with a condition together."""
_TRIES = 5
_CHECK_PAUSE: Millis = 100
"""Pause before another read of a task that a worker is checking; a check takes three requests."""
_BEFORE_ALL = TaskId.of(0, 0, 0)


@frozen
class EventWaits:
    """Lets claimed tasks wait for their event, and ends each task with the first matching signal."""

    stores: Stores
    runtime: Runtime

    def held(self, task: Task) -> Postponed | None:
        """Whether a just-claimed task must wait for a signal; `None` if a signal exists, or the wait has timed out.

        Raises:
            Unavailable: the store did not answer.
        """
        event = awaited_event(task)
        if event is None or not isinstance(task.target, EventTarget):
            return None
        try:
            return self._wait(event, task, task.target)
        except TooManySignals:
            return None

    def ending(self, target: EventTarget, task: Task) -> Succeeded | Failed:
        """The end of a task that no longer waits, which is the payload of its signal, or a failure.

        Raises:
            Unavailable: the store did not answer.
        """
        event = awaited_event(task)
        if event is None:
            # This is a rollback, and the task did nothing that must be rolled back.
            return Succeeded(b"null")
        try:
            signal = self._first(event, task, target)
        except TooManySignals:
            return after_too_many_signals(target)
        return after_timeout(target) if signal is None else Succeeded(signal.payload)

    def _wait(self, event: AwaitedEvent, task: Task, target: EventTarget) -> Postponed | None:
        if self._first(event, task, target) is not None:
            return None
        wait = waiting_time(task, target, self.runtime.now())
        if wait is None:
            return None
        expires_at = wait.until + EVENT_WAITER_KEPT
        self.stores.signals.join(event, WaitingTask(task.id, task.fence), expires_at)
        # A signal that was stored just before the task was noted could not wake the task, so the signals are read
        # again.
        return wait if self._first(event, task, target) is None else None

    def _first(self, event: AwaitedEvent, task: Task, target: EventTarget) -> SentSignal | None:
        page = 1 if target.when is None else _AT_ONCE
        return first_met(target.when, self.stores.signals.since(event, first_signal_id(task), page))


@frozen
class _Sending:
    """A signal that is being sent.

    Attributes:
        id: id of the signal.
        event: the event that the signal reports.
        meets: whether the signal meets a task's condition; each distinct condition is evaluated only once.
    """

    id: TaskId
    event: AwaitedEvent
    meets: Callable[[str | None], bool]


class _Met(Enum):
    """The effect of a signal on a noted task."""

    WOKEN = "woken"
    PASSED = "passed"
    BUSY = "busy"


@frozen
class Signals:
    """Stores signals, and enqueues the tasks that wait for them."""

    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime

    def wake(self, owner: str, signal: Signal, sent: TaskId, after: TaskId | None, until: Millis) -> FilterResult:
        """Store a signal, and enqueue as many of the tasks that wait for it as time allows; the call may be repeated.

        Args:
            owner: owner of the signal and the tasks.
            signal: the signal.
            sent: id of the signal.
            after: the last task of an earlier call; `None` for the first call, which stores the signal.
            until: when to stop.

        Raises:
            Unavailable: the store did not answer.
        """
        event = AwaitedEvent(owner, signal.name, signal.key)
        if after is None:
            expires_at = sent.home + SIGNAL_LIFE
            self.stores.signals.put(event, SentSignal(sent, signal.payload), expires_at)
        sending = _Sending(sent, event, cache(partial(is_met, payload=signal.payload)))
        examined = woken = 0
        last = after or _BEFORE_ALL
        while noted := self.stores.signals.waiting(event, last, _AT_ONCE):
            ends = self._meet(sending, noted)
            busy = ends.index(_Met.BUSY) if _Met.BUSY in ends else None
            examined += len(noted[:busy])
            woken += ends.count(_Met.WOKEN)
            last = noted[-1].task_id if busy is None else ([last] + [each.task_id for each in noted])[busy]
            if self.runtime.now() >= until:
                return FilterResult(examined, woken, woken, {}, last)
            if busy is not None:
                self.runtime.clock.sleep_until(self.runtime.now() + _CHECK_PAUSE)
        return FilterResult(examined, woken, woken, {}, None)

    def _meet(self, sending: _Sending, noted: Sequence[WaitingTask]) -> list[_Met]:
        tasks = self.stores.tasks.read_many([each.task_id for each in noted], consistent=True)
        found = [(each, tasks.get(each.task_id)) for each in noted]
        met = list(self.runtime.executor.map(lambda pair: self._met(sending, *pair), found))
        self.enqueuer.send_due([task for _, task in met if task is not None])
        return [end for end, _ in met]

    def _met(self, sending: _Sending, noted: WaitingTask, task: Task | None) -> tuple[_Met, Task | None]:
        """Enqueue a waiting task; returns an enqueued task, for which `send_due` must follow."""
        event = sending.event
        for _ in range(_TRIES):
            if task is None or has_left(task, event):
                self.stores.signals.leave(event, noted)
                return _Met.PASSED, None
            if isinstance(task.target, EventTarget) and not sending.meets(task.target.when):
                return _Met.PASSED, None
            now = self.runtime.now()
            if is_being_checked(task, event):
                return _Met.BUSY, None
            if not is_waiting(task, event, now) or sending.id < first_signal_id(task):
                # Either the task's next check finds the signal, or the signal is older than the task's wait.
                return _Met.PASSED, None
            result = self.enqueuer.write(task, Move.REPLACE, now, Guard(version=task.version), {})
            if isinstance(result, Applied):
                return _Met.WOKEN, result.task
            task = result.task
        raise Unavailable(f"the task {noted.task_id} has too many concurrent writes")
