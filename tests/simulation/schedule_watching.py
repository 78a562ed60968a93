"""Invariants of schedules under all faults: each occurrence runs once at its time, and schedules continue."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.schedules import DynamoScheduleStore
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.occurrences import count_between, judged, may_mean
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.attempt_records import SKIPPED
from duetime.domain.tasks.states import TERMINAL
from duetime.domain.tasks.task import Cause
from duetime.domain.times import MINUTE, Millis, to_iso
from duetime.services.schedules.runs import OF_ITS_TIMING
from duetime_testing.simulation.machines import SKEW
from tests.simulation.watching import MENDED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import ScheduleRef, Task
    from tests.simulation.fault_simulation import FaultSimulation
    from tests.simulation.users import Reply

_SCHEDULE_REF = ATTRIBUTES["schedule_ref"].name
OWNER = "local"
"""The owner of requests without credentials."""
_ASKED = 5
"""The approximate number of each schedule's occurrences whose explanations are read at the end."""
_ALIVE = 2 * MINUTE
"""How long a schedule without an end is watched after everything else has ended."""


@dataclass
class ScheduleWatching:
    """Watches the schedules of an account.

    Attributes:
        disturbed: the schedules that a user has changed, paused, run or deleted.
        seen: the task of each occurrence by timing; keys are schedule, mark, revision and instant.
        revisions: each schedule as it was in each of its revisions, by name, mark and revision.
        held_at: the time of the response that confirmed the pause or the deletion of a schedule.
        accepted: the creation time of each schedule whose creation was acknowledged, unless a user asked to delete it.
        vacant: names of schedules whose deletion was acknowledged, and that no user has used in a request since.
        gone_at: the time when a schedule was deleted, by name and mark.
        periods: the backfills that users have requested, by name; for each request, each time in it must run once.
        filled: the tasks of backfills, by name, mark and instant.
        begun: the task that began for each instant of a timing in any revision, by name, mark and instant.
    """

    account: FaultSimulation
    disturbed: set[str] = field(default_factory=set)
    names: dict[str, Millis] = field(default_factory=dict)
    seen: dict[tuple[str, str, int, Millis], str] = field(default_factory=dict)
    revisions: dict[tuple[str, str, int], StoredSchedule] = field(default_factory=dict)
    held_at: dict[str, Millis] = field(default_factory=dict)
    accepted: dict[str, str] = field(default_factory=dict)
    vacant: set[str] = field(default_factory=set)
    gone_at: dict[tuple[str, str], Millis] = field(default_factory=dict)
    periods: dict[str, list[tuple[Millis, Millis]]] = field(default_factory=dict)
    filled: dict[tuple[str, str, Millis], set[str]] = field(default_factory=dict)
    begun: dict[tuple[str, str, Millis], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = DynamoScheduleStore(self.account.dynamodb, "tasks", self.account.time)  # type: ignore[arg-type]  # stands in for a client

    def made(self, name: str, asked_at: Millis) -> None:
        """Record that a user has requested the creation of a schedule."""
        self.names[name] = asked_at

    def held(self, name: str) -> None:
        """Record a response that reports a schedule as paused or deleted."""
        self.held_at[name] = self.account.time.now()

    def let_go(self, name: str) -> None:
        """Record that a user has requested to resume, change or create a schedule with this name."""
        self.held_at.pop(name, None)
        self.vacant.discard(name)

    def removed(self, name: str) -> None:
        """Record a response that reports a schedule as deleted; earlier schedules with this name must no longer act."""
        self.look()
        self.vacant.add(name)
        for known, mark, _ in self.revisions:
            if known == name:
                self.gone_at.setdefault((name, mark), self.account.time.now())

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check a write to the table."""
        if self.account.changed_schedules:
            # Check the schedule before this write, because the write may delete the schedule.
            self.look()
        item = new or old or {}
        if item[schema.PARTITION_KEY]["S"].startswith(schema.SCHEDULE_PREFIX):
            self.account.changed_schedules.add(item[schema.PARTITION_KEY]["S"].rpartition("#")[2])
        elif old is None and new is not None and _SCHEDULE_REF in new:
            self._placed(task_of(new))

    def look(self) -> None:
        """Record the current revision of each schedule that was written."""
        changed, self.account.changed_schedules = self.account.changed_schedules, set()
        for name in sorted(changed):
            stored_schedule, _ = self.store.read(OWNER, name)
            self._check_identity(name, stored_schedule)
            if stored_schedule is not None:
                self.revisions[name, stored_schedule.mark, stored_schedule.revision] = stored_schedule

    def _check_identity(self, name: str, stored_schedule: StoredSchedule | None) -> None:
        """Check that acknowledged schedules exist, and that deleted schedules do not."""
        check = self.account.watching.check
        if name in self.accepted:
            stored = None if stored_schedule is None else to_iso(stored_schedule.created_at)
            check(
                stored == self.accepted[name], f"{name} was accepted, created {self.accepted[name]}, but is of {stored}"
            )
        check(name not in self.vacant or stored_schedule is None, f"{name} was removed, but is there again")

    def _placed(self, task: Task) -> None:
        schedule_ref = task.schedule_ref
        if schedule_ref is not None and schedule_ref.cause is Cause.BACKFILL:
            self._filled_back(task, schedule_ref)
        if schedule_ref is None or not schedule_ref.is_by_timing:
            return
        key = schedule_ref.schedule, schedule_ref.mark, schedule_ref.revision, schedule_ref.nominal
        other = self.seen.setdefault(key, task.id.text)
        self.account.watching.check(other == task.id.text, f"{key} has two tasks, {other} and {task.id}")
        stored_schedule = self.revisions.get((schedule_ref.schedule, schedule_ref.mark, schedule_ref.revision))
        if stored_schedule is None:
            self.account.watching.check(False, f"{task.id} is of a revision of {schedule_ref.schedule} that never was")  # noqa: FBT003 - it does not hold
        elif not stored_schedule.is_permanent:
            self._check_time(task, stored_schedule, schedule_ref.nominal)

    def fills_back(self, name: str, start: Millis, end: Millis) -> None:
        """Record that a user requests a backfill of a schedule's period."""
        self.periods.setdefault(name, []).append((start, end))

    def _filled_back(self, task: Task, schedule_ref: ScheduleRef) -> None:
        """Check that each time in a backfill's period has at most one task per request, despite interruptions.

        Schedules whose backfills were not reported by `fills_back` are not checked.
        """
        name, nominal = schedule_ref.schedule, schedule_ref.nominal
        if name not in self.periods:
            return
        made = self.filled.setdefault((name, schedule_ref.mark, nominal), set())
        made.add(task.id.text)
        wanted = sum(start <= nominal <= end for start, end in self.periods.get(name, ()))
        self.account.watching.check(
            len(made) <= wanted, f"{name} fills {nominal} back {len(made)} times for {wanted} requests"
        )

    def _check_time(self, task: Task, stored_schedule: StoredSchedule, nominal: Millis) -> None:
        check = self.account.watching.check
        comes = may_mean(stored_schedule.schedule(), nominal)
        check(comes, f"{task.id} stands for {nominal}, which is no time of {stored_schedule.name}")
        # After a pause, these times include occurrences that a calendar or jitter has moved beyond the pause's end.
        check(
            max(nominal, task.due_at) >= stored_schedule.updated_at - 1,
            f"{task.id} stands for {nominal}, before {stored_schedule.name} began",
        )
        # The id must not depend on the current state of the schedule's calendars.
        derived = stored_schedule.id_of(judged(stored_schedule.schedule(), nominal))
        check(derived == task.id, f"{task.id} has not the id of its occurrence of {stored_schedule.name}, {derived}")

    def began(self, task: Task, claimed_at: Millis) -> None:
        """Check the first call of an occurrence's target."""
        schedule_ref = task.schedule_ref
        if schedule_ref is None or task.attempt_history:
            return
        gone_at = self.gone_at.get((schedule_ref.schedule, schedule_ref.mark))
        self.account.watching.check(
            gone_at is None or claimed_at <= gone_at, f"{task.id} began after its {schedule_ref.schedule} was removed"
        )
        if not schedule_ref.is_by_timing:
            return
        self._check_begun_once(task, schedule_ref)
        held_at = self.held_at.get(schedule_ref.schedule)
        self.account.watching.check(
            held_at is None or claimed_at <= held_at,
            f"{task.id} began after {schedule_ref.schedule} was held, claimed {claimed_at - (held_at or 0)} ms later",
        )

    def _check_begun_once(self, task: Task, schedule_ref: ScheduleRef) -> None:
        """Check that no instant runs in two revisions, except instants close to the second revision's creation."""
        stored_schedule = self.revisions.get((schedule_ref.schedule, schedule_ref.mark, schedule_ref.revision))
        instant = schedule_ref.schedule, schedule_ref.mark, schedule_ref.nominal
        other = self.begun.setdefault(instant, task.id.text)
        if stored_schedule is None or abs(schedule_ref.nominal - stored_schedule.updated_at) <= 4 * SKEW:
            return
        self.account.watching.check(other == task.id.text, f"{instant} began as {other} and as {task.id}")

    # The following methods are called at the end of the simulation.

    def endless(self) -> list[StoredSchedule]:
        """The schedules that do not end."""
        found = (self.store.read(OWNER, name)[0] for name in self.names)
        return [each for each in found if each is not None and each.is_expandable and each.spec.end_at is None]

    def is_endless(self, task: Task) -> bool:
        """Whether a task belongs to a schedule that does not end, so that the task need not have ended."""
        return task.schedule_ref is not None and task.schedule_ref.schedule in {each.name for each in self.endless()}

    def going_on(self) -> list[str]:
        """The schedules that have not yet run everything that should have run by now."""
        now, found = self.account.time.now(), []
        for name in self.names:
            stored_schedule, _ = self.store.read(OWNER, name)
            if stored_schedule is None or not stored_schedule.is_expandable:
                continue
            if stored_schedule.spec.end_at is None and not stored_schedule.open_backfills:
                is_behind = stored_schedule.done < now
                found += [f"{name} has no next occurrence"] if is_behind and not stored_schedule.is_permanent else []
            else:
                found.append(f"{name} has not ended")
        return found

    def check_end(self) -> None:
        """Check that undisturbed schedules have missed no occurrence, and that schedules without an end continue."""
        check = self.account.watching.check
        for name in self.names:
            self._check_identity(name, self.store.read(OWNER, name)[0])
        tasks = [task for task in self.account.watching.tasks() if task.schedule_ref is not None]
        for name in self.names:
            stored_schedule, _ = self.store.read(OWNER, name)
            if stored_schedule is None or name in self.disturbed or stored_schedule.state is ScheduleState.PAUSED:
                continue
            mine = [
                task
                for task in tasks
                if task.schedule_ref
                and task.schedule_ref.schedule == name
                and task.schedule_ref.cause is not Cause.BACKFILL
            ]
            if stored_schedule.is_permanent:
                continue
            check(
                len(mine) == stored_schedule.runs_started,
                f"{name} placed {stored_schedule.runs_started}, but {len(mine)} tasks are there",
            )
            is_counted = stored_schedule.spec.overlap is Overlap.ALLOW_ALL and name not in self.periods
            if is_counted and stored_schedule.spec.remaining_runs is None:
                wanted = count_between(stored_schedule.schedule(), stored_schedule.created_at - 1, stored_schedule.done)
                told = f"placed {stored_schedule.runs_started}, skipped {stored_schedule.runs_skipped}"
                check(
                    wanted == stored_schedule.runs_started + stored_schedule.runs_skipped,
                    f"{name} has {wanted} occurrences by now, but {told}",
                )
        for violation in self.going_on():
            check(False, violation)  # noqa: FBT003 - it does not hold

    def watch_on(self) -> None:
        """Check that schedules without an end run their occurrences in the next minutes."""
        endless = [each for each in self.endless() if each.state is ScheduleState.ACTIVE]
        if not endless:
            return
        began = self.account.time.now()
        self.account.time.run_until(began + _ALIVE + MINUTE)
        for stored_schedule in endless:
            if stored_schedule.is_permanent or stored_schedule.spec.overlap is not Overlap.ALLOW_ALL:
                continue
            now, _ = self.store.read(OWNER, stored_schedule.name)
            if now is None or now.revision != stored_schedule.revision or now.remaining_runs is not None:
                continue
            wanted = count_between(now.schedule(), began, began + _ALIVE)
            # No more calls fail, but a message that was refused earlier is sent again only by a recovery scan.
            patient_until = began + _ALIVE + MENDED
            while (run := self._run_from(now.name, began)) < wanted and self.account.time.now() < patient_until:
                self.account.time.run_until(self.account.time.now() + MINUTE)
            self.account.watching.check(
                run == wanted, f"{now.name} ran {run} of {wanted} occurrences after the simulation"
            )

    def check_explained(self) -> None:
        """Check that explanations of begun occurrences report that they began, even after later changes."""
        # Before a schedule skips an occurrence, a process that then crashed may have claimed the occurrence.
        begun = [
            task
            for task in self.account.watching.tasks()
            if task.schedule_ref and task.started_at and not (task.error and task.error.type == SKIPPED)
        ]
        for name in self.names:
            stored_schedule, _ = self.store.read(OWNER, name)
            if stored_schedule is None:
                continue
            mine = [each.schedule_ref for each in begun if each.schedule_ref and each.schedule_ref.schedule == name]
            own = {each.nominal for each in mine if each.mark == stored_schedule.mark and each.cause in OF_ITS_TIMING}
            for nominal in sorted(own)[:: max(1, len(own) // _ASKED)]:
                self._ask(name, nominal)

    def _ask(self, name: str, nominal: Millis) -> None:
        """Ask the API to explain what a schedule did at a time when it ran, and check the response."""
        replies: list[Reply | None] = []
        path, query = f"/v1/schedules/{name}/explain", f"at={to_iso(nominal)}"
        self.account.time.start_process(lambda: replies.append(self.account.users.ask("GET", path, query=query)))
        self.account.time.run_until(self.account.time.now() + MINUTE)
        said = next((each.body for each in replies if each is not None and each.status == HTTPStatus.OK), None)
        self.account.watching.check(
            said is not None and said["outcome"] in {"ran", "open"},
            f"{name} began an occurrence of {to_iso(nominal)}, but of that time it is said: {said}",
        )

    def _run_from(self, name: str, began: Millis) -> int:
        """The number of a schedule's occurrences that were due while it was watched, and that have run."""
        return sum(
            began < task.schedule_ref.nominal <= began + _ALIVE and bool(task.started_at or task.state in TERMINAL)
            for task in self.account.watching.tasks()
            if task.schedule_ref is not None and task.schedule_ref.schedule == name
        )
