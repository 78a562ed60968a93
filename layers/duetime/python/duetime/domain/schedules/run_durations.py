"""The usual duration of a schedule's runs, and the one from which a run is reported as a long one."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_RUNNING_SECONDS
from duetime.domain.tasks.states import State
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import NotifyOn

RUNS_COMPARED = 10
"""Latest occurrences of a schedule whose runs are compared."""
FEWEST_COMPARED = 3
"""Successful runs among them that a comparison needs."""


def with_usual_duration(notify_on: NotifyOn | None, factor: float | None, runs: Iterable[Task]) -> NotifyOn | None:
    """Notices with the limit of a long run: a multiple of the median duration, unless it has a shorter one.

    Args:
        notify_on: the notices of the schedule's tasks; `None` for none.
        factor: the multiple; `None` for no limit.
        runs: earlier tasks of the schedule. The duration of a run is that of its last attempt.

    Returns:
        The same notices if too few of the runs have succeeded.
    """
    durations = [
        run.finished_at - run.run_at
        for run in runs
        if run.state is State.SUCCEEDED and run.finished_at is not None and run.run_at is not None
    ]
    if notify_on is None or factor is None or len(durations) < FEWEST_COMPARED:
        return notify_on
    limit = min(max(1, math.ceil(median(durations) * factor / SECOND)), MAX_RUNNING_SECONDS)
    given = notify_on.running_seconds
    return replace(notify_on, running_seconds=limit if given is None else min(limit, given))
