"""`client.topology_definitions`: graphs of tasks that have a name, versions and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from pydantic import Field

from duetime_client.io_operations import Request
from duetime_client.pages import pages
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one, read, several, task_of
from duetime_client.session import IDEMPOTENCY_KEY, guard, key_or_random, segment
from duetime_client.task import ResponseModel
from duetime_client.task_request_fields import body_of
from duetime_client.topologies import TOPOLOGIES

if TYPE_CHECKING:
    from duetime_client.io_operations import Items
    from duetime_client.literals import TaskPriority
    from duetime_client.task import Task
    from duetime_client.task_request_fields import (
        Debounce,
        GroupMembership,
        Priority,
        ScheduleOccurrence,
        TriggerRule,
    )
    from duetime_common.option_fields import NotifyOn, OrderedKey, UniqueKey

DEFINITIONS = f"{TOPOLOGIES}/definitions"


class RunFields(TypedDict, total=False):
    """The fields of a run, except its parameters."""

    type: str
    name: str | None
    tags: Mapping[str, str]
    priority: Priority | TaskPriority
    due_at: datetime | str
    delay_seconds: float
    callback_url: str | None
    notify_on: NotifyOn | None
    expires_seconds: int | None
    fair_key: str | None
    fair_weight: int
    unique: UniqueKey | None
    debounce: Debounce | None
    order: OrderedKey | None
    parent_task_id: str | None
    group: GroupMembership | None
    after: Sequence[str | ScheduleOccurrence] | None
    trigger_rule: TriggerRule | None


class DefinitionVersion(ResponseModel):
    """A version of a topology definition."""

    version: int
    created_at: datetime
    created_by: str | None = None

    @property
    def etag(self) -> str:
        """The version for `put(if_match=…)` and `delete(if_match=…)`."""
        return f'"{self.version}"'


class DefinitionSummary(DefinitionVersion):
    """A topology definition in a list, which shows only the latest version."""

    name: str
    description: str = ""


class TopologyDefinition(DefinitionSummary):
    """A version of a topology definition.

    Attributes:
        parameters: the declaration of each parameter, by name: `type`, `default`, `enum`, `description`.
        nodes: the nodes as they were written.
    """

    parameters: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    nodes: Mapping[str, Any]
    on_failure: str
    timeout_seconds: int | None = None
    outputs: Sequence[str] = ()


class DefinitionDiff(ResponseModel):
    """The differences between two versions, each with its `path` and, where there is a value, `from` and `to`."""

    changes: Sequence[Mapping[str, Any]]


class TopologyDefinitionOperations(Resource):
    """Topology definitions."""

    @Stream
    def list(self) -> Items[DefinitionSummary]:
        """List the latest version of each definition in order of name; pages are fetched as needed."""
        return pages(self._session, DEFINITIONS, "definitions", partial(read, DefinitionSummary))

    @Operation
    def get(self, name: str, *, version: int | None = None) -> Request[TopologyDefinition]:
        """Get a version of a definition, by default the latest version."""
        query = [] if version is None else [("version", str(version))]
        return Request("GET", _path_of(name), one(TopologyDefinition), query=query)

    @Operation
    def put(self, name: str, body: Mapping[str, Any], *, if_match: str | None = None) -> Request[TopologyDefinition]:
        """Create a definition or its next version; a body equal to the latest version creates no new version.

        With `if_match`, the definition must still have that `etag`, and the request is not retried if its response is
        lost.
        """
        headers, is_repeatable = guard(if_match), if_match is None
        read_it = one(TopologyDefinition)
        return Request("PUT", _path_of(name), read_it, body=body_of(body), headers=headers, repeatable=is_repeatable)

    @Operation
    def delete(self, name: str, *, if_match: str | None = None) -> Request[TopologyDefinition]:
        """Delete a definition with all of its versions and return it. Existing runs do not change.

        Raises:
            Conflict: A schedule runs the definition.
        """
        return Request("DELETE", _path_of(name), one(TopologyDefinition), headers=guard(if_match))

    @Operation
    def list_versions(self, name: str) -> Request[Sequence[DefinitionVersion]]:
        """List the versions of a definition, latest version first."""
        return Request("GET", f"{_path_of(name)}/versions", several(DefinitionVersion, "versions"))

    @Operation
    def get_diff(self, name: str, before: int, after: int | None = None) -> Request[DefinitionDiff]:
        """List the differences between two versions; without `after`, between one version and the latest version."""
        query = [("from", str(before)), *([] if after is None else [("to", str(after))])]
        return Request("GET", f"{_path_of(name)}/diff", one(DefinitionDiff), query=query)

    @Operation
    def run(
        self,
        name: str,
        /,
        parameters: Mapping[str, Any] | None = None,
        *,
        version: int | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[RunFields],
    ) -> Request[Task]:
        """Create a topology from a version, by default the latest version, with values for its parameters."""
        body = {**body_of(fields), "parameters": dict(parameters or {})}
        if version is not None:
            body["version"] = version
        headers = {IDEMPOTENCY_KEY: key_or_random(idempotency_key)}
        return Request("POST", f"{_path_of(name)}/runs", task_of, body=body, headers=headers)


class TopologyDefinitions(TopologyDefinitionOperations, SyncResource):
    """`client.topology_definitions` of `Client`."""


class AsyncTopologyDefinitions(TopologyDefinitionOperations, AsyncResource):
    """`client.topology_definitions` of `AsyncClient`."""


def _path_of(name: str) -> str:
    """The path of a definition; the name is escaped as one path segment."""
    return f"{DEFINITIONS}/{segment(name)}"
