"""Operations that cancel, update, retry and delete tasks by filter, and operations on bulk operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.bulk import bodies, responses
from duetime.contract.http.operation import KEY, Operation, Returns
from duetime.contract.tasks import actions
from duetime.domain import errors
from duetime.domain import errors as for_bulk
from duetime.domain.limits import BULK_RETENTION, MAX_BULK_PAGE, MAX_EXAMINED
from duetime.domain.times import DAY

if TYPE_CHECKING:
    from duetime.contract.http.request_model import Body

PIECES = "If all of it can be done within about a second, the response is 200 with the result. Otherwise it is 202, "
"and a bulk operation does the rest in the background; it survives crashes. Repeating the request with the same "
f"idempotency key returns the same operation. With `limit` or `dry_run`, one piece of at most {MAX_EXAMINED} tasks "
"is processed or counted: repeat the request with the `next_token` of the response until that is null."
"""Describes how requests with a filter are processed."""
_OPEN_TASKS = f"{PIECES} Repeating a piece does no harm. Tasks that have ended are skipped."


def filter_action(id_: str, route: str, summary: str, description: str, body: type[Body]) -> Operation:
    """Declares an operation on all tasks, or schedules, that match a filter."""
    return Operation(
        id_,
        route,
        summary,
        Returns(responses.FilterActionResult, "The result."),
        description=description,
        accepted=Returns(
            responses.BulkOperationResponse,
            "A bulk operation continues in the background.",
            {"Location": "Path of the bulk operation."},
            status=202,
        ),
        body=body,
        nesting=bodies.WRAPPED,
        headers=(KEY,),
        errors=(errors.KeyReused,),
    )


CANCEL_MANY = filter_action(
    "cancelTasksByFilter",
    "POST /v1/tasks/cancel",
    "Cancel all tasks that match a filter",
    _OPEN_TASKS,
    bodies.BulkCancel,
)
UPDATE_MANY = filter_action(
    "updateTasksByFilter",
    "POST /v1/tasks/update",
    "Update all tasks that match a filter",
    _OPEN_TASKS,
    bodies.BulkUpdate,
)
RETRY_MANY = filter_action(
    "retryTasksByFilter",
    "POST /v1/tasks/retry",
    "Retry all failed tasks that match a filter",
    "Retries each like `retryTask`: from the first attempt, with the full retry policy. A task that fails again "
    f"matches again when a piece is repeated. {PIECES}",
    bodies.BulkRetry,
)
DELETE_MANY = filter_action(
    "deleteTasksByFilter",
    "POST /v1/tasks/delete",
    "Delete all ended tasks that match a filter",
    "Deletes each like `deleteTask`, with payload, result and attempts, and with the nodes of a topology. This cannot "
    "be undone. Tasks that cannot be deleted now are counted in `refused`: nodes of a topology, and tasks whose "
    f"follow-ups are not done. {PIECES}",
    bodies.BulkDelete,
)
LIST = Operation(
    "listBulkOperations",
    "GET /v1/bulk-operations",
    "List bulk operations",
    Returns(responses.BulkOperationList, "The operations."),
    description=f"The latest {MAX_BULK_PAGE}, newest first. An operation that has ended is kept for "
    f"{BULK_RETENTION // DAY} days.",
)
READ = Operation(
    "getBulkOperation",
    "GET /v1/bulk-operations/{operation_id}",
    "Get a bulk operation",
    Returns(responses.BulkOperationResponse, "The operation."),
    description="With its progress. Counts are exact unless the function that carries it out crashes: the tasks of "
    "its current page may then be counted twice, or not at all.",
)
CANCEL = Operation(
    "cancelBulkOperation",
    "POST /v1/bulk-operations/{operation_id}/cancel",
    "Cancel a bulk operation",
    Returns(responses.BulkOperationResponse, "The cancelled operation."),
    description="What it has done stays done, and some more tasks may still be changed for a few seconds. Repeating "
    "the request changes nothing. An operation on the nodes of a topology cannot be cancelled: send the topology "
    "another request, such as to resume, instead.",
    body=actions.EmptyRequest,
    errors=(for_bulk.BulkEnded, for_bulk.BulkOfTopology),
)
