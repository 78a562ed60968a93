"""Watches changes over a WebSocket, or by polling if no WebSocket is available."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from duetime_client.errors import ApiError, ClientError, Unreachable
from duetime_client.io_operations import (
    CloseConnection,
    Item,
    OpenConnection,
    Pause,
    ReceiveMessage,
    Request,
    SendMessage,
)
from duetime_client.live_connection import WebSocketMissing
from duetime_client.pages import page
from duetime_client.responses import task_in, task_of
from duetime_client.task import TERMINAL
from duetime_client.task_actions import TASKS, path_of
from duetime_client.task_request_fields import body_of, query_of
from duetime_client.watch_tickets import TICKETS, create_watch_ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
    from datetime import datetime

    from duetime_client.io_operations import Items, Step, Steps
    from duetime_client.session import Session
    from duetime_client.task import Task
    from duetime_client.task_request_fields import TaskFilter

MINE = "mine"
"""The topic for all of the caller's tasks."""

REREAD_AFTER = timedelta(seconds=30)
"""Interval between full readings; if a message is lost, its change is noticed after this time at most."""
STALE_REREAD_AFTER = timedelta(seconds=1)
"""Shortest interval between readings of stale entries, because the API can report stale entries several times a
second."""
PING_AFTER = timedelta(minutes=5)
"""Interval between pings, because API Gateway closes a connection that is idle for ten minutes."""
RENEW_AFTER = timedelta(hours=1, minutes=55)
"""How long a connection is used; API Gateway closes each connection after two hours."""
RECEIVE_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
_REREAD = 100
"""How many tasks of a list are read again; changes to tasks further down the list arrive only as messages."""
_CONTENTS = frozenset({"payload", "result", "content_expired"})
_REF = "1"
_REJECTIONS = frozenset({"fields_invalid", "subscriptions_full"})
"""Codes of errors that would recur on a new connection."""


@dataclass(frozen=True, slots=True)
class Change:
    """The current state of a record. A record's changes arrive in version order; intermediate changes may be skipped.

    Attributes:
        id: Id of the task, or name of the schedule.
        version: A number that increases with every write.
        item: The record's state, type, tags and other fields, without payload and result; None if the record was
            deleted.
        left: Whether the record no longer matches the filter.
    """

    id: str
    version: int
    item: Mapping[str, Any] | None
    left: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether the record was deleted, or is a task that has ended; in both cases, no more changes follow."""
        return self.item is None or (self.item.get("state") in TERMINAL and self.item.get("finished_at") is not None)


class SubscriptionRejected(ClientError):
    """The API rejected a subscription."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{detail} ({code})")
        self.code = code


@dataclass
class Watch:
    """One subscription, which reconnects as often as necessary.

    Attributes:
        topic: The watched topic.
        subscription: Fields of the message that subscribes, besides its topic.
        address: Steps that return the URL of each new connection.
        read: Reads the watched records over REST.
        now: Returns the current time.
        jitter: Returns a number in [0, 1).
        readable: Decrypts a message.
    """

    topic: str
    subscription: Mapping[str, Any]
    address: Callable[[], Steps[str]]
    read: Callable[[], Steps[list[Change]]]
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    readable: Callable[[Any], Any]
    _versions: dict[str, int] = field(default_factory=dict)
    _is_known: bool = False
    _pause: float = FIRST_PAUSE

    def changes(self) -> Items[Change]:
        """Yield changes as they arrive, until the watched task or topology ends.

        Raises:
            ApiError: The watched record does not exist, or the caller is rejected.
            SubscriptionRejected: The filter is not valid, or there are too many subscriptions.
        """
        while True:
            is_over = yield from self._reread()
            try:
                is_over = is_over or (yield from self._received())
            except (Unreachable, WebSocketMissing):
                yield Pause(self._pause * (0.5 + self.jitter() / 2))
                self._pause = min(2 * self._pause, LONGEST_PAUSE)
            if is_over:
                return

    def _received(self) -> Generator[Step | Item[Change], Any, bool]:
        """Yield the changes from one connection, and return whether the watched task or topology has ended."""
        yield OpenConnection((yield from self.address()))
        yield SendMessage({"do": "subscribe", "ref": _REF, "topic": self.topic, **self.subscription})
        opened = read_at = pinged_at = self.now()
        # This reading finds writes that happened between the last reading and the subscription.
        is_over = yield from self._reread(is_connected=True)
        is_stale = False
        while not is_over and self.now() < opened + RENEW_AFTER:
            # Stale entries are read without waiting for the next message.
            seconds = STALE_REREAD_AFTER.total_seconds() if is_stale else RECEIVE_SECONDS
            frame = (yield ReceiveMessage(seconds)) or {}
            is_over = yield from self._handed_out(_changes_in(self.readable(frame)), is_connected=True)
            is_stale = is_stale or frame.get("kind") == "stale"
            if not is_over and self.now() >= read_at + (STALE_REREAD_AFTER if is_stale else REREAD_AFTER):
                # The flag is cleared before the reading, because messages that arrive meanwhile may report newer
                # changes.
                is_stale = False
                is_over = yield from self._reread(is_connected=True)
                read_at = self.now()
            if self.now() >= pinged_at + PING_AFTER:
                yield SendMessage({"do": "ping"})
                pinged_at = self.now()
        yield CloseConnection()
        return is_over

    def _reread(self, *, is_connected: bool = False) -> Generator[Step | Item[Change], Any, bool]:
        """Read the records again and yield the changes; the first reading of a list only records versions."""
        try:
            found = yield from self.read()
        except ApiError as error:
            known = self._versions.get(self.topic.partition(":")[2])
            if error.status != HTTPStatus.NOT_FOUND or known is None:
                raise
            found = [Change(self.topic.partition(":")[2], known + 1, None)]
        is_told = self._is_known or self.topic != MINE
        self._is_known = True
        if not is_told:
            for _ in self._new(found):
                pass
            return False
        return (yield from self._handed_out(found, is_connected=is_connected))

    def _handed_out(
        self, changes: Iterable[Change], *, is_connected: bool
    ) -> Generator[Step | Item[Change], Any, bool]:
        """Yield the changes that are new, and return whether the watched task or topology has ended."""
        subject = self.topic.partition(":")[2] if self.topic.startswith(("task:", "topology:")) else None
        for change in self._new(changes):
            if is_connected:
                self._pause = FIRST_PAUSE
            yield Item(change)
            if change.id == subject and change.has_ended:
                return True
        return False

    def _new(self, changes: Iterable[Change]) -> Iterator[Change]:
        """The changes that are newer than the last change yielded for the same record."""
        for change in changes:
            if change.version > self._versions.get(change.id, 0):
                self._versions[change.id] = change.version
                yield change


def watch(session: Session, topic: str, filters: TaskFilter) -> Items[Change]:
    """Watch a topic: `task:ID`, `topology:ID`, `schedule:NAME`, or all tasks of the caller (`MINE`)."""
    return Watch(
        topic=topic,
        subscription={"filter": body_of(filters)} if filters else {},
        address=lambda: _address(session),
        read=lambda: _read(session, topic, filters),
        now=session.now,
        jitter=session.random_source,
        readable=session.readable,
    ).changes()


def _address(session: Session) -> Steps[str]:
    """Return the URL of a new connection.

    Raises:
        Unreachable: This version of the API has no WebSocket.
    """
    try:
        ticket = yield from session.send(create_watch_ticket())
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        raise Unreachable(TICKETS, str(error), sent=True) from error
    return ticket.address


def _read(session: Session, topic: str, filters: TaskFilter) -> Steps[list[Change]]:
    """Read the task, the topology and its nodes, the runs of a schedule, or the latest tasks.

    Raises:
        ApiError: The watched record does not exist.
    """
    kind, _, name = topic.partition(":")
    found: list[Task] = []
    if kind in {"task", "topology"}:
        found.append((yield from session.send(Request("GET", path_of(name), task_of))))
    match kind:
        case "task":
            return [*map(_change, found)]
        case "topology":
            wanted: TaskFilter = {"parent": name}
        case "schedule":
            wanted = {"schedule": name}
        case _:
            wanted = filters
    most, token = len(found) + _REREAD, ""
    query = [*query_of(wanted, _REREAD)]
    while True:
        tasks, token = yield from session.send(page(TASKS, "tasks", task_in, query, token))
        found.extend(tasks)
        if len(found) >= most or not token:
            return [*map(_change, found[:most])]


def _change(task: Task) -> Change:
    item = {name: value for name, value in task.document.items() if name not in _CONTENTS}
    return Change(task.id, task.version, item)


def _changes_in(frame: Mapping[str, Any]) -> Iterator[Change]:
    match frame:
        case {"kind": "change", "changes": list(changes)}:
            for change in changes:
                yield Change(str(change["id"]), int(change["version"]), change["item"], left=_REF in change["left"])
        case {"kind": "snapshot", "item": {"kind": "task", "id": str(id_)} as item, "version": int(version)}:
            yield Change(id_, version, item)
        case {"kind": "error", "code": str(code)}:
            if code in _REJECTIONS:
                raise SubscriptionRejected(code, str(frame.get("detail", "")))
            # Another connection may work; otherwise the next reading reports that the record is gone.
            raise Unreachable("the WebSocket API", code, sent=True)
