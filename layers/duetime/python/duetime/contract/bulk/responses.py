"""Responses of bulk operations, and of actions by filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.http import page_tokens
from duetime.contract.http.problems import KINDS, code_of
from duetime.contract.mapping import response_of
from duetime.contract.tasks.responses import Instant
from duetime.domain.bulk.operation import BulkKind, BulkState

if TYPE_CHECKING:
    from duetime.domain.bulk.operation import BulkOperation, FilterResult


class BulkOperationResponse(TypedDict):
    """A bulk operation and its progress."""

    id: str
    kind: Annotated[
        BulkKind,
        Field(
            description="The action on each task, or without a topology on each schedule: `pause`, `resume`. "
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
        str | None, Field(description="The owner who requested it; null for `end`, which nobody requests.")
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
