"""The latest run of a schedule that has begun, where nothing is written as its runs begin.

Occurrences have tasks minutes before they are due, and many a task never begins: so what a schedule has placed says
little. Runs that are counted as they begin are known from that (`Activity.latest`). Where any number may run at once,
the tasks of the latest times are read. What that finds is kept with the schedule when its timing changes, and once a
day: tasks are removed some time after their end.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from duetime.domain.schedules.occurrences import preceding
from duetime.domain.schedules.run_history import begun_run
from duetime.domain.times import DAY

if TYPE_CHECKING:
    from duetime.domain.schedules.run_history import BegunRun
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.times import Millis
    from duetime.ports.tasks import TaskStore

_FIRST_BATCH, _BATCH = 5, 100
"""Records that are read at once: the latest run has nearly always begun."""
_MOST = 1_000
"""Times whose tasks are read at most."""
MOST_IN_PASS = _FIRST_BATCH + _BATCH
"""The same for an expansion pass, which looks again in the next one: each minute while no worker runs."""


def latest_run(
    tasks: TaskStore, stored: StoredSchedule, schedule: Schedule, now: Millis, most: int = _MOST
) -> BegunRun | None:
    """The latest run of its timing that has begun, among so many of its latest times.

    Raises:
        Unavailable: the store did not answer.
    """
    before = (each for each in preceding(schedule, now + 1, most) if each.runs)
    size = _FIRST_BATCH
    while batch := [stored.id_of(each) for each in islice(before, size)]:
        begun = [run for task in tasks.read_many(batch).values() if (run := begun_run(task)) is not None]
        if begun:
            return max(begun, key=lambda run: run.started_at)
        size = _BATCH
    return None


def is_due(stored: StoredSchedule, now: Millis) -> bool:
    """Whether its latest run is to be kept with it again."""
    if stored.counts_runs or stored.last_run is None:
        return False
    return stored.latest_run is None or stored.latest_run.started_at < now - DAY
