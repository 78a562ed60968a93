"""Sends the messages of due tasks, each queue separately, and handles due schedules and bulk operations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import (
    BULK_OPERATIONS,
    LATE_CHECKS,
    SCHEDULES,
    BulkTimer,
    LateTimer,
    Message,
    Precision,
    ScheduleTimer,
    delay_seconds,
    is_direct,
    queue_of,
    send_groups,
)
from duetime.domain.operating_parameters import LATEST_SEND
from duetime.domain.tasks.notices import lateness_notice
from duetime.ports.queues import Outgoing
from duetime.services.enqueue import message_for
from duetime.services.task_telemetry import dispatch_span, expansion_span
from duetime.services.trigger.shard_group_reader import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.dispatch.enqueue_plan import SendGroup
    from duetime.domain.times import Millis
    from duetime.ports.queues import WorkQueues
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import MinuteItem, TaskStore
    from duetime.services.bulk.manage import BulkOperations
    from duetime.services.schedules.expander import ScheduleExpander


@dataclass(frozen=True, slots=True)
class DueMessages:
    """The common part of the first reading and the recovery scans.

    Attributes:
        expander: creates the occurrences of schedules whose timers are met.
        tasks: store of tasks that may be late.
        bulk_operations: starts the bulk operations whose timers are met.
        look_ahead: how far ahead of the clock minutes are read, in milliseconds.
        precision: how the wait is split between the queue and the worker.
    """

    tasks: TaskStore
    queues: WorkQueues
    expander: ScheduleExpander
    bulk_operations: BulkOperations
    runtime: Runtime
    look_ahead: Millis
    precision: Precision

    def send(self, messages: Sequence[Message]) -> Served:
        """Send messages; returns the queues that did not acknowledge all of theirs as rejected."""
        if not messages:
            return Served({}, frozenset())
        with self.runtime.tracer.span(dispatch_span(messages)):
            groups = send_groups(messages, self.runtime.now(), self.precision)
            unsent = [each for group in groups for each in self._send_in_time(group)]
        if unsent:
            self.runtime.telemetry.count("messages_unsent", len(unsent))
        sent = Counter(queue_of(message) for message in messages)
        return Served(sent, frozenset(queue_of(each.message) for each in unsent))

    def _send_in_time(self, group: SendGroup) -> Sequence[Outgoing]:
        """Send messages together at their time; returns those that were not acknowledged."""
        self.runtime.clock.sleep_until(group.at)
        now = self.runtime.now()
        since = group.at if now <= group.at + LATEST_SEND else now
        return self.queues.send(
            [Outgoing(message, delay_seconds(message.due, since, self.precision)) for message in group.messages]
        )

    def follow_timers(self, items: Sequence[MinuteItem], wants: Callable[[str], bool]) -> frozenset[str]:
        """Handle the schedules, bulk operations and late tasks whose timers are among the items; returns rejected ones.

        If the queue rejects a schedule's task, the first recovery scan finds it, as with every new task.
        """
        schedule_timers = [item for item in items if isinstance(item, ScheduleTimer)]
        timers = [item for item in items if isinstance(item, BulkTimer)]
        refused = set[str]()
        if schedule_timers and wants(SCHEDULES) and not self._expand(schedule_timers):
            refused.add(SCHEDULES)
        if timers and wants(BULK_OPERATIONS) and not self.bulk_operations.resume(timers):
            refused.add(BULK_OPERATIONS)
        late_timers = [item for item in items if isinstance(item, LateTimer) and not item.is_reported]
        if late_timers and wants(LATE_CHECKS) and not self._check_lateness(late_timers):
            refused.add(LATE_CHECKS)
        return frozenset(refused)

    def _check_lateness(self, timers: Sequence[LateTimer]) -> bool:
        """Let a worker send notices for late tasks; most tasks are not late, and need no message."""
        now = self.runtime.now()
        tasks = self.tasks.read_many(sorted({timer.task_id for timer in timers}))
        late = [
            timer
            for timer in timers
            if (task := tasks.get(timer.task_id)) is not None and lateness_notice(task, timer.late_at, now)
        ]
        return not late or not self.queues.send([Outgoing(timer.message(), 0) for timer in late])

    def _expand(self, schedule_timers: Sequence[ScheduleTimer]) -> bool:
        with self.runtime.tracer.span(expansion_span(len(schedule_timers))):
            expanded = self.expander.expand(schedule_timers)
        now = self.runtime.now()
        self.runtime.telemetry.count("occurrences", len(expanded.tasks))
        self.send([message_for(task) for task in expanded.tasks if is_direct(task.next_at, now, self.look_ahead)])
        return expanded.done
