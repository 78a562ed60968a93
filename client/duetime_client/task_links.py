"""`client.task_links`: links that let someone without credentials decide on, report on or watch one task."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - same
from typing import Any, Literal, TypeAlias

from duetime_client.io_operations import Request
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.responses import nothing, one, several
from duetime_client.session import segment
from duetime_client.task import ResponseModel
from duetime_client.task_actions import path_of

LINKS = "/v1/links"
LinkAction = Literal["approve", "reject", "complete", "fail", "watch"]


class TaskLink(ResponseModel):
    """A link without its address.

    Attributes:
        actions: The permitted actions.
        message: A message for the person who opens the link.
        takes_payload: Whether the link's holder may send a payload.
        ended: Why the link is rejected; `None` if the link is valid.
        used_for: What the link was used for; `None` if it was not used.
    """

    id: str
    actions: Sequence[str]
    message: str = ""
    takes_payload: bool = False
    ended: str | None = None
    created_at: datetime
    created_by: str = ""
    expires_at: datetime
    used_at: datetime | None = None
    used_for: str | None = None


class CreatedTaskLink(TaskLink):
    """A new link; its address in `url` is returned only once."""

    url: str


class LinkedTask(ResponseModel):
    """The part of a task that a link to the task shows."""

    name: str | None = None
    type: str
    state: str
    due_at: datetime
    finished_at: datetime | None = None
    percent: int | None = None


class OpenedTaskLink(ResponseModel):
    """The content of a link's page.

    Attributes:
        is_awaited: Whether the task currently waits for one of the actions.
    """

    actions: Sequence[str]
    message: str = ""
    takes_payload: bool = False
    is_awaited: bool
    expires_at: datetime
    used_at: datetime | None = None
    used_for: str | None = None
    task: LinkedTask


Links: TypeAlias = list[TaskLink]


class TaskLinkOperations(Resource):
    """Links to tasks."""

    @Operation
    def create(
        self,
        task_id: str,
        actions: Sequence[LinkAction],
        *,
        expires_seconds: int | None = None,
        message: str = "",
        takes_payload: bool = False,
    ) -> Request[CreatedTaskLink]:
        """Create a link, which is valid for a day by default. The request is not retried if its response is lost."""
        body: dict[str, Any] = {"actions": [*actions]}
        if expires_seconds is not None:
            body["expires_seconds"] = expires_seconds
        if message:
            body["message"] = message
        if takes_payload:
            body["takes_payload"] = True
        return Request("POST", f"{path_of(task_id)}/links", one(CreatedTaskLink), body=body)

    @Operation
    def list(self, task_id: str) -> Request[Links]:
        """List the links of a task in order of creation."""
        return Request("GET", f"{path_of(task_id)}/links", several(TaskLink, "links"))

    @Operation
    def delete(self, task_id: str, link_id: str) -> Request[None]:
        """Delete a link, which is rejected from then on."""
        return Request("DELETE", f"{path_of(task_id)}/links/{segment(link_id)}", nothing)

    @Operation
    def get(self, token: str) -> Request[OpenedTaskLink]:
        """Get the purpose of a link by the last part of its address.

        The request needs no credentials, and changes nothing.
        """
        return Request("GET", f"{LINKS}/{segment(token)}", one(OpenedTaskLink))

    @Operation
    def use(
        self, token: str, action: LinkAction | None = None, payload: object = None, *, reason: str = ""
    ) -> Request[OpenedTaskLink]:
        """Use a link by the last part of its address. The request needs no credentials, and uses up the link."""
        body: dict[str, Any] = {} if action is None else {"action": action}
        if payload is not None:
            body["payload"] = payload
        if reason:
            body["reason"] = reason
        return Request("POST", f"{LINKS}/{segment(token)}", one(OpenedTaskLink), body=body or None)


class TaskLinks(TaskLinkOperations, SyncResource):
    """`client.task_links` of `Client`."""


class AsyncTaskLinks(TaskLinkOperations, AsyncResource):
    """`client.task_links` of `AsyncClient`."""
