"""Dead letters over REST: the tasks that gave up, and having them tried again."""

from __future__ import annotations

from duetime.contract.bulk.bodies import ACCEPTED, BULK, REFUSALS, FilterActionResponse, RedriveMany
from duetime.contract.bulk.operations import LOCATION, BulkResponse
from duetime.contract.http import routes
from duetime.contract.http.operation import KEY, OWNED, OWNER, Operation
from duetime.contract.tasks import queries, responses

DEAD_LETTER_OPERATIONS = (
    Operation(
        id="listDeadLetters",
        method="GET",
        path=routes.DEAD_LETTERS,
        summary="List one's tasks that gave up",
        description="Tasks that are `failed`, in order of their due times, each with its last error. A page may be "
        "short, or empty, and still name a next one.",
        answer=responses.PageResponse,
        answer_description="A page of the list.",
        headers=(OWNER,),
        query=queries.DeadLetterQuery,
        refusals=OWNED,
    ),
    Operation(
        id="redriveDeadLetters",
        method="POST",
        path=routes.REDRIVE,
        summary="Have failed tasks tried again by a filter",
        description="Each as `retryTask` would: from its first attempt on, by its whole retry policy. One that gives "
        f"up again is a dead letter again, and meant again by a piece that is repeated. {BULK}",
        body=RedriveMany,
        answer=FilterActionResponse,
        answer_description="What was done.",
        accepted=ACCEPTED,
        accepted_response=BulkResponse,
        accepted_headers=LOCATION,
        headers=(KEY, OWNER),
        refusals=REFUSALS,
    ),
)
