"""Bulk operations over REST: responses, and operations that start, show and cancel them."""

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
            description="What is done to each task. `pause` and `resume` act on schedules if there is no topology. "
            "`end` finishes the rest of a topology, `delete` deletes the nodes of a deleted one, `signal` wakes tasks "
            "that wait for an event."
        ),
    ]
    state: BulkState
    topology_id: Annotated[
        str | None, Field(description="The topology whose nodes it concerns; null for an operation by filter.")
    ]
    created_at: Instant
    created_by: Annotated[
        str | None, Field(description="The owner who requested it; null for `end`, which the system starts.")
    ]
    finished_at: Instant | None
    examined: Annotated[int, Field(description="How many tasks or schedules were read.")]
    matched: Annotated[int, Field(description="How many of those match and can still be acted on.")]
    affected: Annotated[int, Field(description="How many of those were acted on.")]
    refused: Annotated[Mapping[str, int], Field(description="How many could not be acted on, by problem code.")]
    reason: Annotated[str | None, Field(description="Why it was cancelled, if not by a request.")]


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
    """The result of an action by filter."""

    examined: Annotated[int, Field(description="How many tasks or schedules were read.")]
    matched: Annotated[int, Field(description="How many of those match and can still be acted on.")]
    affected: Annotated[int, Field(description="How many of those were updated, cancelled, asked to stop, or retried.")]
    refused: Annotated[Mapping[str, int], Field(description="How many could not be acted on, by problem code.")]
    next_token: Annotated[str | None, Field(description="Continues where this request stopped; null at the end.")]
    confirmation_token: Annotated[
        str | None,
        Field(
            description="Returned by a dry run: a request with it acts only on counted tasks, not on tasks that "
            "were created later. Further pieces of the dry run need it, too. Null if nothing was counted."
        ),
    ]


def filter_action_response(swept: FilterResult, scope: str, confirmation: str | None = None) -> FilterActionResult:
    """The response for one piece, with the token of the next one, and for a dry run the confirmation token."""
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
    "If all of it can be done within about a second, the response is 200 with the result. Otherwise it is 202, "
    "and a bulk operation does the rest in the background; it survives crashes. Repeating the request with the same "
    f"idempotency key returns the same operation. With `limit` or `dry_run`, one piece of at most {MAX_EXAMINED} tasks "
    "is processed or counted: repeat the request with the `next_token` of the response until that is null."
)
"""Describes how requests with a filter are processed."""
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
    Returns(BulkOperationList, "The operations."),
    description=f"The latest {MAX_BULK_PAGE}, newest first. An operation that has ended is kept for "
    f"{BULK_RETENTION // DAY} days.",
)
READ = Operation(
    "getBulkOperation",
    "GET /v1/bulk-operations/{operation_id}",
    "Get a bulk operation",
    Returns(BulkOperationResponse, "The operation."),
    description="With its progress. Counts are exact unless the function that carries it out crashes: the tasks of "
    "its current page may then be counted twice, or not at all.",
)
CANCEL = Operation(
    "cancelBulkOperation",
    "POST /v1/bulk-operations/{operation_id}/cancel",
    "Cancel a bulk operation",
    Returns(BulkOperationResponse, "The cancelled operation."),
    description="What it has done stays done, and some more tasks may still be changed for a few seconds. Repeating "
    "the request changes nothing. An operation on the nodes of a topology cannot be cancelled: send the topology "
    "another request, such as to resume, instead.",
    body=operations.EmptyRequest,
    errors=(for_bulk.BulkEnded, for_bulk.BulkOfTopology),
)
