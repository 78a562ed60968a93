"""What an occurrence asks its schedule before it begins, and tells it when it has ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    may_overlap,
    no_run_left,
    pauses_schedule,
    skipped,
    skipped_before,
    start_decision,
    waiting_limit,
)
from duetime.domain.schedules.pauses import paused
from duetime.domain.schedules.revisions import is_to_begin, never_began
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.schedule_changes import with_manual_run
from duetime.domain.schedules.successive_runs import continued, ended_at, run_after, run_of
from duetime.domain.tasks.action_history import ActorType, Attribution
from duetime.domain.tasks.attempt_results import Postponed, SkipCode, Skipped
from duetime.domain.tasks.parent_references import Cause
from duetime.domain.tasks.states import STARTABLE, Move, State
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.times import to_iso
from duetime.services.schedules.occurrence_tasks import Due

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.run_history import Activity
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.parent_references import ScheduleRef
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.tasks import TaskStore
    from duetime.services.enqueue import Enqueuer
    from duetime.services.schedules.expander import ScheduleExpander
    from duetime.services.tasks.control import TaskControl


_TRIES = 20
_MOST_COUNTED = 20
"""So many runs are known by their ids before those are left out that have ended an attempt."""


class _Again(Enum):
    """Somebody else's write came between."""

    NOW = "now"


_TRY_AGAIN = _Again.NOW


@dataclass(frozen=True, slots=True)
class OverlapControl:
    """Keeps occurrences to what their schedules are now, and to one after the other.

    Every method may raise `Unavailable`: then the message comes back, and it is done again.
    """

    stores: Stores
    enqueuer: Enqueuer
    expander: ScheduleExpander
    runtime: Runtime
    run_queue: RunQueue

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a task that was just claimed may begin, as far as its schedule is concerned.

        One that has begun before goes on to its end, whatever has happened to its schedule.
        """
        schedule_ref = task.schedule_ref
        if schedule_ref is None or task.state is State.ROLLING_BACK or task.attempt_history:
            return None
        stored, activity = self.stores.schedules.read(task.owner, schedule_ref.schedule)
        if stored is None or stored.mark != schedule_ref.mark:
            return Skipped(f"the schedule {schedule_ref.schedule!r} was deleted", SkipCode.DELETED)
        if (unwanted := skipped(stored, schedule_ref)) is not None:
            if not self._is_placed_again(stored, schedule_ref):
                self._remark(task, unwanted.reason, once=True)
            return unwanted
        if schedule_ref.cause is Cause.MANUAL:
            # Whoever made it may have died before it was counted.
            self._write(task, partial(with_manual_run, task=task, now=self.runtime.now()), stored)
        stored = for_run(stored, schedule_ref)
        if may_overlap(stored) and (stored.runs_limit is None or schedule_ref.cause is Cause.BACKFILL):
            return None
        verdict = skipped_before(stored, schedule_ref) or self._in_turn(task, schedule_ref, stored, activity)
        if isinstance(verdict, Skipped):
            self._remark(task, verdict.reason, gives_back=verdict.code is SkipCode.OVERLAP)
        return verdict

    def follow(self, task: Task) -> None:
        """Do what the end of an occurrence means for its schedule; doing it twice is doing it once."""
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
        """Let one occurrence begin at a time, and no more than may; where some may wait, the first of them is the next.

        That it begins is counted in the same write.
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
        raise Unavailable(f"the occurrences of {stored.name!r} were written by others again and again")

    def _by_overlap(self, task: Task, stored: StoredSchedule, seen: Activity) -> Postponed | Skipped | _Again | None:
        """What the overlap policy says, once that is stored; `_TRY_AGAIN` if somebody else's write came between."""
        others = self.run_queue.others(stored, task, seen)
        roomy = self.run_queue.with_room(stored, task, seen)
        decision = start_decision(stored, task, roomy, others, self.runtime.now())
        if decision.stop is not None:
            # First: should this worker die now, the next one finds what is to be stopped, or stopped already.
            self.run_queue.stop(decision.stop, task)
        after = decision.activity
        if decision.verdict is None and stored.runs_limit is not None:
            after = self._with_known(after, seen.active)
        if after == seen or self._save(stored, after):
            return decision.verdict
        return _TRY_AGAIN

    def _with_known(self, activity: Activity, former: TaskId | None) -> Activity:
        """With the run that was the latest before known by its id: it may come to its start again, or never call."""
        known = tuple(each for each in (*activity.counted, former) if each is not None)
        activity = replace(activity, counted=known)
        if len(known) < _MOST_COUNTED:
            return activity
        found = self.stores.tasks.read_many(known, consistent=True)
        activity = activity.without(task for task in found.values() if never_began(task))
        return replace(activity, counted=tuple(each for each in known if each in found and is_to_begin(found[each])))

    def _make_room(self, task: Task, stored: StoredSchedule, activity: Activity) -> None:
        """Let the first that waits for this one's end begin at once, without waiting for its next check."""
        seen = activity.of(stored.uid)
        if seen.active != task.id:
            return
        if not self._save(stored, replace(seen, active=None)):
            raise Unavailable(f"the occurrences of {stored.name!r} were written by somebody else")
        following = self.run_queue.next_in_turn(seen)
        if following is not None and following.state in STARTABLE:
            self.enqueuer.move(following, Move.REPLACE, self.runtime.now(), Guard(version=following.version), {})

    def _go_on(self, task: Task) -> None:
        """Have the chain of a permanent schedule go on; should this be lost, the schedule's own timer repairs it."""
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
                # Decided already; whoever did so may have died before its run was there.
                if self.stores.tasks.read(last.task_id) is None:
                    self._produce(stored, last.nominal)
                return
            # Whether or not that run began: no other was placed.
            stored = replace(stored, remaining_runs=stored.runs_left)
            schedule = stored.schedule(self.expander.planner.known_calendars_of(stored))
            after = continued(stored, run_after(schedule, last, ended_at(task, self.runtime.now())))
            if self.stores.schedules.save(after, self.runtime.nonce()):
                if after.last_run is not None and after.state is ScheduleState.ACTIVE:
                    self._produce(after, after.last_run.nominal)
                return
        raise Unavailable(f"the schedule {stored.name if stored else ''!r} was written again and again")

    def _produce(self, stored: StoredSchedule, nominal: Millis) -> None:
        occurrence_tasks = self.expander.planner.occurrence_tasks
        try:
            run = occurrence_tasks.produce(stored, Due(run_of(stored, nominal)), occurrence_tasks.task_of(stored))
        except FieldInvalid:
            # Its target may not be called any more, or its definition has changed: the next check pauses the schedule.
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
        raise Unavailable(f"the schedule {schedule_ref.schedule!r} was written by others again and again")

    def _remark(self, task: Task, reason: str, *, once: bool = False, gives_back: bool = False) -> None:
        """Have the schedule remember why an occurrence did not run, and count it; doing it twice is doing it once.

        Args:
            task: of the occurrence.
            reason: why.
            once: whether one remark is enough for all of which it is true.
            gives_back: whether another occurrence may run in its place, if the number of runs is limited: it is placed
                at once, and else by the trigger. A run that is given back twice places one that is not let begin.
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
            # The trigger comes in a minute, which may be too late for the next time.
            timer = ScheduleTimer(after.uid, after.owner, after.name, after.generation, self.runtime.now())
            self.enqueuer.send_due(self.expander.expand([timer]).tasks)

    def _is_placed_again(self, stored: StoredSchedule, schedule_ref: ScheduleRef) -> bool:
        """Whether an occurrence that a change replaced has another task, or will get one: then nothing is skipped."""
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
        """Write a change of a task's schedule, again if somebody else's write comes between; the schedule after it."""
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
        raise Unavailable(f"the schedule {name!r} was written by others again and again")

    def _save(self, stored: StoredSchedule, activity: Activity) -> bool:
        return self.stores.schedules.save_activity(stored.owner, stored.name, activity, self.runtime.nonce())


@dataclass(frozen=True, slots=True)
class RunQueue:
    """Reads the runs that go on or wait. Every method may raise `Unavailable`."""

    tasks: TaskStore
    task_control: TaskControl
    enqueuer: Enqueuer
    clock: Clock

    def others(self, stored: StoredSchedule, task: Task, seen: Activity) -> OtherRuns:
        """The other runs, as one that wants to begin finds them; no more are read than its turn depends on."""
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
        """Without those that have ended, if there would be no room for one more otherwise."""
        if task.id in seen.waiting or not 0 < waiting_limit(stored) <= len(seen.waiting):
            return seen
        found = self.tasks.read_many(list(seen.waiting), consistent=True)
        return replace(seen, waiting=tuple(each for each in seen.waiting if each in found and _is_open(found[each])))

    def next_in_turn(self, seen: Activity) -> Task | None:
        """The first of those that wait."""
        return self._first_open(seen.waiting)

    def stop(self, run: Task, successor: Task) -> None:
        """Ask a run to stop, or cancel it where it waits for its retry: another takes its place. Twice is once."""
        ref = successor.schedule_ref
        reason = f"the run of {to_iso(ref.nominal if ref else successor.due_at)} takes its place"
        try:
            asked = self.task_control.cancel_by_force(
                run.owner, run.id, None, Attribution(ActorType.SCHEDULE, reason=reason)
            )
        except (StateConflict, TaskNotFound):
            # It has ended meanwhile.
            return
        except VersionMismatch as error:
            raise Unavailable(f"the task {run.id} was written by others again and again") from error
        if asked.finished_at is None and isinstance(asked.target, TopologyTarget):
            # It finds the request at its next check.
            self.enqueuer.remind(asked, self.clock.now())

    def _first_open(self, ids: Iterable[TaskId]) -> Task | None:
        """The first of these tasks that has not come to its end."""
        found = (self.tasks.read(each) for each in ids)
        return next((each for each in found if each is not None and _is_open(each)), None)


def _is_open(task: Task) -> bool:
    return task.finished_at is None
