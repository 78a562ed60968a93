"""Request bodies of actions by filter, with their decoding, and the confirmation token of a dry run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field

from duetime.contract.http import page_tokens, request_json
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid, ParametersInvalid
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.tasks.bodies import TaskPatch
from duetime.contract.tasks.fields import Reason, Tags
from duetime.contract.tasks.queries import (
    FinishedAfter,
    FinishedBefore,
    States,
    TaskConditions,
    WantedErrorType,
    WantedSchedule,
)
from duetime.contract.tasks.updates import update_of
from duetime.domain.bulk import BulkKind, BulkRequest, FilterAction
from duetime.domain.limits import MAX_BULK_PACE, MAX_JSON_DEPTH, MAX_PAGE, MIN_BULK_PACE
from duetime.domain.tasks.action_history import Attribution
from duetime.domain.tasks.filters import Range, TaskFilter
from duetime.domain.tasks.states import TERMINAL, State

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.ids import TaskId
    from duetime.domain.times import Millis


WRAPPED = 1
"""Nesting levels around the update in a request body."""


def _as_filter(schema: dict[str, Any]) -> None:
    """Makes times optional but not nullable in the schema."""
    for field in schema["properties"].values():
        if field.get("format") == "date-time":
            field.pop("default", None)


class Conditions(TaskConditions):
    """Filter conditions, which are the same as the query parameters of a list."""

    model_config = ConfigDict(json_schema_extra=_as_filter)

    tags: Annotated[Tags, Field(description="Only tasks that have all of these tags.")] = Field(default_factory=dict)
    error_type: WantedErrorType = None
    schedule: WantedSchedule = None

    @property
    def task_filter(self) -> TaskFilter:
        """The filter that these fields describe."""
        return replace(self.conditions, tags=self.tags, error_type=self.error_type, schedule=self.schedule)

    @property
    def is_empty(self) -> bool:
        """Whether the filter has no conditions."""
        return self.task_filter == TaskFilter()


class OpenTaskFilter(Conditions):
    """A filter for tasks that have not ended; a task must meet all conditions."""

    state: Annotated[States, Field(description="Only tasks in this state, or in any of these states.")] = ()

    @property
    def task_filter(self) -> TaskFilter:
        """The filter that these fields describe."""
        return replace(super().task_filter, states=self.state)


class FailedTaskFilter(Conditions):
    """A filter for failed tasks; a task must meet all conditions."""

    finished_after: FinishedAfter = None
    finished_before: FinishedBefore = None

    @property
    def task_filter(self) -> TaskFilter:
        """The filter that these fields describe, always limited to failed tasks."""
        finished = Range(self.finished_after, self.finished_before)
        return replace(super().task_filter, states=(State.FAILED,), finished=finished)

    @property
    def is_empty(self) -> bool:
        """Whether the filter matches every failed task."""
        return self.task_filter == TaskFilter(states=(State.FAILED,))


class EndedTaskFilter(FailedTaskFilter):
    """A filter for tasks that have ended; a task must meet all conditions."""

    state: Annotated[
        States,
        Field(
            description="Only tasks in this final state, or in any of these final states. If left out, tasks in any "
            "final state."
        ),
    ] = ()

    @property
    def task_filter(self) -> TaskFilter:
        """The filter that these fields describe, always limited to final states."""
        return replace(super().task_filter, states=self.state or _FINAL)

    @property
    def is_empty(self) -> bool:
        """Whether the filter matches every ended task."""
        return self.task_filter == TaskFilter(states=_FINAL)


_FINAL = tuple(sorted(TERMINAL))
UPDATE = "update"
CONFIRMATION = "confirmation_token"
S = TypeVar("S", bound="FilterActionBody")


class FilterActionBody(Body):
    """Selects the caller's tasks and limits the pace of the action."""

    filter: Annotated[Conditions, Field(description="The tasks to act on; an empty filter needs `all: true`.")]
    all: Annotated[bool, Field(description="Confirms an empty filter, which matches every task.")] = False
    order: Annotated[
        Literal["asc", "desc"], Field(description="Order by due time: earliest first (`asc`) or latest first (`desc`).")
    ] = "desc"
    limit: Annotated[
        int | None,
        Field(
            ge=1,
            le=MAX_PAGE,
            description="Process only one page of at most this many tasks and return a token; null for all tasks.",
        ),
    ] = None
    per_second: Annotated[
        float | None,
        Field(
            ge=MIN_BULK_PACE,
            le=MAX_BULK_PACE,
            description="Maximum number of tasks per second; null for no limit.",
        ),
    ] = None
    reason: Reason = ""
    dry_run: Annotated[bool, Field(description="Whether to only count the matching tasks, without changing any.")] = (
        False
    )
    next_token: Annotated[
        str | None,
        Field(description="`next_token` from the previous response. The filter and the order must be the same."),
    ] = None
    confirmation_token: Annotated[
        str | None,
        Field(
            description="Token from a dry run with the same filter and action. Tasks that were created or ended after "
            "the dry run are excluded. Null to act on all tasks that match the filter."
        ),
    ] = None


class OpenTasksActionBody(FilterActionBody):
    """Selects the caller's open tasks."""

    filter: Annotated[OpenTaskFilter, Field(description="The tasks to act on; an empty filter needs `all: true`.")]


class BulkCancel(OpenTasksActionBody):
    """Cancels the tasks that match a filter."""

    force: Annotated[
        bool, Field(description="Whether running tasks are also asked to stop, at their next opportunity.")
    ] = False


class BulkUpdate(OpenTasksActionBody):
    """Updates the tasks that match a filter."""

    update: Annotated[TaskPatch, Field(description="The fields to change, as in an update of one task.")]


class BulkRetry(FilterActionBody):
    """Retries the failed tasks that match a filter."""

    filter: Annotated[
        FailedTaskFilter, Field(description="The failed tasks to retry; an empty filter needs `all: true`.")
    ]


class BulkDelete(FilterActionBody):
    """Deletes the ended tasks that match a filter."""

    filter: Annotated[
        EndedTaskFilter, Field(description="The ended tasks to delete; an empty filter needs `all: true`.")
    ]


def read_filter_action(model: type[S], document: Document) -> S:
    """Decodes the body of a request.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(model, document)
    _reject_unclear(body)
    return body


def request_of(body: FilterActionBody, scope: str, text: bytes, until: Millis | None) -> BulkRequest:
    """Converts a body into a request.

    Args:
        body: the request.
        scope: scope of the request's token, as returned by `scope_of`.
        text: the original body.
        until: tasks that were created or ended later are excluded.

    Raises:
        FieldsInvalid: the token belongs to another request, or fields of the update contradict each other.
    """
    return _request_of(body, _after(body.next_token, scope), text, until)


def read_stored(kind: BulkKind, text: bytes) -> BulkRequest:
    """Decodes the stored body of an accepted request."""
    body = read_filter_action(_MODELS[kind], request_json.read(text.decode(), depth=MAX_JSON_DEPTH + WRAPPED))
    # The body was validated when the request was accepted.
    until = None if body.confirmation_token is None else int(page_tokens.unchecked_text(body.confirmation_token))
    return _request_of(body, None, text, until)


def kind_of(body: FilterActionBody) -> BulkKind:
    """The kind of operation."""
    return next(kind for kind, model in _MODELS.items() if isinstance(body, model))


def is_forced(body: FilterActionBody) -> bool:
    """Whether the request also stops running tasks."""
    return isinstance(body, BulkCancel) and body.force


def is_piece(body: FilterActionBody) -> bool:
    """Whether the request processes or counts only one piece, without starting a bulk operation."""
    return body.dry_run or body.limit is not None


def _request_of(body: FilterActionBody, after: TaskId | None, text: bytes, until: Millis | None) -> BulkRequest:
    action = FilterAction(
        wanted=body.filter.task_filter,
        after=after,
        descending=body.order == "desc",
        limit=MAX_PAGE if body.limit is None else body.limit,
        per_second=body.per_second,
        is_dry=body.dry_run,
        until=until,
    )
    update = update_of(body.update, (UPDATE,)) if isinstance(body, BulkUpdate) else None
    by = Attribution(reason=body.reason)
    return BulkRequest(kind_of(body), action, text, is_forced(body), update, by)


_MODELS: Mapping[BulkKind, type[FilterActionBody]] = {
    BulkKind.CANCEL: BulkCancel,
    BulkKind.UPDATE: BulkUpdate,
    BulkKind.RETRY: BulkRetry,
    BulkKind.DELETE: BulkDelete,
}


def scope_of(body: FilterActionBody, owner: str) -> str:
    """The scope of a token, which consists of the kind of operation, the owner, the order and the filter."""
    return repr((owner, type(body).__name__, body.order, body.filter.task_filter))


def _reject_unclear(body: FilterActionBody) -> None:
    """Rejects empty filters without confirmation, and contradictory fields."""
    if "tags" in body.filter.model_fields_set and not body.filter.tags:
        # Empty tags may be a client's mistake, and would match more tasks than intended.
        raise _refused("filter.tags", "is empty: give a tag, or leave it out", FaultCode.TOO_SHORT)
    is_empty = body.filter.is_empty
    if is_empty and not body.all:
        raise _refused("filter", "is empty: give a condition, or set all: true", FaultCode.REQUIRED)
    if body.all and not is_empty:
        raise _refused("all", "cannot be given together with a condition", FaultCode.CONFLICT)
    if body.limit is not None and body.per_second is not None and not body.dry_run:
        reason = "cannot be given together with per_second"
        raise _refused("limit", reason, FaultCode.CONFLICT)
    if isinstance(body.filter, OpenTaskFilter) and not TERMINAL.isdisjoint(body.filter.state):
        reason = "is a final state: such tasks can be neither cancelled nor updated"
        raise _refused("filter.state", reason, FaultCode.NOT_ALLOWED)
    if isinstance(body.filter, EndedTaskFilter) and not TERMINAL.issuperset(body.filter.state):
        reason = "is not a final state: cancel such tasks first"
        raise _refused("filter.state", reason, FaultCode.NOT_ALLOWED)


def _refused(field: str, reason: str, code: FaultCode) -> FieldsInvalid:
    return FieldsInvalid([Fault(field, reason, code)])


def _after(token: str | None, scope: str) -> TaskId | None:
    try:
        return None if token is None else page_tokens.after_of(token, scope)
    except ParametersInvalid as refusal:
        raise FieldsInvalid(refusal.faults) from None


def confirmation_token(body: FilterActionBody, owner: str, deployment: str, until: Millis) -> str:
    """The token of a dry run at the given time.

    Args:
        body: body of the dry run.
        owner: owner of the tasks.
        deployment: name of the deployment's table, because a token is valid for only one deployment.
        until: time of the dry run.
    """
    return page_tokens.text_token(str(until), _scope(body, owner, deployment))


def confirmed_until(body: FilterActionBody, owner: str, deployment: str, now: Millis) -> Millis | None:
    """The time of the dry run, which excludes tasks that were created or ended later; `None` for no time limit.

    A dry run's first piece uses the current time. Later pieces of the dry run must send the token that the first piece
    returned, so that all pieces count up to the same time.

    Raises:
        FieldsInvalid: the token belongs to another deployment, owner, filter or action.
    """
    if body.confirmation_token is None:
        return now if body.dry_run and body.next_token is None else None
    try:
        return int(page_tokens.text_after(body.confirmation_token, _scope(body, owner, deployment)))
    except (ParametersInvalid, ValueError):
        # The token's check value is not a secret, because anyone can compute it for any content.
        reason = "does not belong to this deployment, filter and action: repeat the dry run"
        raise FieldsInvalid([Fault(CONFIRMATION, reason, FaultCode.CONFLICT)]) from None


def _scope(body: FilterActionBody, owner: str, deployment: str) -> str:
    """The content of a request that a dry run confirms, which excludes pace and order."""
    update = body.update.model_dump(mode="json", exclude_unset=True) if isinstance(body, BulkUpdate) else None
    wanted = body.filter.model_dump(mode="json")
    return json.dumps([CONFIRMATION, deployment, owner, kind_of(body), is_forced(body), wanted, update], sort_keys=True)
