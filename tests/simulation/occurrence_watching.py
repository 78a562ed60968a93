"""Invariants of scheduled runs under all faults: their number, their order, and how permanent schedules continue."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.field_codecs import read_state
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of
from duetime.domain.limits import MAX_OCCURRENCES
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.occurrences import following, next_nominal
from duetime.domain.schedules.overlap import LATEST_RUNS
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Cause
from duetime.domain.times import DAY, MINUTE, SECOND, Millis
from duetime_testing.occurrence_skip_reasons import is_reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import ScheduleRef, Task
    from tests.simulation.fault_simulation import FaultSimulation

_SCHEDULE_REF, _FINISHED, _STATE = (ATTRIBUTES[name].name for name in ("schedule_ref", "finished_at", "state"))
_OF_RHYTHM = frozenset({Cause.SCHEDULE, Cause.CATCH_UP, Cause.MANUAL})
PROMPT = 15 * SECOND
"""Without faults, the next run of a permanent schedule begins within this time after its gap."""
_SIDE_BY_SIDE = frozenset({Overlap.ALLOW_ALL, Overlap.REPLACE_OTHER})
_LONGEST = 10 * MINUTE
"""If a permanent schedule's chain of runs is broken, it is repaired within this time after the last fault."""


class OccurrenceWatching:
    """Watches the runs of schedules.

    Attributes:
        limits: the requested number of runs of each schedule.
        stopped: the occurrences that users have stopped, skipped or moved, as confirmed by a response, with their
            tasks or the requests.
        repeated: the tasks that a user has retried, which may run in parallel with other runs.
        overlapping: the schedules whose overlap policy a user has changed.
        excluded: the schedules whose occurrences are all excluded by a calendar.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self.limits: dict[str, int] = {}
        self.overlapping: set[str] = set()
        self.excluded: set[str] = set()
        self.repeated: set[str] = set()
        self.stopped: dict[tuple[str, str, Millis], str] = {}
        self._going: dict[tuple[str, str], set[str]] = {}
        self._began: dict[tuple[str, str], set[str]] = {}
        self._ended_at: dict[tuple[str, str], Millis] = {}
        self._failed: set[tuple[str, str, int]] = set()

    def written(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Check a change to an occurrence's record."""
        if _SCHEDULE_REF not in new:
            return
        if read_state(old[_STATE]) is State.FAILED and read_state(new[_STATE]) is State.SCHEDULED:
            self.repeated.add(name)
        if _FINISHED in new and _FINISHED not in old:
            self._ended(name, task_of(new))

    def _ended(self, name: str, task: Task) -> None:
        schedule_ref = task.schedule_ref
        if schedule_ref is None:
            return
        key = schedule_ref.schedule, schedule_ref.mark
        self._check_skipped(schedule_ref, name, task)
        self._going.get(key, set()).discard(name)
        self._ended_at[key] = self._account.time.now()
        if task.state is State.FAILED and schedule_ref.cause is not Cause.BACKFILL:
            self._failed.add((*key, schedule_ref.revision))

    def began(self, task: Task) -> None:
        """Check the first call of an occurrence's target."""
        schedule_ref = task.schedule_ref
        if schedule_ref is None or task.attempt_history or schedule_ref.cause not in _OF_RHYTHM:
            return
        key, name = (schedule_ref.schedule, schedule_ref.mark), task.id.text
        stopped = self.stopped.get((*key, schedule_ref.nominal)) if schedule_ref.is_by_timing else None
        self._check(stopped is None, f"{name} began, for the instant of {stopped}, which its user has stopped")
        self._check_alone(schedule_ref, key, name)
        self._going.setdefault(key, set()).add(name)
        if schedule_ref.is_by_timing:
            began = self._began.setdefault(key, set())
            began.add(name)
            most = self.limits.get(schedule_ref.schedule)
            self._check(most is None or len(began) <= most, f"{schedule_ref.schedule} began run {len(began)} of {most}")
            self._check(schedule_ref.schedule not in self.excluded, f"{name} began, which a calendar excludes")

    def stop(self, task: Task) -> None:
        """Record a response that reports a future occurrence as stopped."""
        if task.schedule_ref is not None:
            instant = task.schedule_ref.schedule, task.schedule_ref.mark, task.schedule_ref.nominal
            self.stopped[instant] = task.id.text

    def check_edited(self, name: str, until: Millis) -> None:
        """Check that each occurrence up to `until` of a schedule's first timing has run, unless it was stopped.

        This must be true regardless of other changes to the schedule while its occurrences were queued.
        """
        stored = self._account.schedules.store.read("local", name)[0]
        if stored is None:
            return
        known = self._account.schedules.begun
        for instant in following(replace(stored.schedule(), stopped=frozenset()), stored.created_at, MAX_OCCURRENCES):
            key = name, stored.mark, instant.nominal
            if instant.nominal > until:
                return
            ran = key in known or key in self.stopped
            self._check(ran, f"{name} has not run its occurrence of {instant.nominal}, which nobody has stopped")

    def _check_skipped(self, schedule_ref: ScheduleRef, name: str, task: Task) -> None:
        """Check that no run is skipped if the policy lets all runs wait, or if the later run does not exist."""
        stored = self._revision(schedule_ref)
        is_for_another = is_reason("overlap", task.error.message if task.error else None)
        if stored is None or not is_for_another or schedule_ref.schedule in self.overlapping:
            return
        self._check(stored.spec.overlap is not Overlap.BUFFER_ALL, f"{name} was skipped, though it may wait")
        if stored.spec.overlap in LATEST_RUNS:
            others = (each.schedule_ref for each in self._account.watching.tasks())
            own = [each for each in others if each and each.mark == schedule_ref.mark]
            is_followed = any(each.nominal > schedule_ref.nominal for each in own)
            self._check(is_followed, f"{name} was skipped for a later run, and there is none")

    def _check_alone(self, schedule_ref: ScheduleRef, key: tuple[str, str], name: str) -> None:
        stored = self._revision(schedule_ref)
        if stored is None or schedule_ref.schedule in self.overlapping:
            return
        if stored.spec.overlap in _SIDE_BY_SIDE and not stored.is_permanent:
            return
        others = self._going.get(key, set()) - self.repeated - {name}
        going = {other for other in others if (task := self._account.watching.record(other)) and not task.is_terminal}
        self._check(not going, f"{name} of {schedule_ref.schedule} began while {going} goes on")

    def _revision(self, schedule_ref: ScheduleRef) -> StoredSchedule | None:
        return self._account.schedules.revisions.get((schedule_ref.schedule, schedule_ref.mark, schedule_ref.revision))

    def look(self) -> None:
        """Check that permanent schedules continue promptly without faults, and otherwise soon after the last fault."""
        now = self._account.time.now()
        patience = PROMPT if not self._account.faulty else _LONGEST if self._account.is_calm else DAY
        calm_at = self._account.calm_at or 0
        for (name, mark), ended_at in self._ended_at.items():
            if self._going.get((name, mark)) or (self._account.faulty and not calm_at):
                continue
            since = max(ended_at, calm_at if self._account.faulty else 0)
            if now <= since + MINUTE // 4 + patience:
                continue
            stored = self._account.schedules.store.read("local", name)[0]
            if stored is None or stored.mark != mark or not self._should_go_on(stored, now):
                continue
            self._check(False, f"{name} is permanent, and has not begun for {now - ended_at} ms")  # noqa: FBT003 - it does not hold

    def _should_go_on(self, stored: StoredSchedule, now: Millis) -> bool:
        if not stored.is_permanent or stored.state is not ScheduleState.ACTIVE:
            return False
        end_at = stored.spec.end_at
        is_over = end_at is not None and now >= end_at
        has_runs = stored.remaining_runs is None or stored.remaining_runs > 0
        return not is_over and has_runs and stored.name not in self._account.schedules.disturbed

    def check_end(self) -> None:
        """Check that failures have paused the right schedules, and that no schedule ended while it had runs left."""
        for name, most in self.limits.items():
            self._check_used_up(name, most)
        for name in self._account.schedules.names:
            stored = self._account.schedules.store.read("local", name)[0]
            if stored is None or not stored.spec.pause_on_failure or name in self._account.schedules.disturbed:
                continue
            goes_on = stored.state is ScheduleState.ACTIVE
            has_failed = (name, stored.mark, stored.revision) in self._failed
            self._check(not (goes_on and has_failed), f"{name} goes on although a run of it failed")

    def _check_used_up(self, name: str, most: int) -> None:
        """Check that a schedule with a limited number of runs ended with fewer runs only if it had no more times."""
        stored = self._account.schedules.store.read("local", name)[0]
        if stored is None or stored.state is not ScheduleState.ENDED or stored.spec.remaining_runs != most:
            return
        if name in self.excluded:
            # Its calendar excludes all times.
            return
        began = self._began.get((name, stored.mark), set())
        # If the schedule had more times, an occurrence could have run at one of them before the schedule's end.
        more = next_nominal(replace(stored.schedule(), remaining_runs=None), self._account.time.now())
        # If a task's worker is lost at the start, the task uses up an attempt although its target was not called.
        own = (task for task in self._account.watching.tasks() if task.schedule_ref and task.schedule_ref.is_by_timing)
        lost = [
            each
            for each in own
            if each.schedule_ref
            and each.schedule_ref.mark == stored.mark
            and each.started_at
            and each.id.text not in began
        ]
        self._check(more is None or len(began) + len(lost) >= most, f"{name} ended after {len(began)} of {most} runs")

    def _check(self, holds: bool, violation: str) -> None:  # noqa: FBT001 - what is checked
        self._account.watching.check(holds, violation)
