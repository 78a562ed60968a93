"""Applies a schedule's rules before an occurrence begins, and updates the schedule after an occurrence ends."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Guard
from duetime.domain.dispatch.enqueue_plan import ScheduleTimer
from duetime.domain.errors import FieldInvalid, StateConflict, TaskNotFound, Unavailable, VersionMismatch
from duetime.domain.schedules.expansion import with_runs_given_back
from duetime.domain.schedules.occurrences import judged, next_nominal
from duetime.domain.schedules.overlap import (
    LATEST_RUNS,
    OtherRuns,
    for_run,
    has_begun,
    may_overlap,
    no_run_left,
    pauses_schedule,
    skipped,
    skipped_before,
    start_decision,
    waiting_limit,
)
from duetime.domain.schedules.schedule import ScheduleState, is_to_begin, never_began
from duetime.domain.schedules.schedule_changes import paused, with_manual_run
from duetime.domain.schedules.successive_runs import continued, ended_at, run_after, run_of
from duetime.domain.tasks.action_history import ActorType, Attribution
from duetime.domain.tasks.attempt_results import Postponed, SkipCode, Skipped
from duetime.domain.tasks.states import STARTABLE, Move, State
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task import Cause
from duetime.domain.times import to_iso
from duetime.services.schedules.occurrence_tasks import Due
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.run_history import Activity
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import ScheduleRef, Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.tasks import TaskStore
    from duetime.services.enqueue import Enqueuer
    from duetime.services.schedules.expander import ScheduleExpander
    from duetime.services.tasks.control import TaskControl


_TRIES = 20
_MOST_COUNTED = 20
"""Number of run ids that are stored before the ids of ended runs are removed."""


class _Again(Enum):
    """Indicates that a concurrent write came first, so that the call must be repeated."""

    NOW = "now"


_TRY_AGAIN = _Again.NOW


@frozen
class OverlapControl:
    """Applies a schedule's current state and overlap policy to its occurrences.

    Every method may raise `Unavailable`; the message is then redelivered, and the call is repeated.
    """

    stores: Stores
    enqueuer: Enqueuer
    expander: ScheduleExpander
    runtime: Runtime
    run_queue: RunQueue

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a just-claimed task must wait or be skipped because of its schedule, and why; `None` if it may begin.

        A task that began earlier runs to its end, regardless of changes to its schedule.
        """
        schedule_ref = task.schedule_ref
        if schedule_ref is None or task.state is State.ROLLING_BACK or has_begun(task):
            return None
        stored, activity = self.stores.schedules.read(task.owner, schedule_ref.schedule)
        if stored is None or stored.mark != schedule_ref.mark:
            return Skipped(f"the schedule {schedule_ref.schedule!r} was deleted", SkipCode.DELETED)
        if (unwanted := skipped(stored, schedule_ref)) is not None:
            if not self._is_placed_again(stored, schedule_ref):
                self._remark(task, unwanted.reason, once=True)
            return unwanted
        if schedule_ref.cause is Cause.MANUAL:
            # The process that created the run may have crashed before counting it.
            self._write(task, partial(with_manual_run, task=task, now=self.runtime.now()), stored)
        stored = for_run(stored, schedule_ref)
        if may_overlap(stored) and (stored.runs_limit is None or schedule_ref.cause is Cause.BACKFILL):
            return None
        verdict = skipped_before(stored, schedule_ref) or self._in_turn(task, schedule_ref, stored, activity)
        if isinstance(verdict, Skipped):
            self._remark(task, verdict.reason, gives_back=verdict.code is SkipCode.OVERLAP)
        return verdict

    def follow(self, task: Task) -> None:
        """Update the schedule after the end of an occurrence; repeating the call is safe."""
        schedule_ref = task.schedule_ref
        if schedule_ref is None:
            return
        stored, activity = self.stores.schedules.read(task.owner, schedule_ref.schedule)
        if stored is None or stored.mark != schedule_ref.mark:
            return
        if pauses_schedule(stored, task):
            self._pause(task, schedule_ref)
        if not may_overlap(for_run(stored, schedule_ref)):
            self._make_room(task, stored, activity)
        if stored.is_permanent and schedule_ref.is_by_timing:
            self._go_on(task)

    def _in_turn(
        self, task: Task, schedule_ref: ScheduleRef, stored: StoredSchedule, activity: Activity
    ) -> Postponed | Skipped | None:
        """Let occurrences begin one at a time, within the limit on runs; waiting runs begin in order.

        A start is counted in the write that lets the run begin.
        """
        for _ in range(_TRIES):
            seen = activity.of(stored.uid)
            if seen.has_counted(task.id):
                return None
            if (refused := no_run_left(stored, schedule_ref, seen)) is not None:
                return refused
            if may_overlap(stored):
                if self._save(stored, self._with_known(seen.with_begun(task, self.runtime.now()), seen.active)):
                    return None
            elif (decided := self._by_overlap(task, stored, seen)) is not _TRY_AGAIN:
                return decided
            found, activity = self.stores.schedules.read(stored.owner, stored.name)
            if found is None or found.uid != stored.uid:
                return Skipped(f"the schedule {stored.name!r} was deleted", SkipCode.DELETED)
        raise Unavailable(f"the occurrences of {stored.name!r} have too many concurrent writes")

    def _by_overlap(self, task: Task, stored: StoredSchedule, seen: Activity) -> Postponed | Skipped | _Again | None:
        """The decision of the overlap policy, after it is stored; `_TRY_AGAIN` after a concurrent write."""
        others = self.run_queue.others(stored, task, seen)
        roomy = self.run_queue.with_room(stored, task, seen)
        decision = start_decision(stored, task, roomy, others, self.runtime.now())
        if decision.stop is not None:
            # The other run is stopped before the decision is stored, so that after a crash the next worker can still
            # find that run.
            self.run_queue.stop(decision.stop, task)
        after = decision.activity
        if decision.verdict is None and stored.runs_limit is not None:
            after = self._with_known(after, seen.active)
        if after == seen or self._save(stored, after):
            return decision.verdict
        return _TRY_AGAIN

    def _with_known(self, activity: Activity, former: TaskId | None) -> Activity:
        """Keep the id of the formerly latest run, because that run may start again, or may never call its target."""
        known = tuple(each for each in (*activity.counted, former) if each is not None)
        activity = replace(activity, counted=known)
        if len(known) < _MOST_COUNTED:
            return activity
        found = self.stores.tasks.read_many(known, consistent=True)
        activity = activity.without(task for task in found.values() if never_began(task))
        return replace(activity, counted=tuple(each for each in known if each in found and is_to_begin(found[each])))

    def _make_room(self, task: Task, stored: StoredSchedule, activity: Activity) -> None:
        """Start the first run that waits for this run at once, without waiting for its next check."""
        seen = activity.of(stored.uid)
        if seen.active != task.id:
            return
        # A run that ended while it waited, for a lock for example, does not count against the limit on runs.
        after = seen.without([task]) if never_began(task) else replace(seen, active=None)
        if not self._save(stored, after):
            raise Unavailable(f"the occurrences of {stored.name!r} had a concurrent write")
        following = self.run_queue.next_in_turn(seen)
        if following is not None and following.state in STARTABLE:
            self.enqueuer.move(following, Move.REPLACE, self.runtime.now(), Guard(version=following.version), {})

    def _go_on(self, task: Task) -> None:
        """Continue a permanent schedule's chain of runs; if this call fails, the schedule's timer repairs the chain."""
        for _ in range(_TRIES):
            stored, _activity = self.stores.schedules.read(
                task.owner, task.schedule_ref.schedule if task.schedule_ref else ""
            )
            last = None if stored is None else stored.last_run
            if stored is None or task.schedule_ref is None or stored.mark != task.schedule_ref.mark:
                return
            if last is None or stored.state is not ScheduleState.ACTIVE:
                return
            if not stored.is_current(last):
                return
            if last.task_id != task.id:
                # The next run is already decided; the process that decided it may have crashed before creating the run.
                if self.stores.tasks.read(last.task_id) is None:
                    self._produce(stored, last.nominal)
                return
            # No other run is placed, whether or not the last run began.
            stored = replace(stored, remaining_runs=stored.runs_left)
            schedule = stored.schedule(self.expander.planner.known_calendars_of(stored))
            after = continued(stored, run_after(schedule, last, ended_at(task, self.runtime.now())))
            if self.stores.schedules.save(after, self.runtime.nonce()):
                if after.last_run is not None and after.state is ScheduleState.ACTIVE:
                    self._produce(after, after.last_run.nominal)
                return
        raise Unavailable(f"the schedule {stored.name if stored else ''!r} has too many concurrent writes")

    def _produce(self, stored: StoredSchedule, nominal: Millis) -> None:
        occurrence_tasks = self.expander.planner.occurrence_tasks
        try:
            run = occurrence_tasks.produce(stored, Due(run_of(stored, nominal)), occurrence_tasks.task_of(stored))
        except FieldInvalid:
            # The task's target is no longer allowed, or its definition has changed, so the next check pauses the
            # schedule.
            return
        self.enqueuer.send_due([run])

    def _pause(self, task: Task, schedule_ref: ScheduleRef) -> None:
        """Pause a schedule whose task has failed for good."""
        for _ in range(_TRIES):
            stored, _activity = self.stores.schedules.read(task.owner, schedule_ref.schedule)
            if stored is None or stored.mark != schedule_ref.mark or stored.revision != schedule_ref.revision:
                return
            if stored.state is ScheduleState.PAUSED:
                return
            kind = task.error.type if task.error else "error"
            now, calendars = self.runtime.now(), self.expander.planner.known_calendars_of(stored)
            stopped = self.expander.planner.stopped_occurrences
            marked, still_due = stopped.marked(stored, now, calendars), stopped.still_due(stored, now, calendars)
            reason = f"the task {task.id} failed: {kind}"
            held = paused(marked, now, reason, calendars, still_due=still_due)
            if self.stores.schedules.save(held, self.runtime.nonce()):
                return
        raise Unavailable(f"the schedule {schedule_ref.schedule!r} has too many concurrent writes")

    def _remark(self, task: Task, reason: str, *, once: bool = False, gives_back: bool = False) -> None:
        """Record in the schedule why an occurrence did not run, and count the occurrence; repeating the call is safe.

        Args:
            task: task of the occurrence.
            reason: why the occurrence did not run.
            once: whether one remark covers all occurrences with the same reason.
            gives_back: whether another occurrence may run instead of this occurrence, if the number of runs is limited.
                That occurrence is placed at once, or later by the trigger. If a run is given back twice, the limit
                keeps the additional occurrence from beginning.
        """
        schedule_ref = task.schedule_ref
        if schedule_ref is None:
            return
        nominal, lacked_runs = schedule_ref.nominal, False

        def remarked(stored: StoredSchedule) -> StoredSchedule:
            nonlocal lacked_runs
            key = stored.spec.clock.zone.text_at(nominal)
            is_known = any((each.key, each.note) == (key, reason) for each in stored.log)
            if is_known or (once and stored.log and stored.log[-1].note == reason):
                return stored
            if gives_back and schedule_ref.is_by_timing and not stored.is_permanent:
                lacked_runs = stored.has_placed_all
                schedule = stored.schedule(self.expander.planner.known_calendars_of(stored))
                stored = with_runs_given_back(stored, schedule, 1, self.runtime.now())
            return replace(stored, runs_skipped=stored.runs_skipped + 1).remarked(self.runtime.now(), key, reason)

        after = self._write(task, remarked)
        if after is not None and lacked_runs and after.state is ScheduleState.ACTIVE:
            # The trigger would expand the schedule within a minute, which may be too late for the next occurrence.
            timer = ScheduleTimer(after.uid, after.owner, after.name, after.generation, self.runtime.now())
            self.enqueuer.send_due(self.expander.expand([timer]).tasks)

    def _is_placed_again(self, stored: StoredSchedule, schedule_ref: ScheduleRef) -> bool:
        """Whether an occurrence that was replaced by a change has or will get another task, and so is not skipped."""
        nominal = schedule_ref.nominal
        if stored.state is not ScheduleState.ACTIVE:
            return False
        if stored.is_permanent:
            return stored.last_run is not None and stored.last_run.nominal == nominal
        schedule = stored.schedule(self.expander.planner.known_calendars_of(stored))
        if next_nominal(schedule, nominal - 1) != nominal:
            return False
        return nominal > stored.done or self.stores.tasks.read(stored.id_of(judged(schedule, nominal))) is not None

    def _write(
        self,
        task: Task,
        changed: Callable[[StoredSchedule], StoredSchedule],
        stored: StoredSchedule | None = None,
    ) -> StoredSchedule | None:
        """Write a change to a task's schedule, and repeat it after concurrent writes; returns the changed schedule."""
        name, mark = (task.schedule_ref.schedule, task.schedule_ref.mark) if task.schedule_ref else ("", "")
        for _ in range(_TRIES):
            if stored is None:
                stored, _activity = self.stores.schedules.read(task.owner, name)
            if stored is None or stored.mark != mark:
                return None
            after = changed(stored)
            if after == stored or self.stores.schedules.save(after, self.runtime.nonce()):
                return after
            stored = None
        raise Unavailable(f"the schedule {name!r} has too many concurrent writes")

    def _save(self, stored: StoredSchedule, activity: Activity) -> bool:
        return self.stores.schedules.save_activity(stored.owner, stored.name, activity, self.runtime.nonce())


@frozen
class RunQueue:
    """Reads running and waiting runs. Every method may raise `Unavailable`."""

    tasks: TaskStore
    task_control: Callable[[], TaskControl]
    enqueuer: Enqueuer
    clock: Clock

    def others(self, stored: StoredSchedule, task: Task, seen: Activity) -> OtherRuns:
        """The runs that determine whether a given run may begin; only these runs are read."""
        if stored.spec.overlap not in LATEST_RUNS or stored.is_permanent:
            ahead = [] if seen.active is None else [seen.active]
            ahead += seen.waiting[: seen.waiting.index(task.id)] if task.id in seen.waiting else seen.waiting
            return OtherRuns(self._first_open(ahead))
        active = None if seen.active is None else self.tasks.read(seen.active)
        waiting = self._first_open(each for each in seen.waiting if each != task.id)
        known = [each for each in (active, waiting) if each is not None and each.schedule_ref is not None]
        latest = max(known, key=lambda each: each.schedule_ref.nominal if each.schedule_ref else 0, default=None)
        return OtherRuns(active if active is not None and active.finished_at is None else None, latest)

    def with_room(self, stored: StoredSchedule, task: Task, seen: Activity) -> Activity:
        """The activity; if the limit on waiting runs is reached, waiting runs that have ended are removed."""
        if task.id in seen.waiting or not 0 < waiting_limit(stored) <= len(seen.waiting):
            return seen
        found = self.tasks.read_many(list(seen.waiting), consistent=True)
        return replace(seen, waiting=tuple(each for each in seen.waiting if each in found and _is_open(found[each])))

    def next_in_turn(self, seen: Activity) -> Task | None:
        """The first waiting run that has not ended."""
        return self._first_open(seen.waiting)

    def stop(self, run: Task, successor: Task) -> None:
        """Ask a replaced run to stop, or cancel it if it waits for a retry; repeating the call is safe."""
        ref = successor.schedule_ref
        reason = f"the run of {to_iso(ref.nominal if ref else successor.due_at)} replaces it"
        try:
            asked = self.task_control().cancel_by_force(
                run.owner, run.id, None, Attribution(ActorType.SCHEDULE, reason=reason)
            )
        except (StateConflict, TaskNotFound):
            # The run has ended in the meantime.
            return
        except VersionMismatch as error:
            raise Unavailable(f"the task {run.id} has too many concurrent writes") from error
        if asked.finished_at is None and isinstance(asked.target, TopologyTarget):
            # The topology's run finds the request at its next check.
            self.enqueuer.remind(asked, self.clock.now())

    def _first_open(self, ids: Iterable[TaskId]) -> Task | None:
        """The first of these tasks that has not ended yet."""
        found = (self.tasks.read(each) for each in ids)
        return next((each for each in found if each is not None and _is_open(each)), None)


def _is_open(task: Task) -> bool:
    return task.finished_at is None
