"""The REST API for groups: ids in paths, bodies, queries, responses and operations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.bulk.operations import BulkOperationResponse, FilterActionResult
from duetime.contract.http.operation import KEY, TRACEPARENT, Operation, Parameters, Returns
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import matching_parameter, read_body
from duetime.contract.tasks.bodies import TaskCreate, without_uniqueness
from duetime.contract.tasks.decoding import spec_of
from duetime.contract.tasks.encoding import instant
from duetime.contract.tasks.field_decoding import reject_uniqueness
from duetime.contract.tasks.fields import GROUP_ID_PATTERN
from duetime.contract.tasks.operations import TaskAction
from duetime.contract.tasks.queries import PageSize, WaitSeconds
from duetime.contract.tasks.responses import Instant
from duetime.contract.tasks.target_fields import CallbackUrl
from duetime.domain import errors
from duetime.domain.errors import GroupClosed, GroupNotFound
from duetime.domain.groups import GroupState
from duetime.domain.limits import (
    GROUP_LIFE,
    MAX_BULK_PACE,
    MAX_COUNTED_OPEN,
    MAX_PAGE,
    MAX_WAIT_SECONDS,
    MIN_BULK_PACE,
)
from duetime.domain.tasks.notices import CALLBACK_RETRY
from duetime.domain.tasks.targets import HttpTarget
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import DAY, to_iso
from duetime.domain.topologies.trigger_rules import TriggerRule
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.groups import Group, GroupStatus

CALLBACK_TYPE = "duetime.group_callback"
"""Type of the task that reports a group's completion to a callback URL."""
ON_COMPLETE = "on_complete"
_PLACE = (ON_COMPLETE, "task")
_ID = re.compile(GROUP_ID_PATTERN)


def _as_completion(schema: dict[str, Any]) -> None:
    """Removes the due time from the schema, because the task is due when the group completes."""
    for name in ("due_at", "delay_seconds"):
        schema["properties"].pop(name)
    without_uniqueness(schema)
    schema["properties"]["target"].pop("default")


class CompletionTask(TaskCreate):
    """The task that runs once a group is complete, without a due time."""

    model_config = ConfigDict(json_schema_extra=_as_completion)


class OnComplete(Body):
    """The task that runs, or the URL that is called, after all members of a group have ended."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["task"]}, {"required": ["callback_url"]}]})

    task: Annotated[
        CompletionTask | None,
        Field(
            description="The task to run. Its handler or target gets `inputs.group` with `id`, `total` and `counts`."
        ),
    ] = None
    callback_url: Annotated[
        CallbackUrl | None,
        Field(description="A URL to call, like the target of an `http` task, with `inputs.group`."),
    ] = None
    rule: Annotated[
        Literal["all_done", "all_success", "none_failed", "one_success", "one_failed"],
        Field(
            description="How the members must end for the task to run, as for a topology node and its parents. If the "
            "members end differently, the task is cancelled. For an empty group, the task always runs."
        ),
    ] = "all_done"


class GroupClose(Body):
    """Closes a group."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"on_complete": {"task": {"type": "report"}, "rule": "all_success"}}]}
    )

    on_complete: Annotated[
        OnComplete | None, Field(description="What happens after all members have ended; null if nothing happens.")
    ] = None


class GroupRetry(TaskAction):
    """Retries the failed members of a group; the body can be left out."""

    per_second: Annotated[
        float | None,
        Field(
            ge=MIN_BULK_PACE, le=MAX_BULK_PACE, description="Maximum number of members per second; null for no limit."
        ),
    ] = None


class GroupCancel(GroupRetry):
    """Cancels the members of a group that have not ended; the body can be left out."""

    force: Annotated[
        bool, Field(description="Whether running tasks are also asked to stop, at their next opportunity.")
    ] = False


@frozen
class Closing:
    """A decoded request to close a group.

    Attributes:
        spec: the task that runs once the group is complete; `None` if there is none.
        rule: how the members must end for the task to run.
    """

    spec: TaskSpec | None
    rule: TriggerRule


def group_id(text: str) -> str:
    """Parses the id in a path.

    Raises:
        GroupNotFound: the text cannot be an id.
    """
    if _ID.fullmatch(text) is None:
        raise GroupNotFound(text)
    return text


def new_group_id(text: str) -> str:
    """Parses the id in the path of a PUT.

    Raises:
        ParametersInvalid: the text cannot be an id.
    """
    return matching_parameter(text, GROUP_ID_PATTERN, "group_id")


def closing_of(document: Document, id_: str) -> Closing:
    """Decodes a request to close a group.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(GroupClose, document).on_complete
    if body is None:
        return Closing(None, TriggerRule.ALL_DONE)
    rule = TriggerRule(body.rule)
    if body.task is None and body.callback_url is None:
        raise FieldsInvalid([Fault(f"{ON_COMPLETE}.task", "is required without callback_url", FaultCode.REQUIRED)])
    if body.task is not None and body.callback_url is not None:
        reason = "cannot be given together with task"
        raise FieldsInvalid([Fault(f"{ON_COMPLETE}.callback_url", reason, FaultCode.CONFLICT)])
    if body.task is None:
        target = HttpTarget(body.callback_url or "")
        return Closing(TaskSpec(CALLBACK_TYPE, target=target, retry=CALLBACK_RETRY, name=id_), rule)
    if given := [name for name in ("due_at", "delay_seconds") if name in body.task.model_fields_set]:
        reason = "is not allowed: the task is due when the group is complete"
        raise FieldsInvalid(Fault(f"{ON_COMPLETE}.task.{name}", reason, FaultCode.NOT_ALLOWED) for name in given)
    reject_uniqueness(body.task, _PLACE, "is not allowed: the group has one such task")
    return Closing(spec_of(body.task, _PLACE), rule)


class GroupCompletionResponse(TypedDict):
    """What happens after all members of a group have ended."""

    task_id: Annotated[str, Field(description="Id of the task that runs.")]
    rule: TriggerRule


class GroupSummary(TypedDict):
    """A group, as shown in lists."""

    id: str
    state: Annotated[
        GroupState,
        Field(
            description="`open`: tasks may join. `closed`: no more tasks may join, and some members have not ended. "
            "`completed`: closed, and all members have ended."
        ),
    ]
    created_at: Instant
    closed_at: Annotated[Instant | None, Field(description="When the group was closed; null while the group is open.")]
    completed_at: Annotated[
        Instant | None, Field(description="When the group's completion was detected; null until then.")
    ]
    on_complete: GroupCompletionResponse | None


class GroupResponse(GroupSummary):
    """A group with its member counts."""

    total: Annotated[int, Field(description="Number of members.")]
    ended: Annotated[int, Field(description="Number of members that have ended.")]
    counts: Annotated[
        Mapping[str, int],
        Field(
            description=f"Number of members by state. If more than {MAX_COUNTED_OPEN} members have not ended, "
            "they are counted as `open`."
        ),
    ]
    progress: Annotated[
        int, Field(description="Percentage of members that have ended, rounded down; 0 if the group has no members.")
    ]


class GroupPage(TypedDict):
    """A page of groups."""

    groups: Annotated[list[GroupSummary], Field(description="The groups, by id.")]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


class GroupQuery(Parameters):
    """Parameters of `GET /v1/groups/{group_id}`."""

    wait_seconds: Annotated[
        WaitSeconds,
        Field(description="How long to wait for the group to complete, in seconds."),
    ] = 0


class GroupListQuery(Parameters):
    """Parameters of `GET /v1/groups`."""

    limit: Annotated[PageSize, Field(description="Maximum number of groups on a page.")] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="`next_token` from the previous page.")] = None


def group_summary(group: Group) -> GroupSummary:
    """The response for a group in a list."""
    completion = None
    if group.completion is not None:
        completion = GroupCompletionResponse(task_id=group.completion.text, rule=group.rule)
    return GroupSummary(
        id=group.id,
        state=group.state,
        created_at=to_iso(group.created_at),
        closed_at=instant(group.closed_at),
        completed_at=instant(group.completed_at),
        on_complete=completion,
    )


def group_response(status: GroupStatus) -> GroupResponse:
    """The response for a group with its counts."""
    return GroupResponse(
        **group_summary(status.group),
        total=status.total,
        ended=status.ended,
        counts=dict(sorted(status.counts.items())),
        progress=100 * status.ended // status.total if status.total else 0,
    )


_DAYS = GROUP_LIFE // DAY
LIST = Operation(
    "listGroups",
    "GET /v1/groups",
    "List groups",
    Returns(GroupPage, "A page of groups."),
    description="Your groups, ordered by id, without counts.",
    query=GroupListQuery,
)
READ = Operation(
    "getGroup",
    "GET /v1/groups/{group_id}",
    "Get a group",
    Returns(GroupResponse, "The group."),
    description="The group with the number of members by state. With `wait_seconds` (at most "
    f"{MAX_WAIT_SECONDS}), the response is sent when the group completes, or after that time. A completed "
    f"group is kept for {_DAYS} days.",
    query=GroupQuery,
    errors=(GroupNotFound,),
)
CLOSE = Operation(
    "closeGroup",
    "PUT /v1/groups/{group_id}",
    "Close a group",
    Returns(GroupResponse, "The group."),
    description="Closes the group, so that no more tasks can join. After all members have ended, the task in "
    "`on_complete` runs once. If the group does not exist, it is created. A group without members completes at once. "
    "Repeating the request changes nothing; a different `on_complete` for a closed group is a conflict.",
    body=GroupClose,
    nesting=2,
    headers=(TRACEPARENT,),
    errors=(GroupClosed,),
)


def _action(name: str, summary: str, description: str, body: type[Body]) -> Operation:
    """Declares an action on the members of a group."""
    accepted = Returns(
        BulkOperationResponse,
        "A bulk operation continues in the background.",
        {"Location": "Path of the bulk operation."},
        status=202,
    )
    return Operation(
        f"{name}Group",
        f"POST /v1/groups/{{group_id}}/{name}",
        summary,
        Returns(FilterActionResult, "The result."),
        description=description,
        accepted=accepted,
        body=body,
        headers=(KEY,),
        errors=(GroupNotFound, errors.KeyReused),
    )


CANCEL = _action(
    "cancel",
    "Cancel the members of a group",
    "Cancels members that have not started; with `force`, running members are asked to stop. The group stays open or "
    "closed, and completes as usual.",
    GroupCancel,
)
RETRY = _action(
    "retry",
    "Retry the failed members of a group",
    "Retries each member like `retryTask`. A closed group that is not complete waits for the retried members. The "
    "completion task of a completed group does not run again.",
    GroupRetry,
)
