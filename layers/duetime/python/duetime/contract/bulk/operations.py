"""Bulk operations over REST: what they look like, and the operations on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - pydantic reads the annotations when a class is made
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http import routes
from duetime.contract.http.operation import OWNED, OWNER, READ_BODY, Operation
from duetime.contract.http.problems import code_of
from duetime.contract.tasks import attempt_bodies
from duetime.contract.tasks.encoding import instant
from duetime.contract.tasks.responses import Instant  # noqa: TC001 - pydantic reads the annotations
from duetime.domain import errors
from duetime.domain.bulk.operation import BulkKind, BulkState
from duetime.domain.limits import BULK_RETENTION, MAX_BULK_PAGE
from duetime.domain.times import DAY, to_iso

if TYPE_CHECKING:
    from duetime.domain.bulk.operation import BulkOperation

LOCATION = {"Location": "Path of the bulk operation."}


class BulkResponse(TypedDict):
    """A bulk operation, and how far it has come."""

    id: str
    kind: Annotated[
        BulkKind,
        Field(description="What is done with each task; `end`: what is left of a topology is brought to an end."),
    ]
    state: BulkState
    topology_id: Annotated[
        str | None, Field(description="Whose nodes are meant; null if a filter says which tasks are.")
    ]
    created_at: Instant
    created_by: Annotated[str | None, Field(description="The owner who asked; null if nobody did.")]
    ended_at: Instant | None
    examined: Annotated[int, Field(description="Tasks that were read.")]
    matched: Annotated[int, Field(description="Of those, tasks that are meant and can still be acted on.")]
    changed: Annotated[int, Field(description="Of those, tasks that were acted on.")]
    refused: Annotated[
        Mapping[str, int], Field(description="Of those, tasks that could not be, by the code of the problem.")
    ]
    reason: Annotated[str | None, Field(description="Why it was cancelled, if not by a request to do so.")]


class BulkPage(TypedDict):
    """The latest bulk operations of an owner."""

    operations: Sequence[BulkResponse]


def bulk_response(operation: BulkOperation) -> BulkResponse:
    """An operation as it stands."""
    progress = operation.progress
    refused: dict[str, int] = {}
    for name, count in progress.refused.items():
        refused[code_of(name)] = refused.get(code_of(name), 0) + count
    return BulkResponse(
        id=operation.id.text,
        kind=operation.kind,
        state=operation.state,
        topology_id=None if operation.topology is None else operation.topology.text,
        created_at=to_iso(operation.created_at),
        created_by=None if operation.kind is BulkKind.END else operation.owner,
        ended_at=instant(operation.ended_at),
        examined=progress.examined,
        matched=progress.matched,
        changed=progress.changed,
        refused=refused,
        reason=operation.reason or None,
    )


BULK_OPERATIONS = (
    Operation(
        id="listBulkOperations",
        method="GET",
        path=routes.BULK_OPERATIONS,
        summary="List one's bulk operations",
        description=f"The latest {MAX_BULK_PAGE}, newest first. One that has ended can be read for "
        f"{BULK_RETENTION // DAY} days.",
        tag="bulk operations",
        answer=BulkPage,
        answer_description="The operations.",
        headers=(OWNER,),
        refusals=OWNED,
    ),
    Operation(
        id="getBulkOperation",
        method="GET",
        path=routes.BULK_OPERATION,
        summary="See how far a bulk operation is",
        description="Counts are exact unless whoever carries it out crashes: tasks of the page that it was at may then "
        "be counted twice, or not.",
        tag="bulk operations",
        answer=BulkResponse,
        answer_description="The operation.",
        headers=(OWNER,),
        refusals=(*OWNED, errors.BulkNotFound),
    ),
    Operation(
        id="cancelBulkOperation",
        method="POST",
        path=routes.BULK_OPERATION_CANCEL,
        summary="Stop a bulk operation",
        description="What it has done stays done; tasks that it is at may still be changed for some seconds. Stopping "
        "it again changes nothing. One on a topology is stopped by asking the topology for something else.",
        tag="bulk operations",
        body=attempt_bodies.NoFields,
        answer=BulkResponse,
        answer_description="The operation as it was stopped.",
        headers=(OWNER,),
        refusals=(*OWNED, *READ_BODY, errors.BulkNotFound, errors.BulkEnded, errors.BulkOfTopology),
    ),
)
