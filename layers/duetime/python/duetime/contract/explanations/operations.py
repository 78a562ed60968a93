"""The operations that explain."""

from __future__ import annotations

from duetime.contract.explanations import queries, responses
from duetime.contract.http.operation import Operation, Returns

EXPLAIN_TASK = Operation(
    "explainTask",
    "GET /v1/tasks/{task_id}/explain",
    "Explain why a task waits, or where its time went",
    Returns(responses.TaskExplanationResponse, "The explanation."),
    description="In words and as data: each thing that the task has waited for, with its time, and what it waits for "
    "now: its due time, a lock and who holds it, a switch and who set it, a retry, a worker, its schedule, its "
    "parents. The durations sum to the whole life of the task. It is derived from what is stored, and changes "
    "nothing.",
)
EXPLAIN_SCHEDULE = Operation(
    "explainSchedule",
    "GET /v1/schedules/{name}/explain",
    "Explain why a schedule did or did not run at a time",
    Returns(responses.ScheduleExplanationResponse, "The explanation."),
    description="Its occurrence at that time and what became of it: it ran, was skipped, was excluded by a calendar, "
    "was missed, fell into a pause or a change of the clock, or is still to come. Otherwise the nearest occurrences.",
    query=queries.ScheduleExplanationQuery,
)
