"""Following changes over a WebSocket, and by polling where there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from duetime_client.errors import ApiError, ClientError, Unreachable
from duetime_client.live_connection import WebSocketMissing
from duetime_client.task import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from duetime_client.live_connection import LiveConnection

REREAD_AFTER = timedelta(seconds=30)
"""How long a lost message can go unnoticed: what is watched is read again this often."""
STALE_REREAD_AFTER = timedelta(seconds=1)
"""How soon after a reading what is told to be stale is read again: a flood of changes tells it many times a second."""
PING_AFTER = timedelta(minutes=5)
"""API Gateway closes a connection on which nothing is sent for ten minutes."""
RENEW_AFTER = timedelta(hours=1, minutes=55)
"""It closes each connection after two hours: a new one is opened before that."""
RECEIVE_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
_NOT_FOUND = 404
_REF = "1"
_REJECTIONS = frozenset({"fields_invalid", "subscriptions_full"})
"""Codes that another connection would be answered, too."""


@dataclass(frozen=True, slots=True)
class Change:
    """A record as it is now. Those of one record come in the order of their versions; of several, some may be left out.

    Attributes:
        id: Id of the task, or name of the schedule.
        version: Grows with every write.
        item: Its state, type, tags and so on, without payload and result; None if it was deleted.
        left: It no longer matches the filter.
    """

    id: str
    version: int
    item: Mapping[str, Any] | None
    left: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is to come, if it is a task."""
        return self.item is None or (self.item.get("state") in TERMINAL and self.item.get("finished_at") is not None)


class SubscriptionRejected(ClientError):
    """The API rejected a subscription."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{detail} ({code})")
        self.code = code


@dataclass
class Watch:
    """One subscription, over as many connections as it takes.

    Attributes:
        topic: What is watched.
        subscription: Fields of the message that subscribes, besides its topic.
        open: Opens a connection.
        read: Reads over REST what is watched.
        sleep: Waits for so many seconds.
        now: The time.
        jitter: A number from 0, less than 1.
    """

    topic: str
    subscription: Mapping[str, Any]
    open: Callable[[], LiveConnection]
    read: Callable[[], Iterable[Change]]
    sleep: Callable[[float], object]
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    _versions: dict[str, int] = field(default_factory=dict)
    _is_known: bool = False

    def changes(self) -> Iterator[Change]:
        """Changes as they come; they end with the task or topology that is watched.

        Raises:
            ApiError: What is watched does not exist, or the caller is rejected.
        SubscriptionRejected: The filter is not valid, or there are too many subscriptions.
        """
        subject = self.topic.partition(":")[2] if self.topic.startswith(("task:", "topology:")) else None
        for change in self._all_changes():
            yield change
            if change.id == subject and change.has_ended:
                return

    def _all_changes(self) -> Iterator[Change]:
        pause = FIRST_PAUSE
        while True:
            yield from self._reread()
            try:
                for change in self._received():
                    pause = FIRST_PAUSE
                    yield change
            except (Unreachable, WebSocketMissing):
                self.sleep(pause * (0.5 + self.jitter() / 2))
                pause = min(2 * pause, LONGEST_PAUSE)

    def _received(self) -> Iterator[Change]:
        """What comes over one connection, until it ends."""
        connection = self.open()
        try:
            connection.send({"do": "subscribe", "ref": _REF, "topic": self.topic, **self.subscription})
            opened = read_at = pinged_at = self.now()
            # What was written between the last reading and the subscription.
            yield from self._reread()
            is_stale = False
            while self.now() < opened + RENEW_AFTER:
                # What is stale does not wait for the next message.
                seconds = STALE_REREAD_AFTER.total_seconds() if is_stale else RECEIVE_SECONDS
                frame = connection.receive(seconds) or {}
                yield from self._new(_changes_in(frame))
                is_stale = is_stale or frame.get("kind") == "stale"
                if self.now() >= read_at + (STALE_REREAD_AFTER if is_stale else REREAD_AFTER):
                    # What comes during the reading may be newer than it.
                    is_stale = False
                    yield from self._reread()
                    read_at = self.now()
                if self.now() >= pinged_at + PING_AFTER:
                    connection.send({"do": "ping"})
                    pinged_at = self.now()
        finally:
            connection.close()

    def _reread(self) -> Iterator[Change]:
        """What has changed since it was read or told of before; of a list, its first reading only says what is old."""
        try:
            found = list(self.read())
        except ApiError as error:
            known = self._versions.get(self.topic.partition(":")[2])
            if error.status != _NOT_FOUND or known is None:
                raise
            found = [Change(self.topic.partition(":")[2], known + 1, None)]
        new = list(self._new(found))
        if self._is_known or self.topic != "mine":
            yield from new
        self._is_known = True

    def _new(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Of each record, what is newer than all that was handed out."""
        for change in changes:
            if change.version > self._versions.get(change.id, 0):
                self._versions[change.id] = change.version
                yield change


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
            # Another connection may do, or the next reading says that there is nothing to watch.
            raise Unreachable("the WebSocket API", code, sent=True)
