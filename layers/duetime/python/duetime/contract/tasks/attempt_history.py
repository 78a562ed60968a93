"""Encodes the attempt history of a task as a response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.mapping import response_of
from duetime.contract.tasks.responses import AttemptErrorResponse, AttemptList, AttemptResponse
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.attempt_run import ended_attempts
from duetime.domain.tasks.costs import dollars_of, worker_time
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task
    from duetime.domain.tracebacks import AttemptTraceback


def attempts(task: Task, older: Iterable[AttemptRecord], traceback: AttemptTraceback | None = None) -> AttemptList:
    """The ended attempts of a task, oldest first.

    Args:
        task: the record, which contains the latest attempts.
        older: attempts that did not fit into the record; those that are still in it are ignored.
        traceback: of the last attempt that has one.
    """
    return AttemptList(attempts=[_attempt(line, task, traceback) for line in ended_attempts(task, older)])


def _attempt(line: AttemptRecord, task: Task, traceback: AttemptTraceback | None) -> AttemptResponse:
    if line.outcome is AttemptOutcome.LOST:
        return _lost(line)
    return response_of(
        AttemptResponse,
        line,
        planned_at=to_iso(line.started_at - line.late),
        lateness_ms=line.late,
        duration_ms=line.took,
        error=_error(line, traceback),
        cost_dollars=dollars_of(worker_time(line, task)),
    )


def _error(line: AttemptRecord, traceback: AttemptTraceback | None) -> AttemptErrorResponse | None:
    if line.error is None:
        return None
    text = traceback.text if traceback is not None and traceback.fence == line.fence else None
    return response_of(AttemptErrorResponse, line.error, traceback=text)


def _lost(line: AttemptRecord) -> AttemptResponse:
    return AttemptResponse(
        attempt=line.attempt,
        fence=line.fence,
        worker=None,
        planned_at=None,
        started_at=None,
        lateness_ms=None,
        duration_ms=None,
        outcome=line.outcome,
        error=None,
        cost_dollars=None,
    )
