"""The client's methods for live updates, and what they read over REST."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Protocol, Unpack

from duetime_client.errors import ApiError, Unreachable
from duetime_client.lock_admin import read
from duetime_client.problems import document_of
from duetime_client.task import ResponseModel
from duetime_client.watching import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_client.task import Task
    from duetime_client.task_fields import TaskFilter
    from duetime_client.transport import Transport

TICKETS = "/v1/watch-tickets"
MINE = "mine"
_REREAD = 100
"""Most tasks of a list that are read again; those further behind are told of by messages only."""
_NOT_FOUND = 404
_CONTENTS = frozenset({"payload", "result", "content_expired"})


class WatchTicket(ResponseModel):
    """Opens one connection, once, within so many seconds."""

    ticket: str
    url: str
    expires_in: int

    @property
    def address(self) -> str:
        """Where to connect."""
        return f"{self.url}?ticket={self.ticket}"


class LiveUpdates:
    """The client's methods for connections."""

    _transport: Transport

    def create_watch_ticket(self) -> WatchTicket:
        """A ticket for one connection to the WebSocket API."""
        response = self._transport.request("POST", TICKETS, repeatable=True)
        return read(WatchTicket, response, document_of(response))


def new_ticket(client: LiveUpdates) -> WatchTicket:
    """A ticket.

    Raises:
        Unreachable: The API is older than its WebSocket: there is nothing to connect to.
    """
    try:
        return client.create_watch_ticket()
    except ApiError as error:
        if error.status != _NOT_FOUND:
            raise
        raise Unreachable(TICKETS, str(error), sent=True) from error


class Reader(Protocol):
    """What tasks are read by."""

    def get_task(self, task_id: str) -> Task:
        """One task."""
        ...

    def list_tasks(self, *, page_size: int | None = None, **filters: Unpack[TaskFilter]) -> Iterator[Task]:
        """The tasks that match."""
        ...


def read_subject(client: Reader, topic: str, filters: TaskFilter) -> Iterator[Change]:
    """What is watched, as it is now: the task, the topology and its nodes, the runs of a schedule, or the latest tasks.

    Raises:
        ApiError: It does not exist.
    """
    kind, _, name = topic.partition(":")
    if kind in {"task", "topology"}:
        yield _change(client.get_task(name))
    match kind:
        case "task":
            return
        case "topology":
            wanted: TaskFilter = {"parent": name}
        case "schedule":
            wanted = {"schedule": name}
        case _:
            wanted = filters
    yield from map(_change, islice(client.list_tasks(page_size=_REREAD, **wanted), _REREAD))


def _change(task: Task) -> Change:
    item = {name: value for name, value in task.document.items() if name not in _CONTENTS}
    return Change(task.id, task.version, item)
