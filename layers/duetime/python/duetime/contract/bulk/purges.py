"""The REST API for purges: request bodies, responses and receipts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.archive import archived_task
from duetime.contract.bulk.bodies import Conditions
from duetime.contract.bulk.operations import BulkOperationResponse, bulk_response
from duetime.contract.http import request_json
from duetime.contract.http.operation import Operation, Returns
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.tasks.fields import OWNER_PATTERN, Reason
from duetime.contract.tasks.queries import FinishedAfter, FinishedBefore, States
from duetime.contract.tasks.responses import Instant
from duetime.domain import errors
from duetime.domain.bulk import LeftData, PurgeRequest, Removed, leftovers
from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.limits import MAX_BATCH, MAX_BULK_PACE, MAX_JSON_DEPTH, MIN_BULK_PACE, PURGE_RETENTION
from duetime.domain.tasks.action_history import Attribution
from duetime.domain.tasks.filters import Range, TaskFilter
from duetime.domain.times import DAY, to_iso

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.bulk import BulkOperation
    from duetime.domain.times import Millis

NESTING = 1
"""Nesting levels around a filter in a request body."""


class PurgeFilter(Conditions):
    """A filter for tasks in any state; a task must meet all conditions."""

    state: Annotated[States, Field(description="Only tasks in this state, or in any of these states.")] = ()
    finished_after: FinishedAfter = None
    finished_before: FinishedBefore = None

    @property
    def task_filter(self) -> TaskFilter:
        """The filter that these fields describe."""
        finished = Range(self.finished_after, self.finished_before)
        return replace(super().task_filter, states=self.state, finished=finished)


class PurgeCreate(Body):
    """Selects what to purge, with exactly one of `task_ids`, `filter` and `all`."""

    task_ids: Annotated[
        Sequence[str] | None,
        Field(
            min_length=1,
            max_length=MAX_BATCH,
            description="Ids of the tasks to purge.",
            examples=[["01M7XZ8CGJ0013P2ZBN3YDT3DX"]],
        ),
    ] = None
    filter: Annotated[
        PurgeFilter | None, Field(description="Purges all matching tasks; needs at least one condition.")
    ] = None
    all: Annotated[
        bool,
        Field(
            description="Purges everything that the owner has: tasks, groups, schedules, calendars, topology "
            "definitions, type defaults, settings of rates, and the owner's switch."
        ),
    ] = False
    owner: Annotated[
        str | None,
        Field(
            pattern=f"^{OWNER_PATTERN}$",
            description="Owner whose data is purged; null for the caller. Only operators can name another owner.",
        ),
    ] = None
    open_tasks: Annotated[
        Literal["refuse", "cancel"],
        Field(
            description="How to treat tasks that have not ended: `refuse` leaves them and counts them in `refused`; "
            "`cancel` cancels them, asks running tasks to stop, and waits up to a day for their end."
        ),
    ] = "refuse"
    per_second: Annotated[
        float | None,
        Field(
            ge=MIN_BULK_PACE,
            le=MAX_BULK_PACE,
            description="Maximum number of tasks per second; null for no limit.",
        ),
    ] = None
    reason: Reason = ""


class PurgeLeftover(TypedDict):
    """Data that a purge cannot remove at once."""

    kind: Annotated[
        LeftData,
        Field(
            description="`records`: records of purged tasks with id, owner, type, state and times, but no user data. "
            "`keys`: idempotency keys with a hash of the body, unique and ordered keys, and keys of locks and rates. "
            "`signals`: signals with their payloads, and event keys. `names`: names of deleted schedules, calendars "
            "and definitions. `stream`: expired records that are not archived yet, so purge again after this time. "
            "`backups`: the table's backups for point-in-time recovery."
        ),
    ]
    until: Annotated[Instant, Field(description="When the last data of this kind is removed.")]


class PurgeReceipt(TypedDict):
    """The results of a purge, and the data that is left."""

    owner: Annotated[str, Field(description="The owner whose data was purged.")]
    removed: Annotated[Mapping[Removed, int], Field(description="How much data was removed, by kind.")]
    left: Annotated[
        Sequence[PurgeLeftover],
        Field(description="Data that is left, with its expiry; empty until the purge ends."),
    ]


class PurgeResponse(BulkOperationResponse):
    """A purge and its progress."""

    receipt: PurgeReceipt


def purge_response(operation: BulkOperation, retention: Millis, *, is_archived: bool) -> PurgeResponse:
    """The response for a purge.

    Args:
        operation: the purge's bulk operation.
        retention: how long ended tasks are kept, in milliseconds.
        is_archived: whether the deployment has an archive.
    """
    ended_at = operation.finished_at
    left = () if ended_at is None else leftovers(ended_at, retention, is_archived=is_archived)
    receipt = PurgeReceipt(
        owner=operation.subject or operation.owner,
        removed={Removed(kind): count for kind, count in operation.progress.removed.items()},
        left=[PurgeLeftover(kind=each.kind, until=to_iso(each.until)) for each in left],
    )
    return PurgeResponse(**bulk_response(operation), receipt=receipt)


def purge_of(document: Document, caller: str) -> PurgeRequest:
    """Decodes the body of a request.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(PurgeCreate, document)
    chosen = [name for name in ("task_ids", "filter", "all") if getattr(body, name)]
    if len(chosen) != 1:
        reason = "cannot be given together with another selection" if chosen else "is missing: give it, filter or all"
        raise _refused(
            chosen[-1] if chosen else "task_ids", reason, FaultCode.CONFLICT if chosen else FaultCode.REQUIRED
        )
    if body.filter is not None and body.filter.is_empty:
        raise _refused("filter", "is empty: give a condition, or set all: true", FaultCode.REQUIRED)
    return PurgeRequest(
        owner=body.owner or caller,
        task_ids=tuple(_task_id(number, text) for number, text in enumerate(body.task_ids or ())),
        wanted=TaskFilter() if body.filter is None else body.filter.task_filter,
        is_whole=body.all,
        cancels=body.open_tasks == "cancel",
        per_second=body.per_second,
        by=Attribution(reason=body.reason),
    )


class PurgeBodies:
    """`duetime.ports.stores.PurgeRequestReader`."""

    def __call__(self, text: bytes, owner: str) -> PurgeRequest:
        """Decodes the stored body of an accepted request to purge an owner's data."""
        return purge_of(request_json.read(text.decode(), depth=MAX_JSON_DEPTH + NESTING), owner)

    def is_meant(self, request: PurgeRequest, line: str) -> bool:
        """Whether a purge removes a line from the archive; an unreadable line is kept."""
        if json.dumps(request.owner) not in line:
            # Most lines belong to other owners, so they need not be parsed.
            return False
        task = archived_task(line)
        if task is None or task.owner != request.owner:
            return False
        return task.id in request.task_ids if request.task_ids else request.wanted.matches(task)


def _task_id(number: int, text: str) -> TaskId:
    try:
        return TaskId.parse(text.upper() if text.isascii() else text)
    except InvalidTaskId:
        raise _refused(f"task_ids[{number}]", "should be a task id", FaultCode.PATTERN) from None


def _refused(field: str, reason: str, code: FaultCode) -> FieldsInvalid:
    return FieldsInvalid([Fault(field, reason, code)])


CREATE = Operation(
    "createPurge",
    "POST /v1/purges",
    "Purge tasks, or everything that an owner has",
    Returns(PurgeResponse, "The purge.", {"Location": "Path of the purge."}, status=202),
    description="Removes records, payloads, results, attempts, topology nodes, list entries, unique keys and archive "
    "rows. A purge cannot be undone. A bulk operation of the kind `purge` runs in the background and continues after "
    "crashes. Repeating the request does no harm. The purge's receipt lists what was removed, and what is left and "
    f"until when. The receipt is kept for {PURGE_RETENTION // DAY} days.",
    body=PurgeCreate,
    nesting=NESTING,
    errors=(errors.OperatorRequired,),
)
READ = Operation(
    "getPurge",
    "GET /v1/purges/{operation_id}",
    "Get a purge with its receipt",
    Returns(PurgeResponse, "The purge."),
    description="Only the owner who requested the purge can read it. A purge can be cancelled in the same way as "
    "other bulk operations.",
)
