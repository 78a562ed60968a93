"""The operations on dead letters: the tasks that gave up, and having them tried again."""

from __future__ import annotations

from duetime.contract.bulk.bodies import RedriveMany
from duetime.contract.bulk.operations import PIECES, filter_action
from duetime.contract.http.operation import Operation, Returns
from duetime.contract.tasks import queries, responses

LIST = Operation(
    "listDeadLetters",
    "GET /v1/dead-letters",
    "List one's tasks that gave up",
    Returns(responses.PageResponse, "A page of the list."),
    description="Tasks that are `failed`, in order of their due times, each with its last error. A page may be short, "
    "or empty, and still name a next one.",
    query=queries.DeadLetterQuery,
)
REDRIVE = filter_action(
    "redriveDeadLetters",
    "POST /v1/dead-letters/redrive",
    "Have failed tasks tried again by a filter",
    "Each as `retryTask` would: from its first attempt on, by its whole retry policy. One that gives up again is a "
    f"dead letter again, and meant again by a piece that is repeated. {PIECES}",
    RedriveMany,
)
