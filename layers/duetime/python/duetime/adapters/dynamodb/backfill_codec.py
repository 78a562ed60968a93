"""Backfills of a schedule: what every version of this code reads, and beside it what earlier ones do not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.domain.schedules.backfill import Backfill, BackfillCursor
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.run_history import BackfillRun

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_OPTIONS = (False, Overlap.ALLOW_ALL, 0)
"""Of a backfill of earlier code: all of its occurrences run, at the same time."""


def run_form(run: BackfillRun) -> list[Any]:
    """A backfill; earlier code reads exactly these values, so another one belongs into `options_form`."""
    asked, cursor = run.backfill, run.cursor
    at = None if cursor is None else [cursor.until, cursor.runs_started]
    return [run.id, asked.start, asked.end, asked.per_minute, asked.asked_at, run.occurrences, at, run.finished_at]


def options_form(runs: Sequence[BackfillRun]) -> dict[str, list[Any]]:
    """The options of backfills by their ids, and how many runs each has found; what earlier code would do is left out.

    Earlier code loses them when it writes the schedule: the rest of a backfill then runs as that code would run it.
    """
    forms = {run.id: _options_of(run) for run in runs}
    return {name: list(options) for name, options in forms.items() if options != _NO_OPTIONS}


def _options_of(run: BackfillRun) -> tuple[bool, Overlap, int]:
    known = 0 if run.cursor is None else run.cursor.runs_known
    return run.backfill.only_missing, run.backfill.overlap, known


def read_run(form: list[Any], options: dict[str, list[Any]]) -> BackfillRun:
    """Read a backfill, with the options of all."""
    name, start, end, per_minute, asked_at, size, at, ended_at = form
    only_missing, overlap, known = options.get(name, _NO_OPTIONS)
    cursor = None
    if at is not None:
        until, runs_started = at
        cursor = BackfillCursor(until, runs_started, known)
    wanted = Backfill(start, end, per_minute, asked_at, only_missing, Overlap(overlap))
    return BackfillRun(name, wanted, size, cursor, ended_at)
