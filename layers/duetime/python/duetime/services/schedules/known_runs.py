"""Finds a schedule's known runs by their task ids, and finds the run that began last.

A run is found by the id that its task would have, without reading a list of the owner's tasks. A run is known if its
task is still stored, and the schedule placed it with its current revision, with one of its latest revisions, or for one
of the backfills that are stored with the schedule.

Tasks exist minutes before they are due, and many never begin. If runs are counted as they begin, the count names the
latest run (`Activity.latest`). If any number of runs may overlap, nothing is written as runs begin, so the tasks of the
latest times are read. The latest run is stored with the schedule when its timing changes, and once a day, because tasks
are removed some time after their end.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from duetime.domain.schedules.backfill import KnownRuns, home_of, unstarted
from duetime.domain.schedules.expansion import MAX_EXPANSION
from duetime.domain.schedules.occurrences import judged, preceding
from duetime.domain.schedules.run_history import begun_run
from duetime.domain.tasks.approvals import was_decided
from duetime.domain.times import DAY, MINUTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.run_history import BackfillRun, BegunRun
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.tasks import TaskStore


REVISIONS = 10
"""Number of latest revisions of a schedule whose runs stay known after its timing has changed."""
_FEWEST = 50
"""Minimum number of occurrences examined at a time, because most of these occurrences may already have a run."""


def known_runs(
    tasks: TaskStore, stored: StoredSchedule, schedule: Schedule, run: BackfillRun, horizon: Millis
) -> KnownRuns:
    """The next occurrences of a backfill that already have a run.

    Args:
        tasks: store of the schedule's tasks.
        stored: the stored schedule.
        schedule: the same schedule, for computing times.
        run: the backfill with its progress.
        horizon: how far ahead the backfill's occurrences are placed.

    Raises:
        Unavailable: the store did not answer.
    """
    backfill, cursor = run.backfill, run.cursor
    done = backfill.start - 1 if cursor is None else cursor.until
    started = 0 if cursor is None else cursor.runs_started
    due = (horizon - backfill.asked_at) * backfill.per_minute // MINUTE + 1 - started
    if due <= 0:
        return KnownRuns(done)
    former = former_revisions(stored, schedule)
    others = [each for each in stored.backfills if each.id != run.id]
    limit = min(max(due, _FEWEST), MAX_EXPANSION // (1 + len(former)))
    found = list(islice(unstarted(schedule, backfill, cursor), limit))
    ids = {each.nominal: possible_ids(stored, each, former, others) for each in found}
    there = tasks.read_many(sorted({task_id for each in ids.values() for task_id in each}), consistent=True)
    known = frozenset(at for at, each in ids.items() if any(it in there and _is_run(there[it]) for it in each))
    return KnownRuns(found[-1].nominal if len(found) == limit else backfill.end, known)


def former_revisions(stored: StoredSchedule, schedule: Schedule) -> list[tuple[StoredSchedule, Schedule]]:
    """The schedule under each of its latest revisions, with the current timing."""
    former = range(max(1, stored.revision - REVISIONS), stored.revision)
    return [
        (
            replace(stored, revision=revision, revision_ends=(), stopped=()),
            replace(schedule, revision=revision, revision_ends=(), stopped=frozenset()),
        )
        for revision in former
    ]


def possible_ids(
    stored: StoredSchedule,
    occurrence: Occurrence,
    former: list[tuple[StoredSchedule, Schedule]],
    others: Sequence[BackfillRun],
) -> set[TaskId]:
    """The possible ids of an occurrence's tasks."""
    nominal = occurrence.nominal
    ids = {stored.id_of(occurrence), *(each.task_id for each in stored.stopped if each.nominal == nominal)}
    ids |= {before.id_of(judged(schedule, nominal)) for before, schedule in former}
    for other in others:
        if other.backfill.start <= nominal <= other.backfill.end:
            home = home_of(other.backfill, other.occurrences, nominal)
            ids.add(stored.id_of(replace(occurrence, home=home), other.id))
    return ids


def _is_run(task: Task) -> bool:
    """Whether a task is a run of its occurrence; a task that ended before it began is not a run."""
    return task.erased or task.finished_at is None or bool(task.attempt_history) or was_decided(task)


_FIRST_BATCH, _BATCH = 5, 100
"""Numbers of records read in the first and later requests; the first is small, as the latest run usually has begun."""
_MOST = 1_000
"""Maximum number of scheduled times whose tasks are read."""
MOST_IN_PASS = _FIRST_BATCH + _BATCH
"""Maximum number of scheduled times per expansion pass; limited because passes repeat the search until a run begins."""


def latest_run(
    tasks: TaskStore, stored: StoredSchedule, schedule: Schedule, now: Millis, most: int = _MOST
) -> BegunRun | None:
    """The latest run of the schedule's timing that has begun, among the given number of its latest times.

    Raises:
        Unavailable: the store did not answer.
    """
    # No occurrence before the schedule's creation has a task, so a new schedule needs no search.
    since_creation = takewhile(lambda each: each.nominal >= stored.created_at, preceding(schedule, now + 1, most))
    before = (each for each in since_creation if each.runs)
    size = _FIRST_BATCH
    while batch := [stored.id_of(each) for each in islice(before, size)]:
        begun = [run for task in tasks.read_many(batch).values() if (run := begun_run(task)) is not None]
        if begun:
            return max(begun, key=lambda run: run.started_at)
        size = _BATCH
    return None


def is_due(stored: StoredSchedule, now: Millis) -> bool:
    """Whether the latest run must be searched for and stored with the schedule again."""
    if stored.counts_runs or stored.last_run is None:
        return False
    return stored.latest_run is None or stored.latest_run.started_at < now - DAY
