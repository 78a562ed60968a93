"""Expands schedules when the trigger reads their timers.

The order of the writes makes this safe. The next timer is written first, in a minute that has not been read yet. The
tasks of the occurrences are written next, with ids that follow from the schedule. The schedule is written last,
conditionally, which makes the current timer stale. After a crash, the current timer's minute is read again, and
repeated writes of the same tasks are rejected.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from duetime.domain.dispatch.enqueue_plan import ScheduleTimer
from duetime.domain.errors import FieldInvalid, Unavailable
from duetime.domain.times import to_iso
from duetime.domain.tracebacks import places_of
from duetime.services.schedules.expansion_planner import ConcurrentWrite, ExpansionPass
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.schedules.run_history import CalendarEnd
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.services.schedules.expansion_planner import ExpansionPlanner
    from duetime.services.schedules.occurrence_tasks import Due

T = TypeVar("T")
_PASSES = 40
"""Maximum number of passes over a schedule in one expansion; large expansions and concurrent writes need several."""


@frozen
class Expanded:
    """The result of an expansion.

    Attributes:
        tasks: the tasks that now exist; messages must be sent for the tasks that are due.
        done: whether every schedule was processed; otherwise the trigger must read the timers again.
    """

    tasks: list[Task]
    done: bool


@frozen
class ScheduleExpander:
    """Creates the tasks of schedules up to the horizon, many schedules in parallel."""

    planner: ExpansionPlanner
    runtime: Runtime

    def expand(self, timers: Sequence[ScheduleTimer], until: Millis | None = None) -> Expanded:
        """Expand the schedules of these timers; stale timers are dropped. This method never raises `Unavailable`.

        Args:
            timers: timers of the schedules.
            until: when to leave the rest to the trigger, which reads the next timers; `None` for no limit.
        """
        tasks: list[Task] = []
        todo, done = list(timers), True
        for number_of_pass in range(_PASSES):
            if not todo:
                return Expanded(tasks, done)
            if number_of_pass and until is not None and self.runtime.now() >= until:
                break
            ends = self.runtime.executor.map(self._begun, todo)
            passes = [end for end in ends if isinstance(end, ExpansionPass)]
            again = [end for end in ends if isinstance(end, ScheduleTimer)]
            # The first occurrence's task is created alone. So if that task does not exist, no expansion has ever come
            # this far.
            for number in range(2):
                self._produce([(each, due) for each in passes for due in each.due[: each.alone][number : number + 1]])
            self._produce([(each, due) for each in passes for due in each.due[each.alone :]])
            more = self.runtime.executor.map(self._ended, passes)
            tasks += [task for each in passes for task in each.tasks]
            done = done and not any(each.failed and not each.broken for each in passes) and None not in ends
            todo = again + [timer for timer in more if timer is not None]
        return Expanded(tasks, done=False)

    def _begun(self, timer: ScheduleTimer) -> ExpansionPass | ScheduleTimer | bool | None:
        """Check one schedule, and set its next timer.

        Returns:
            The pass to continue, or the timer itself if a concurrent write came first. `True` if nothing is left to do;
            `None` if the store did not answer.
        """
        try:
            stored, _ = self.planner.stores.schedules.read(timer.owner, timer.name)
            if stored is None:
                self._clean_up(timer)
            if stored is None or stored.uid != timer.uid or stored.generation != timer.generation:
                return True
            return (self.planner.plan(timer, stored) or True) if stored.is_expandable else True
        except ConcurrentWrite:
            return timer
        except Unavailable as error:
            self.runtime.telemetry.note("a schedule could not be expanded", schedule=timer.name, error=str(error))
            return None
        except Exception as error:  # noqa: BLE001 - a defect in one schedule must not stop the trigger
            self._defect(timer, error)
            return True

    def _clean_up(self, timer: ScheduleTimer) -> None:
        """Complete the deletion of a schedule, in case the process that deleted it has crashed."""
        removed = self.planner.stores.schedules.read_removed(timer.owner, timer.name)
        if removed is not None and removed.uid == timer.uid:
            self.planner.occurrence_tasks.expire_payloads(removed)

    def _produce(self, dues: Sequence[tuple[ExpansionPass, Due]]) -> None:
        # The span context is read here, because the open span belongs to this thread.
        tick = self.runtime.tracer.current()
        parallel: list[Sequence[tuple[ExpansionPass, Due]]] = []
        in_order: dict[int, list[tuple[ExpansionPass, Due]]] = {}
        for current, due in dues:
            if current.failed:
                continue
            if (current.task or current.after.spec.task).order is None:
                parallel.append([(current, due)])
            else:
                # Tasks with an ordered key are created one after another, because their numbers follow the order of
                # creation.
                in_order.setdefault(id(current), []).append((current, due))
        self.runtime.executor.map(partial(self._produced_in_order, tick), [*parallel, *in_order.values()])

    def _produced_in_order(self, tick: str | None, pairs: Sequence[tuple[ExpansionPass, Due]]) -> None:
        for pair in pairs:
            if pair is pairs[0] or not pair[0].failed:
                self._produced(tick, pair)

    def _produced(self, tick: str | None, pair: tuple[ExpansionPass, Due]) -> None:
        current, due = pair
        spec = current.task or current.after.spec.task
        work = partial(self.planner.occurrence_tasks.produce, current.after, due, spec, tick)
        task = self._guarded(current, work)
        if task is not None:
            current.tasks.append(task)

    def _ended(self, current: ExpansionPass) -> ScheduleTimer | None:
        """Save the schedule; returns the timer to continue with if more is left or a concurrent write came first."""
        if current.failed:
            return None
        timer = current.timer
        try:
            self._guarded(current, partial(self.planner.save, current.after))
        except ConcurrentWrite:
            # If the concurrent write has increased the generation, the next check finds this timer stale.
            return timer
        if current.misses > 0 and not current.failed:
            self._tell_of_misses(current)
        if current.calendar_end is not None and not current.failed:
            self._tell_of_calendar(timer, current.calendar_end)
        return replace(timer, generation=current.after.generation) if current.more and not current.failed else None

    def _guarded(self, current: ExpansionPass, work: Callable[[], T]) -> T | None:
        """Run a step for a schedule; if the step fails, the trigger must read the schedule's timer again."""
        try:
            return work()
        except (Unavailable, FieldInvalid) as error:
            # The settings no longer allow the task's target, so the next check pauses the schedule.
            self.runtime.telemetry.note(
                "a schedule could not be expanded", schedule=current.timer.name, error=str(error)
            )
        except ConcurrentWrite:
            raise
        except Exception as error:  # noqa: BLE001 - a defect in one schedule must not stop the trigger
            self._defect(current.timer, error)
            current.broken = True
        current.failed = True
        return None

    def _tell_of_misses(self, current: ExpansionPass) -> None:
        """Report missed deadlines of an expectation, once they have been stored."""
        expectation = current.after.expectation
        latest = None if expectation is None else expectation.missed_at
        self.runtime.telemetry.count("expectations_missed", current.misses)
        self.runtime.telemetry.note(
            "a schedule missed what is expected of it",
            schedule=current.timer.name,
            owner=current.timer.owner,
            deadline=to_iso(latest or self.runtime.now()),
        )

    def _tell_of_calendar(self, timer: ScheduleTimer, end: CalendarEnd) -> None:
        """Report that a schedule's calendar has no data beyond a near date, once this finding has been stored."""
        self.runtime.telemetry.count("calendars_ending")
        self.runtime.telemetry.note(
            "the known dates of a schedule's calendar end soon",
            schedule=timer.name,
            owner=timer.owner,
            calendar=end.name,
            known_until=to_iso(end.known_until),
        )

    def _defect(self, timer: ScheduleTimer, error: Exception) -> None:
        self.runtime.telemetry.count("expansions_failed")
        self.runtime.telemetry.note("a schedule could not be expanded", schedule=timer.name, error=places_of(error))
