"""`client.groups`: groups of tasks, with counts of members, and what runs when a group is complete."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - same
from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from duetime_client.filter_actions import filter_action_results
from duetime_client.io_operations import Request
from duetime_client.pages import pages
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one, read
from duetime_client.session import segment
from duetime_client.task import ResponseModel
from duetime_client.task_creation import trace_headers, wait_query
from duetime_client.task_request_fields import body_of

if TYPE_CHECKING:
    from duetime_client.filter_actions import FilterActionResult
    from duetime_client.io_operations import Items
    from duetime_client.task_request_fields import NewTask

GROUPS = "/v1/groups"
CompletionRule = Literal["all_done", "all_success", "none_failed", "one_success", "one_failed"]
"""How the members of a group must have ended for the group's task to run."""


class GroupCompletion(ResponseModel):
    """The task that runs once all members of a group have ended."""

    task_id: str
    rule: str


class Group(ResponseModel):
    """A group of tasks, which is `open`, `closed` or `completed`. Groups in lists have no counts."""

    id: str
    state: str
    created_at: datetime
    closed_at: datetime | None = None
    completed_at: datetime | None = None
    on_complete: GroupCompletion | None = None
    total: int = 0
    ended: int = 0
    counts: Mapping[str, int] = Field(default_factory=dict)
    """Members by state."""
    progress: int = 0
    """Percentage of members that have ended."""


class GroupOperations(Resource):
    """Groups of tasks. A task joins a group through its field `group`, which creates the group if it does not exist."""

    @Stream
    def list(self) -> Items[Group]:
        """List all groups in order of id; pages are fetched as needed."""
        return pages(self._session, GROUPS, "groups", partial(read, Group))

    @Operation
    def get(self, group_id: str, *, wait_seconds: int = 0) -> Request[Group]:
        """Get a group with its counts; `wait_seconds` is how long to wait for the group to complete."""
        return Request("GET", path_of(group_id), one(Group), query=wait_query(wait_seconds))

    @Operation
    def close(
        self,
        group_id: str,
        *,
        task: NewTask | None = None,
        callback_url: str | None = None,
        rule: CompletionRule = "all_done",
        traceparent: str | None = None,
    ) -> Request[Group]:
        """Close a group to new tasks; a given `task` runs or `callback_url` is called once all members have ended."""
        body: dict[str, object] = {}
        if task is not None or callback_url is not None:
            body["on_complete"] = {
                **({} if task is None else {"task": body_of(task)}),
                **({} if callback_url is None else {"callback_url": callback_url}),
                "rule": rule,
            }
        return Request("PUT", path_of(group_id), one(Group), body=body, headers=trace_headers(traceparent))

    @Stream
    def cancel(
        self, group_id: str, *, force: bool = False, per_second: float | None = None, reason: str = ""
    ) -> Items[FilterActionResult]:
        """Cancel the members that have not started; with `force`, also ask running members to stop."""
        body: dict[str, object] = {"force": force, "reason": reason, "per_second": per_second}
        return filter_action_results(self._session, f"{path_of(group_id)}/cancel", body)

    @Stream
    def retry(self, group_id: str, *, per_second: float | None = None, reason: str = "") -> Items[FilterActionResult]:
        """Run the failed members again."""
        body: dict[str, object] = {"reason": reason, "per_second": per_second}
        return filter_action_results(self._session, f"{path_of(group_id)}/retry", body)


class Groups(GroupOperations, SyncResource):
    """`client.groups` of `Client`."""


class AsyncGroups(GroupOperations, AsyncResource):
    """`client.groups` of `AsyncClient`."""


def path_of(group_id: str) -> str:
    """The path of a group."""
    return f"{GROUPS}/{segment(group_id)}"
