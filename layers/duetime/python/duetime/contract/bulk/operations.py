"""The operations that cancel, update and retry tasks by a filter, and those on bulk operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.bulk import bodies, responses
from duetime.contract.http.operation import KEY, Operation, Returns
from duetime.contract.tasks import report_bodies
from duetime.domain import errors
from duetime.domain.limits import BULK_RETENTION, MAX_BULK_PAGE, MAX_EXAMINED
from duetime.domain.times import DAY

if TYPE_CHECKING:
    from duetime.contract.bulk.bodies import FilterActionBody

PIECES = (
    "What is done within about a second is answered at once. If there is more, the answer is 202, and a bulk operation "
    "does the rest, whatever crashes. The same request with the same idempotency key answers the same operation. With "
    f"`limit` or `dry_run`, one piece is done or counted, {MAX_EXAMINED} tasks at most: repeat it with `next_token` "
    "of the answer until that is null."
)
"""How requests that name tasks by a filter go on."""
_OPEN_TASKS = f"{PIECES} Doing a piece again does no harm. Tasks that have ended are passed over."


def filter_action(id_: str, route: str, summary: str, description: str, body: type[FilterActionBody]) -> Operation:
    """What is done with all tasks that a filter names."""
    return Operation(
        id_,
        route,
        summary,
        Returns(responses.FilterActionResult, "What was done."),
        description=description,
        accepted=Returns(
            responses.BulkOperationResponse,
            "There is more to do than fits into an answer: the operation goes on.",
            {"Location": "Path of the bulk operation."},
            status=202,
        ),
        body=body,
        nesting=bodies.WRAPPED,
        headers=(KEY,),
        errors=(errors.KeyReused,),
    )


CANCEL_MANY = filter_action(
    "cancelTasksByFilter", "POST /v1/tasks/cancel", "Cancel tasks by a filter", _OPEN_TASKS, bodies.BulkCancel
)
UPDATE_MANY = filter_action(
    "updateTasksByFilter", "POST /v1/tasks/update", "Update tasks by a filter", _OPEN_TASKS, bodies.BulkUpdate
)
RETRY_MANY = filter_action(
    "retryTasksByFilter",
    "POST /v1/tasks/retry",
    "Have failed tasks tried again by a filter",
    "Each as `retryTask` would: from its first attempt on, by its whole retry policy. One that gives up again has "
    f"failed again, and is meant again by a piece that is repeated. {PIECES}",
    bodies.BulkRetry,
)
LIST = Operation(
    "listBulkOperations",
    "GET /v1/bulk-operations",
    "List one's bulk operations",
    Returns(responses.BulkOperationPage, "The operations."),
    description=f"The latest {MAX_BULK_PAGE}, newest first. One that has ended can be read for "
    f"{BULK_RETENTION // DAY} days.",
)
READ = Operation(
    "getBulkOperation",
    "GET /v1/bulk-operations/{operation_id}",
    "See how far a bulk operation is",
    Returns(responses.BulkOperationResponse, "The operation."),
    description="Counts are exact unless whoever carries it out crashes: tasks of the page that it was at may then "
    "be counted twice, or not.",
)
CANCEL = Operation(
    "cancelBulkOperation",
    "POST /v1/bulk-operations/{operation_id}/cancel",
    "Stop a bulk operation",
    Returns(responses.BulkOperationResponse, "The operation as it was stopped."),
    description="What it has done stays done; tasks that it is at may still be changed for some seconds. Stopping "
    "it again changes nothing. One on a topology is stopped by asking the topology for something else.",
    body=report_bodies.EmptyRequest,
    errors=(errors.BulkEnded, errors.BulkOfTopology),
)
