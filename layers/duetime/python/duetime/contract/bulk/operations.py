"""The REST API for bulk operations: responses, and operations that start, show and cancel them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.bulk import bodies
from duetime.contract.http import page_tokens
from duetime.contract.http.operation import KEY, Operation, Returns
from duetime.contract.http.problems import KINDS, code_of
from duetime.contract.mapping import response_of
from duetime.contract.tasks import operations
from duetime.contract.tasks.responses import Instant
from duetime.domain import errors
from duetime.domain import errors as for_bulk
from duetime.domain.bulk import BulkKind, BulkState
from duetime.domain.limits import BULK_RETENTION, MAX_BULK_PAGE, MAX_EXAMINED
from duetime.domain.times import DAY

if TYPE_CHECKING:
    from duetime.contract.http.request_model import Body
    from duetime.domain.bulk import BulkOperation, FilterResult


class BulkOperationResponse(TypedDict):
    """A bulk operation and its progress."""

    id: str
    kind: Annotated[
        BulkKind,
        Field(
            description="The action on each task. `pause` and `resume` act on schedules if `topology_id` is null. "
            "`end` finishes the rest of a topology, `delete` deletes the nodes of a deleted topology, `signal` wakes "
            "tasks that wait for an event."
        ),
    ]
    state: BulkState
    topology_id: Annotated[
        str | None, Field(description="The topology whose nodes are affected; null for an operation by filter.")
    ]
    created_at: Instant
    created_by: Annotated[
        str | None, Field(description="The owner who requested the operation; null for `end`, which the system starts.")
    ]
    finished_at: Instant | None
    examined: Annotated[int, Field(description="How many tasks or schedules were read.")]
    matched: Annotated[
        int,
        Field(description="How many of the examined tasks or schedules match the filter and can still be acted on."),
    ]
    affected: Annotated[int, Field(description="How many of the matching tasks or schedules were acted on.")]
    refused: Annotated[
        Mapping[str, int],
        Field(description="How many of the matching tasks or schedules could not be acted on, by problem code."),
    ]
    reason: Annotated[str | None, Field(description="Why the operation was cancelled, unless a request cancelled it.")]


class BulkOperationList(TypedDict):
    """The latest bulk operations of an owner."""

    operations: Sequence[BulkOperationResponse]


def bulk_response(operation: BulkOperation) -> BulkOperationResponse:
    """The response for an operation."""
    progress = operation.progress
    refused: dict[str, int] = {}
    for name, count in progress.refused.items():
        refused[code_of(name)] = refused.get(code_of(name), 0) + count
    return response_of(
        BulkOperationResponse,
        operation,
        id=operation.id.text,
        topology_id=None if operation.topology is None else operation.topology.text,
        created_by=None if operation.kind is BulkKind.END else operation.owner,
        examined=progress.examined,
        matched=progress.matched,
        affected=progress.affected,
        refused=refused,
        reason=operation.reason or None,
    )


class FilterActionResult(TypedDict):
    """The result of an action on all tasks or schedules that match a filter."""

    examined: Annotated[int, Field(description="How many tasks or schedules were read.")]
    matched: Annotated[
        int,
        Field(description="How many of the examined tasks or schedules match the filter and can still be acted on."),
    ]
    affected: Annotated[
        int, Field(description="How many of the matching tasks or schedules were acted on; 0 for a dry run.")
    ]
    refused: Annotated[
        Mapping[str, int],
        Field(description="How many of the matching tasks or schedules could not be acted on, by problem code."),
    ]
    next_token: Annotated[
        str | None, Field(description="Token to continue where this request stopped; null if everything is done.")
    ]
    confirmation_token: Annotated[
        str | None,
        Field(
            description="Token that a dry run returns. A request with this token acts only on counted tasks, not on "
            "tasks that were created later. Later pieces of the dry run need the token, too. Null for other "
            "requests."
        ),
    ]


def filter_action_response(swept: FilterResult, scope: str, confirmation: str | None = None) -> FilterActionResult:
    """The response for one piece, with the next piece's token and, after a dry run, the confirmation token."""
    return response_of(
        FilterActionResult,
        swept,
        refused={KINDS[refusal].code: count for refusal, count in swept.refused.items()},
        next_token=None if swept.after is None else page_tokens.token_of(swept.after, scope),
        confirmation_token=confirmation,
    )


def done_response(operation: BulkOperation) -> FilterActionResult:
    """The response for an ended operation."""
    answer = bulk_response(operation)
    return FilterActionResult(
        examined=answer["examined"],
        matched=answer["matched"],
        affected=answer["affected"],
        refused=answer["refused"],
        next_token=None,
        confirmation_token=None,
    )


PIECES = (
    "If everything finishes within about a second, the response is 200 with the result. Otherwise the response is 202, "
    "and a bulk operation does the rest in the background and continues after crashes. Repeating the request with the "
    f"same idempotency key returns the same operation. With `limit` or `dry_run`, one piece of at most {MAX_EXAMINED} "
    "tasks is processed or counted: repeat the request with the response's `next_token` until `next_token` is null."
)
"""Description of how requests with a filter are processed."""
_OPEN_TASKS = f"{PIECES} Repeating a piece does no harm. Tasks that have ended are skipped."


def filter_action(id_: str, route: str, summary: str, description: str, body: type[Body]) -> Operation:
    """Declares an operation on all tasks, or schedules, that match a filter."""
    return Operation(
        id_,
        route,
        summary,
        Returns(FilterActionResult, "The result."),
        description=description,
        accepted=Returns(
            BulkOperationResponse,
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
    "Retries each task like `retryTask`, starting with the first attempt and the full retry policy. A task that fails "
    f"again matches again when a piece is repeated. {PIECES}",
    bodies.BulkRetry,
)
DELETE_MANY = filter_action(
    "deleteTasksByFilter",
    "POST /v1/tasks/delete",
    "Delete all ended tasks that match a filter",
    "Deletes each task like `deleteTask`, with its payload, result and attempts. Topologies are deleted with their "
    "nodes. A deletion cannot be undone. `refused` counts the tasks that cannot be deleted now, which are topology "
    f"nodes and tasks whose follow-up work is not done. {PIECES}",
    bodies.BulkDelete,
)
LIST = Operation(
    "listBulkOperations",
    "GET /v1/bulk-operations",
    "List bulk operations",
    Returns(BulkOperationList, "The operations."),
    description=f"The latest {MAX_BULK_PAGE} operations, newest first. An ended operation is kept for "
    f"{BULK_RETENTION // DAY} days.",
)
READ = Operation(
    "getBulkOperation",
    "GET /v1/bulk-operations/{operation_id}",
    "Get a bulk operation",
    Returns(BulkOperationResponse, "The operation."),
    description="The operation with its progress. Counts are exact unless the function that runs the operation "
    "crashes, in which case the current page's tasks may be counted twice or not counted.",
)
CANCEL = Operation(
    "cancelBulkOperation",
    "POST /v1/bulk-operations/{operation_id}/cancel",
    "Cancel a bulk operation",
    Returns(BulkOperationResponse, "The cancelled operation."),
    description="Changes made so far are kept, and a few more tasks can change in the next few seconds. Repeating the "
    "request changes nothing. An operation on topology nodes cannot be cancelled: send the topology another request "
    "instead, such as `resumeTopology`.",
    body=operations.EmptyRequest,
    errors=(for_bulk.BulkEnded, for_bulk.BulkOfTopology),
)
