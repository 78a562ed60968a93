"""Lists a schedule's runs from all its revisions, newest first.

The runs are found in the owner's list of tasks for as long as the tasks are stored, so a run needs no additional write.
Older runs are not listed; if there is an archive, the archive contains their tasks, and the page says so. A page
examines a limited number of the owner's tasks. Occurrences without tasks are computed from the current timing or, for
earlier times, taken from the schedule's stored notes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.errors import ScheduleNotFound
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_JITTER_SECONDS, MAX_PAGE
from duetime.domain.schedules.expansion import latest_occurrence
from duetime.domain.schedules.occurrences import Occurrence, between, preceding
from duetime.domain.schedules.runs import (
    ARCHIVED,
    NOT_KEPT,
    RunPage,
    RunStatus,
    ScheduleRun,
    run_of_task,
    run_without_task,
    runs_remarked,
)
from duetime.domain.schedules.schedule_history import ScheduleAction
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.tasks.task import Cause
from duetime.domain.times import LAST_INSTANT, SECOND
from duetime.ports.tasks import ListQuery
from duetime.services.schedules.known_runs import former_revisions, possible_ids
from duetime.services.schedules.preview import seen_of
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Clock
    from duetime.ports.stores import Stores
    from duetime.services.schedules.preview import SchedulePreview, Seen
    from duetime.services.tasks.read import TaskReader

PLANNED = 5
"""Number of planned runs on the first page."""
_PASSED_OVER = 5
"""Maximum number of pages read to find a page with a matching run."""
_REQUESTED = frozenset({Cause.MANUAL, Cause.BACKFILL})
OF_ITS_TIMING = frozenset({Cause.SCHEDULE, Cause.CATCH_UP})
"""Causes of runs that belong to a time of the schedule's timing; runs with other causes are additional."""
_DELAYS = ("jitter_seconds", "spread_seconds")
_PAGES = 5
"""Maximum number of pages of an owner's tasks that are examined to find the runs for a time."""
_MOST_AT_ONCE = 60
"""Maximum number of occurrences whose tasks are read for one time, which covers a minute."""


@frozen
class RunsQuery:
    """Selects runs.

    Attributes:
        after: end of the previous page.
        since: earliest scheduled time.
        before: exclusive end of the range of scheduled times.
        limit: maximum number of tasks on a page.
        statuses: statuses to include; empty for all.
    """

    after: TaskId | None = None
    since: Millis = 0
    before: Millis | None = None
    limit: int = MAX_PAGE
    statuses: frozenset[RunStatus] = frozenset()

    def has(self, run: ScheduleRun) -> bool:
        """Whether a run matches; a requested run is selected by its due time instead of its scheduled time."""
        if self.statuses and run.status not in self.statuses:
            return False
        at = run.task.due_at if run.task is not None and run.cause in _REQUESTED else run.nominal
        return self.since <= at and (self.before is None or at < self.before)


@frozen
class RunsAt:
    """The tasks that a schedule has created for a time, in all its revisions.

    Attributes:
        tasks: the existing tasks, including the records that remain after tasks are deleted.
        former: tasks of an earlier schedule with the same name.
        is_complete: whether all possible tasks were examined.
    """

    tasks: Sequence[Task]
    former: Sequence[Task] = ()
    is_complete: bool = True


@frozen
class ScheduleRuns:
    """Lists the runs of schedules.

    Attributes:
        retention: how long an ended task is kept.
    """

    stores: Stores
    task_reader: TaskReader
    schedule_preview: SchedulePreview
    clock: Clock
    retention: RetentionPolicy

    def list(self, owner: str, name: str, query: RunsQuery) -> RunPage:
        """A page of a schedule's runs; it may be empty and still have a next page.

        If a status filter is set, pages without matching runs are skipped, because the first pages of a frequent
        schedule contain only planned runs.

        Raises:
            ScheduleNotFound: no schedule has that name.
        """
        stored, _ = self.stores.schedules.read(owner, name)
        if stored is None:
            raise ScheduleNotFound(name)
        for _ in range(_PASSED_OVER):
            page = self._page(stored, query)
            if page.runs or page.after is None or not query.statuses:
                break
            query = replace(query, after=page.after)
        return page

    def _page(self, stored: StoredSchedule, query: RunsQuery) -> RunPage:
        owner, name = stored.owner, stored.name
        since = max(query.since, stored.created_at)
        top = query.after
        if top is None and query.before is not None:
            # The due time of a task is at most this much later than the scheduled time.
            delay = (stored.spec.jitter_seconds + stored.spec.spread_seconds) * SECOND
            top = TaskId.of(query.before + delay, 0, 0)
        listed = ListQuery(owner, top, limit=query.limit, since=since)
        page = self.task_reader.list(listed, TaskFilter(schedule=name))
        floor = since if page.after is None else page.after.home
        ceiling = min(LAST_INSTANT if top is None else top.home, self.clock.now() + 1)
        others, reached = self._without_tasks(stored, page.tasks, floor, ceiling)
        after = page.after
        if reached > floor:
            # Occurrences without tasks fill the page, so the page ends at the earliest of these occurrences.
            after = TaskId.of(reached, 0, 0)
        now = self.clock.now()
        # Runs of an earlier schedule with the same name are not listed.
        own = [each for each in page.tasks if each.schedule_ref and each.schedule_ref.mark == stored.mark]
        runs = [run_of_task(each, now) for each in own if after is None or each.id >= after]
        planned = self._planned(stored, query) if query.after is None else ()
        # When a permanent schedule ran is known only from its tasks.
        changed = max(stored.updated_at, self._kept_since(stored)) if stored.is_permanent else stored.updated_at
        found = _newest_first(run for run in (*planned, *runs, *others) if query.has(run))
        return RunPage(
            stored, found, since, max(since, changed), self._kept_since(stored), self._is_archived(stored), after
        )

    def occurrences(
        self, owner: str, name: str, start: Millis, end: Millis, limit: int
    ) -> tuple[Sequence[Seen], Millis]:
        """The occurrences in [start, end] in order, and the time of the last change, after which the list is complete.

        Occurrences before the last change are found only if their tasks still exist and are among the owner's first
        tasks in that period.

        Raises:
            ScheduleNotFound: no schedule has that name.
        """
        stored, _ = self.stores.schedules.read(owner, name)
        if stored is None:
            raise ScheduleNotFound(name)
        before = self._before_the_change(stored, start, min(end, stored.updated_at - 1), limit)
        if len(before) < limit and end >= stored.updated_at:
            since = max(start, stored.updated_at)
            before = [*before, *self.schedule_preview.occurrences(stored, since, end, limit - len(before))]
        return before, stored.updated_at

    def _before_the_change(self, stored: StoredSchedule, start: Millis, end: Millis, limit: int) -> Sequence[Seen]:
        """The first occurrences in [start, end] that have a task, regardless of the timing at that time."""
        found: dict[Millis, Task] = {}
        after: TaskId | None = TaskId.of(max(start, stored.created_at), 0, 0)
        until = end + _longest_delay(stored)
        wanted = TaskFilter(schedule=stored.name)
        for _ in range(_PAGES if start <= end else 0):
            page = self.task_reader.list(ListQuery(stored.owner, after, descending=False, limit=MAX_PAGE), wanted)
            for task in page.tasks:
                nominal = _nominal_of(stored, task)
                # An occurrence that a later revision has placed again counts only once.
                if nominal is not None and start <= nominal <= end and (nominal not in found or task.attempt_history):
                    found[nominal] = task
            after = page.after
            if after is None or after.home > until or len(found) > limit:
                break
        text_at = stored.spec.clock.zone.text_at
        return [
            seen_of(Occurrence(nominal, nominal, task.due_at, text_at(nominal)), task)
            for nominal, task in sorted(found.items())[:limit]
        ]

    def at(self, stored: StoredSchedule, first: Millis, length: Millis) -> RunsAt:
        """The tasks that a schedule has created for times in [first, first + length), in all its revisions.

        The tasks are first looked up by the ids that they would have under the current timing, for each of the latest
        revisions, and by the ids of stored backfills. Unless a run for exactly the time `first` is found, the owner's
        tasks for that time are read, as in `list`, because an earlier timing may have had a run at that time.
        """
        end = first + length
        by_id = [] if stored.is_permanent else self._by_id(stored, first, end)
        found = [each for each in by_id if _is_at(each, first, end)]
        if first > self.clock.now() or any(_has_run(each, first) for each in found):
            return RunsAt(found)
        listed, is_complete = self._listed(stored, first, end + _longest_delay(stored))
        known = {each.id for each in found}
        at_the_time = [each for each in listed if each.id not in known and _is_at(each, first, end)]
        own = [each for each in at_the_time if each.schedule_ref and each.schedule_ref.mark == stored.mark]
        former = [each for each in at_the_time if each.schedule_ref and each.schedule_ref.mark != stored.mark]
        return RunsAt([*found, *own], former, is_complete)

    def _by_id(self, stored: StoredSchedule, first: Millis, end: Millis) -> Sequence[Task]:
        schedule = replace(stored.schedule(self.schedule_preview.known_calendars(stored)), remaining_runs=None)
        meant = list(between(schedule, first - 1, end - 1, _MOST_AT_ONCE))
        # An earlier occurrence may have been delayed into the requested time.
        earlier = latest_occurrence(schedule, first - 1)
        meant += [] if earlier is None else [earlier]
        former = former_revisions(stored, schedule)
        ids = {task_id for each in meant for task_id in possible_ids(stored, each, former, stored.backfills)}
        return list(self.stores.tasks.read_many(sorted(ids)).values())

    def _listed(self, stored: StoredSchedule, since: Millis, until: Millis) -> tuple[Sequence[Task], bool]:
        """The tasks of schedules with this name that are due in [since, until), and whether all of them were found."""
        found: list[Task] = []
        after: TaskId | None = TaskId.of(min(until, LAST_INSTANT), 0, 0)
        wanted = TaskFilter(schedule=stored.name)
        for _ in range(_PAGES):
            page = self.task_reader.list(ListQuery(stored.owner, after, limit=MAX_PAGE, since=since), wanted)
            found += page.tasks
            if (after := page.after) is None:
                return found, True
        return found, False

    def _kept_since(self, stored: StoredSchedule) -> Millis:
        return self.clock.now() - self.retention.of(stored.spec.task.type)

    def _is_archived(self, stored: StoredSchedule) -> bool:
        archive = self.task_reader.archive
        return archive is not None and archive.archived.of(stored.spec.task.type) > 0

    def _without_tasks(
        self, stored: StoredSchedule, tasks: Sequence[Task], floor: Millis, ceiling: Millis
    ) -> tuple[Sequence[ScheduleRun], Millis]:
        """The occurrences in [floor, ceiling) that have no task, and the instant from which the list is complete."""
        listed = frozenset(each.schedule_ref.nominal for each in tasks if each.schedule_ref)
        remarked = runs_remarked(stored.log, listed, floor, min(ceiling, stored.updated_at))
        if stored.is_permanent or ceiling <= stored.updated_at:
            return list(remarked), floor
        schedule = replace(stored.schedule(self.schedule_preview.known_calendars(stored)), remaining_runs=None)
        found = list(preceding(schedule, ceiling, MAX_PAGE))
        bound = max(floor, stored.updated_at)
        reached = found[-1].nominal if len(found) == MAX_PAGE and found[-1].nominal > bound else floor
        past = [each for each in found if each.nominal >= bound]
        ids = {each.key: stored.id_of(each) for each in past if each.runs and each.nominal not in listed}
        known = self.stores.tasks.read_many(list(ids.values()))
        kept_since, not_kept = self._kept_since(stored), ARCHIVED if self._is_archived(stored) else NOT_KEPT
        runs = [
            run_without_task(stored, each, known.get(ids[each.key]) if each.key in ids else None, kept_since, not_kept)
            for each in past
            if each.nominal not in listed
        ]
        earlier = () if reached > floor else remarked
        return [*(each for each in runs if each is not None), *earlier], reached

    def _planned(self, stored: StoredSchedule, query: RunsQuery) -> Iterable[ScheduleRun]:
        """The next occurrences that have no tasks yet."""
        for each in self.schedule_preview.upcoming(stored, PLANNED):
            is_wanted = each.nominal >= query.since and (query.before is None or each.nominal < query.before)
            # Placed runs are listed with their tasks, on this page or the next.
            if is_wanted and (each.nominal > stored.done or not each.runs):
                status = RunStatus.PLANNED if each.runs else RunStatus.SKIPPED
                yield ScheduleRun(each.nominal, status, reason=each.note)


def _nominal_of(stored: StoredSchedule, task: Task) -> Millis | None:
    """The scheduled time of a task; `None` if the task is not a run of the schedule's timing."""
    ref = task.schedule_ref
    is_own = ref is not None and ref.mark == stored.mark and ref.cause in OF_ITS_TIMING
    return ref.nominal if ref is not None and is_own else None


def _is_at(task: Task, first: Millis, end: Millis) -> bool:
    """Whether a task's scheduled time or its due time lies in [first, end)."""
    nominal = task.due_at if task.schedule_ref is None else task.schedule_ref.nominal
    return first <= nominal < end or first <= task.due_at < end


def _has_run(task: Task, nominal: Millis) -> bool:
    """Whether a task has run for this scheduled time; a skipped task may have an attempt whose worker crashed."""
    is_of_it = task.schedule_ref is not None and task.schedule_ref.nominal == nominal
    return is_of_it and bool(task.attempt_history) and not task.was_dropped


def _longest_delay(stored: StoredSchedule) -> Millis:
    """The longest possible delay of a run; the maximum if the delay settings have changed, or may have changed."""
    updates = [each for each in stored.actions.records if each.action is ScheduleAction.UPDATED]
    is_known = not stored.actions.dropped and not any({*_DELAYS} & {*each.fields} for each in updates)
    spec = stored.spec
    return (spec.jitter_seconds + spec.spread_seconds if is_known else 2 * MAX_JITTER_SECONDS) * SECOND


def _newest_first(runs: Iterable[ScheduleRun]) -> Sequence[ScheduleRun]:
    return sorted(runs, key=lambda run: (run.nominal, run.task.id.text if run.task else ""), reverse=True)
