"""Sets task timers, sends messages for tasks that are due soon, and knows how many shards new ids are spread over."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write, WriteResult
from duetime.domain.dispatch.enqueue_plan import (
    Message,
    Precision,
    Timer,
    delay_seconds,
    enqueue_plan,
    first_unread,
    is_check_kept,
    is_direct,
    late_timer,
    long_run_timer,
)
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import SHARDS_KNOWN, TYPE_DEFAULTS_LIFE, TYPE_DEFAULTS_TRUST
from duetime.domain.tasks.states import LEGAL, STARTABLE, Move, State
from duetime.ports.queues import Outgoing
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.dispatch.cursors import ShardHistory
    from duetime.domain.tasks.creation import KeyTaking, KeyWrite
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.ports.queues import MessagePace, WorkQueues
    from duetime.ports.runtime import Clock, Runtime
    from duetime.ports.stores import OrderLineStore, ShardStore
    from duetime.ports.tasks import TaskStore


@dataclass(slots=True)
class Shards:
    """Caches the number of shards in one process.

    Attributes:
        configured: the number of shards in this process's settings.
    """

    store: ShardStore
    clock: Clock
    configured: int
    _history: ShardHistory | None = field(default=None, init=False)
    _read_at: Millis = field(default=0, init=False)

    def prepare(self) -> None:
        """Read the number of shards before parallel calls need it; if the read fails, each call reports the failure."""
        if self._history is None:
            with suppress(Unavailable):
                self.announced()

    def count(self) -> int:
        """The number of shards for new ids; announces the number first if necessary.

        Raises:
            Unavailable: the store did not answer, and the process does not know whether the number was announced.
        """
        if self._history is None:
            self.announced()
        return self.configured

    def at(self, instant: Millis) -> int:
        """The number of shards at a given instant; every caller gets the same answer at any time.

        Raises:
            Unavailable: the store did not answer.
        """
        now = self.clock.now()
        history = self._history
        if history is None or not self._read_at <= now < self._read_at + SHARDS_KNOWN:
            history = self.announced()
        return history.at(instant)

    def may_have_type_defaults(self) -> bool:
        """Whether any owner has defaults for a type, according to an answer at most `TYPE_DEFAULTS_LIFE` old.

        Raises:
            Unavailable: the store did not answer, and the last answer is too old.
        """
        now, history = self.clock.now(), self._history
        if history is None:
            return self.announced().has_type_defaults
        if not history.has_type_defaults and now - self._read_at >= TYPE_DEFAULTS_LIFE:
            try:
                return self.announced().has_type_defaults
            except Unavailable:
                if now - self._read_at >= TYPE_DEFAULTS_TRUST:
                    raise
        return history.has_type_defaults

    def announce_type_defaults(self) -> None:
        """Let all processes read type defaults from now on.

        Raises:
            Unavailable: the store did not answer.
        """
        history = self.announced()
        if not history.has_type_defaults:
            self.store.announce_type_defaults()
            self._history = replace(history, has_type_defaults=True)

    def announced(self) -> ShardHistory:
        """All announced numbers of shards, including this process's own, as read from the store.

        Raises:
            Unavailable: the store did not answer.
        """
        now = self.clock.now()
        history = self.store.read()
        if history.number < self.configured:
            history = self.store.announce(self.configured, now)
        self._history, self._read_at = history, now
        return history


_PLACING = frozenset({"priority", "target", "fair_key", "fair_weight"})
"""Fields that determine the queue and the message group of a task."""
_WATCHED = frozenset({"due_at", "notify_on", "expires_seconds", "retry", "target", "started_at", "waiting_for"})
"""Fields that determine when a task is checked for lateness or expiry."""
_KEEPS_CHECK = frozenset({Move.CHANGE, Move.EXPEDITE})
"""Moves that users can repeat before a message arrives; other moves happen after the message is used up or lost."""


@frozen
class Enqueuer:
    """Schedules checks of tasks so that every task is checked in time, even after a crash.

    The order of the writes makes this safe. The timer is written first: a spurious timer is harmless, but a missing
    timer loses a task. The record is written next, conditionally. Last, after reading the clock again, the message is
    sent if the trigger may have read the task's minute before the record was written.

    Attributes:
        look_ahead: how far ahead of the clock the trigger reads, in milliseconds.
        precision: how the wait is split between the queue and the worker.
        pace: delays the messages of owners with a quota; `None` if there are no quotas.
        order_lines: returns the lines of ordered keys, which few tasks have.
    """

    tasks: TaskStore
    queues: WorkQueues
    runtime: Runtime
    look_ahead: Millis
    precision: Precision
    pace: MessagePace | None
    order_lines: Callable[[], OrderLineStore]

    def create(self, task: Task, taking: KeyTaking | None = None) -> bool:
        """Write a new record without sending a message; set a timer first if the trigger may have read its minute.

        Returns:
            Whether the stored record is this task's record. If so, `send_due` must follow.
        """
        plan = enqueue_plan(task.id, task.next_at, self.runtime.now(), self.look_ahead)
        if plan.timer:
            self.tasks.add_timer(_timer_for(task, task.generation, task.next_at, sent=plan.direct))
        self._watch_lateness(task)
        self._watch_expiry(task, task.generation)
        if task.order is not None:
            return self._create_in_line(replace(task, sent=plan.direct), taking)
        return self.tasks.create(replace(task, sent=plan.direct, nonce=task.nonce or self.runtime.nonce()), taking)

    def _create_in_line(self, task: Task, taking: KeyTaking | None) -> bool:
        """Write the place of an ordered key's task, then its record, because a place without a record is harmless."""
        # Few tasks have an ordered key, so the module is not imported at startup.
        from duetime.domain.order_lines import LinePlace, line_of  # noqa: PLC0415 - see the line above

        lines, now = self.order_lines(), self.runtime.now()
        if (name := line_of(task)) is None:
            return False
        number = lines.next_number(name, 1, now) if task.order_number is None else task.order_number
        lines.join(name, LinePlace(number, task.id, now))
        nonce = task.nonce or self.runtime.nonce()
        is_created = self.tasks.create(replace(task, order_number=number, nonce=nonce), taking)
        if not is_created:
            # If the place stayed, the tasks behind it would wait a while for the missing record.
            with suppress(Unavailable):
                lines.leave(name, number)
        return is_created

    def insert(self, tasks: Sequence[Task]) -> set[str]:
        """Write the new records that need neither a timer nor a place in a line, and send nothing.

        Args:
            tasks: the records, each with its own nonce.

        Returns:
            The nonces of the records known to be written. All other tasks must be created with `create`, and `send_due`
            must follow.
        """
        now = self.runtime.now()
        plans = [(task, enqueue_plan(task.id, task.next_at, now, self.look_ahead)) for task in tasks]
        bare = [
            replace(task, sent=plan.direct)
            for task, plan in plans
            if not (plan.timer or task.order is not None or self._is_watched(task))
        ]
        return {task.nonce for task in self.tasks.insert(bare).written} if len(bare) > 1 else set()

    def produce(self, task: Task) -> bool:
        """Write a new record with an id that was made earlier, possibly long ago, without sending a message.

        If the id's home minute has passed, the trigger may not read that minute again, so a timer is set first.

        Returns:
            Whether this call wrote the record; `send_due` must follow in either case.
        """
        now = self.runtime.now()
        at = max(task.next_at, now)
        plan = enqueue_plan(task.id, at, now, self.look_ahead)
        if plan.timer:
            self.tasks.add_timer(_timer_for(task, task.generation, at, sent=plan.direct))
        return self.create(task)

    def send_due(self, tasks: Sequence[Task]) -> None:
        """Send messages for just-written records whose minute the trigger may already have read.

        If the queue rejects a message, the first recovery scan finds the task by its record.
        """
        now = self.runtime.now()
        due = [task for task in tasks if is_direct(task.next_at, now, self.look_ahead)]
        self.queues.send([Outgoing(message_for(task), self._delay(task, now)) for task in due])

    def _delay(self, task: Task, now: Millis) -> int:
        seconds = delay_seconds(task.next_at, now, self.precision)
        return seconds if self.pace is None or task.pull_queue else self.pace.delay_seconds(task.owner, seconds)

    def move(
        self, task: Task, move: Move, at: Millis, guard: Guard, sets: TaskChanges, key_write: KeyWrite | None = None
    ) -> WriteResult:
        """Schedule a check of an existing task, as `write` does, and send a message if the check is due soon."""
        result = self.write(task, move, at, guard, sets, key_write)
        if isinstance(result, Applied) and _needs_message(task, result.task, move):
            self.send_due([result.task])
        return result

    def write(
        self, task: Task, move: Move, at: Millis, guard: Guard, sets: TaskChanges, key_write: KeyWrite | None = None
    ) -> WriteResult:
        """Schedule a check of an existing task, in the same write as the move that causes it.

        The check begins the next generation, which makes earlier messages and timers stale. If an earlier check serves
        the same purpose, that check is kept, because otherwise a task that is written more often than messages are
        delivered would never receive a message. This method sends no message, so `send_due` must follow if the write is
        applied.

        Args:
            task: the record as last read.
            move: what happens to the task.
            at: when to check the task; a time in the past means now.
            guard: condition on the record; the earlier check is kept only if this condition is the version of `task`.
            sets: other fields that the move changes.
            key_write: write to a key's item in the same transaction; `None` for no such write.
        """
        now = self.runtime.now()
        at = max(at, now)
        if move in _KEEPS_CHECK and guard.version == task.version and is_check_kept(task, at, now, sets):
            self.watch_change(task, move, sets)
            return self.tasks.apply(Write(task.id, move, self.runtime.nonce(), guard, sets), key_write)
        plan = enqueue_plan(task.id, at, now, self.look_ahead)
        generation = task.generation + 1
        if plan.timer:
            placing = {name: sets[name] for name in _PLACING & sets.keys()}  # type: ignore[literal-required]  # fields
            after = replace(task, state=LEGAL[move].to or task.state, **placing)
            self.tasks.add_timer(_timer_for(after, generation, at, sent=plan.direct))
        self.watch_change(task, move, sets, generation)
        sets = {**sets, "next_at": at, "generation": generation, "sent": plan.direct}
        return self.tasks.apply(Write(task.id, move, self.runtime.nonce(), guard, sets), key_write)

    def watch_change(self, task: Task, move: Move, sets: TaskChanges, generation: int | None = None) -> None:
        """Schedule a check for lateness or expiry if the move that is about to be written changes the check's time.

        Args:
            task: the record as last read.
            move: what happens to the task.
            sets: fields that the move changes.
            generation: generation that the move begins; `None` if the move begins none.
        """
        watched = {name: sets[name] for name in _WATCHED & sets.keys()}  # type: ignore[literal-required]  # fields
        after = replace(task, state=LEGAL[move].to or task.state, **watched)
        if after.late_at != task.late_at or task.state is State.BLOCKED:
            self._watch_lateness(after)
        if generation is not None or (after.start_by, after.retry_by) != (task.start_by, task.retry_by):
            self._watch_expiry(after, task.generation if generation is None else generation)

    def _is_watched(self, task: Task) -> bool:
        """Whether a new record has a timer for lateness or expiry."""
        late = late_timer(task, self.runtime.now(), self.look_ahead)
        return late is not None or self._expiry_timer(task, task.generation) is not None

    def _watch_expiry(self, task: Task, generation: int) -> None:
        if (timer := self._expiry_timer(task, generation)) is not None:
            self.tasks.add_timer(timer)

    def _expiry_timer(self, task: Task, generation: int) -> Timer | None:
        """The timer at which a worker expires a pulled task, which pull workers might never request."""
        start_by = task.start_by if task.started_at is None else task.retry_by
        if start_by is None or not task.pull_queue or task.state not in STARTABLE:
            return None
        at = first_unread(max(start_by, self.runtime.now()), self.look_ahead)
        return Timer(task.id, generation, at, task.priority, task.owner, fair_share=task.fair_share)

    def _watch_lateness(self, task: Task) -> None:
        if (timer := late_timer(task, self.runtime.now(), self.look_ahead)) is not None:
            self.tasks.add_late_timer(timer)

    def watch_long_run(self, task: Task) -> None:
        """Schedule a check that reports an attempt outside the worker functions if the attempt runs too long."""
        if (timer := long_run_timer(task, self.runtime.now(), self.look_ahead)) is not None:
            self.tasks.add_late_timer(timer)

    def remind(self, task: Task, at: Millis) -> None:
        """Check a task again at `at`, in its current generation, even if its message is lost."""
        now = self.runtime.now()
        plan = enqueue_plan(task.id, at, now, self.look_ahead)
        if plan.timer:
            self.tasks.add_timer(_timer_for(task, task.generation, at, sent=plan.direct))
        if plan.direct:
            message = replace(message_for(task), due=at)
            self.queues.send([Outgoing(message, delay_seconds(at, now, self.precision))])


def _needs_message(before: Task, after: Task, move: Move) -> bool:
    """Whether a move requires a message, because the check is new, changes its queue or group, or is requested for now.

    A user may expedite a task that is already due because its message was lost.
    """
    is_new = after.generation != before.generation
    is_moved = (after.priority, after.fair_share) != (before.priority, before.fair_share)
    return is_new or is_moved or move is Move.EXPEDITE


def message_for(task: Task) -> Message:
    """The message for a worker to check a task in its current generation."""
    place = task.priority, task.owner, task.pull_queue
    return Message(task.id, task.generation, task.next_at, *place, fair_share=task.fair_share)


def _timer_for(task: Task, generation: int, at: Millis, *, sent: bool) -> Timer:
    return Timer(task.id, generation, at, task.priority, task.owner, sent, task.pull_queue, task.fair_share)
