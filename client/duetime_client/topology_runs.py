"""Topologies: graphs of tasks that run as one."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack
from urllib.parse import quote
from uuid import uuid4

from pydantic import Field

from duetime_client.lock_admin import read
from duetime_client.pages import pages
from duetime_client.problems import document_of
from duetime_client.responses import task_of
from duetime_client.task import TERMINAL, Failure, ResponseModel
from duetime_client.task_control import reason_body
from duetime_client.task_fields import query_of
from duetime_client.transport import IDEMPOTENCY_KEY, guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime_client.task import Task
    from duetime_client.transport import Transport

TOPOLOGIES = "/v1/topologies"
_LOOK_SECONDS = 0.5
_LONGEST_LOOK_SECONDS = 5.0


class TopologyNode(ResponseModel):
    """A node of a topology, and its state."""

    task_id: str | None = None
    type: str
    state: str
    reason: str | None = None
    percent: int = 0
    depends_on: list[str] = Field(default_factory=list)
    trigger_rule: str
    expected_seconds: float | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class CriticalPath(ResponseModel):
    """The chain of nodes that determines when the topology ends."""

    nodes: list[str]
    seconds: float


class TopologyFilter(TypedDict, total=False):
    """Which topologies to list, in which order: those that match all fields."""

    state: str
    type: str
    name: str
    tags: Mapping[str, str]
    due_after: datetime | str
    due_before: datetime | str
    order: Literal["asc", "desc"]


class TopologySummary(ResponseModel):
    """A topology as lists show it: its own task."""

    id: str
    state: str
    name: str | None = None
    due_at: datetime | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    requested_action: str | None = None
    error: Failure | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether its outcome is known."""
        return self.state in TERMINAL


class Topology(TopologySummary):
    """A graph of tasks, and its state."""

    run: int
    on_failure: str
    percent: int
    counts: Mapping[str, int]
    critical_path: CriticalPath
    nodes: Mapping[str, TopologyNode]


class Topologies:
    """The client's methods for topologies."""

    _transport: Transport
    _sleep: Callable[[float], object]

    def create_topology(self, body: Mapping[str, Any], *, idempotency_key: str | None = None) -> Task:
        """Create a topology from the body of `POST /v1/topologies`, which `read_topology` reads from a file."""
        headers = {IDEMPOTENCY_KEY: idempotency_key or str(uuid4())}
        return task_of(self._transport.request("POST", TOPOLOGIES, body=dict(body), headers=headers))

    def get_topology(self, task_id: str) -> Topology:
        """A topology with the states of its nodes."""
        response = self._transport.request("GET", _path_of(task_id))
        return read(Topology, response, document_of(response))

    def list_topologies(
        self, *, page_size: int | None = None, **filters: Unpack[TopologyFilter]
    ) -> Iterator[TopologySummary]:
        """All topologies that match the filters, fetched page by page as they are needed."""
        query = list(query_of(filters, page_size))
        for response, entry in pages(self._transport, TOPOLOGIES, "topologies", query):
            yield read(TopologySummary, response, entry)

    def follow_topology(self, task_id: str) -> Iterator[Topology]:
        """The topology as it is now, and again each time it is polled, until its outcome is known."""
        pause = _LOOK_SECONDS
        while True:
            topology = self.get_topology(task_id)
            yield topology
            if topology.is_terminal:
                return
            self._sleep(pause)
            pause = min(pause * 1.1, _LONGEST_LOOK_SECONDS)

    def retry_topology(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Task:
        """Run a failed topology again; nodes that succeeded are not repeated."""
        return self._act_on(task_id, "retry", reason, if_match)

    def cancel_topology(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Task:
        """Cancel the nodes that have not started, and request the running ones to stop."""
        return self._act_on(task_id, "cancel", reason, if_match)

    def pause_topology(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Task:
        """Start no more nodes; running ones continue."""
        return self._act_on(task_id, "pause", reason, if_match)

    def resume_topology(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Task:
        """Resume a paused topology."""
        return self._act_on(task_id, "resume", reason, if_match)

    def delete_topology(self, task_id: str, *, if_match: str | None = None) -> None:
        """Delete a topology with all of its nodes; one that has not started is cancelled first.

        Raises:
            Conflict: It runs, or one of its nodes does: cancel it, and wait for its end.
        """
        self._transport.request("DELETE", _path_of(task_id), headers=guard(if_match))

    def _act_on(self, task_id: str, action: str, reason: str, if_match: str | None) -> Task:
        # What was asked for already stays as it is, so it may be asked again; not under a version, which has changed.
        path, body = f"{_path_of(task_id)}/{action}", reason_body(reason)
        request, is_repeatable = self._transport.request, if_match is None
        return task_of(request("POST", path, body=body, headers=guard(if_match), repeatable=is_repeatable))


def _path_of(task_id: str) -> str:
    return f"{TOPOLOGIES}/{quote(task_id, safe='', errors='replace')}"
