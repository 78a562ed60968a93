"""An account whose clients watch over WebSocket connections, and whose function reads the table's stream."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from duetime_testing.fakes.stream import FakeStream
from tests.scenarios.scenario import SECOND, Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass
class Watcher:
    """A client with an open connection.

    Attributes:
        id: the connection's id.
        view: the newest state of each record in the client's messages, by record id; `None` for a deleted record.
        versions: the version of each record in `view`.
        stale: whether the client got the message that asks it to read again.
    """

    live: Live
    id: str
    view: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    stale: bool = False

    @property
    def texts(self) -> list[str]:
        """The messages that have arrived."""
        return self.live.connections.received.get(self.id, [])

    @property
    def frames(self) -> list[dict[str, Any]]:
        """The arrived messages, parsed."""
        return [json.loads(text) for text in self.texts]

    def say(self, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
        """Send a message, and wait for the response."""
        seen = len(self.texts)
        self.send(json.dumps(message))
        kinds = {"snapshot", "unsubscribed", "pong", "error"}
        answers = [frame for frame in self.frames[seen:] if frame["kind"] in kinds]
        assert len(answers) == 1, answers
        return answers[0]

    def send(self, text: str) -> int:
        """Send a string, wait until it has been handled, and return the status that the gateway gets."""
        return self.live.event(self.id, "MESSAGE", body=text)

    def subscribe(self, topic: str = "mine", ref: str = "1", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
        """Start a subscription."""
        return self.say(do="subscribe", ref=ref, topic=topic, **more)

    def take(self, frames: Sequence[Mapping[str, Any]]) -> None:
        """Process messages as a client does: keep the highest version of each record."""
        for frame in frames:
            if frame["kind"] == "change":
                for change in frame["changes"]:
                    self.learn(change["id"], change["version"], change["item"])
            elif frame["kind"] == "snapshot" and frame["item"] is not None:
                self.learn(frame["item"]["id"], frame["version"], frame["item"])
            elif frame["kind"] == "stale":
                self.stale = True

    def learn(self, id_: str, version: int, item: Mapping[str, Any] | None) -> None:
        """Store a record's state in the view, unless a newer state is already known."""
        if version > self.versions.get(id_, 0):
            self.versions[id_] = version
            self.view[id_] = item

    def read_again(self) -> None:
        """Read the list over REST, as a client does after a `stale` message and from time to time."""
        token = ""
        while True:
            page = self.live.ask("GET", "/v1/tasks", query=f"limit=100{token}").body
            for task in page["tasks"]:
                self.learn(task["id"], task["version"], task)
            if page["next_token"] is None:
                return
            token = f"&next_token={page['next_token']}"


class Live(Scenario):
    """An account with clients that watch.

    Attributes:
        stream: the table's stream, which has every write.
        handled: the number of writes that the function has received.
    """

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        self.stream = FakeStream(self.time.now)
        self.stream.watch(self.table)
        self.handled = 0
        self._connected = 0

    def ticket(self, owner: str = "local") -> str:
        """A watch ticket for an owner."""
        answer = self.ask("POST", "/v1/watch-tickets", headers={"x-duetime-owner": owner})
        assert answer.status == 201
        return str(answer.body["ticket"])

    def connect(self, ticket: str | None = None, owner: str = "local") -> Watcher:
        """Open a connection."""
        self._connected += 1
        watcher = Watcher(self, f"connection{self._connected}=")
        status = self.event(watcher.id, "CONNECT", ticket=self.ticket(owner) if ticket is None else ticket)
        assert status == 200, status
        return watcher

    def event(self, connection_id: str, kind: str, body: str | None = None, ticket: str | None = None) -> int:
        """Pass a connection's event to its function; return the status."""
        event: dict[str, Any] = {
            "requestContext": {"connectionId": connection_id, "eventType": kind, "requestId": "request"}
        }
        if body is not None:
            event["body"] = body
        if ticket is not None:
            event["queryStringParameters"] = {"ticket": ticket}
        invocation = self.invoke("watch", event)
        assert self.run_until(lambda: invocation.strand is not None and invocation.strand.done, step=1)
        status = 500 if invocation.failed else int(invocation.answer["statusCode"])
        if kind == "CONNECT" and status == 200:
            self.connections.received[connection_id] = []
        return status

    def hang_up(self, watcher: Watcher, *, told: bool = True) -> None:
        """Close a connection; if `told`, the function gets the event, which the gateway does not guarantee to send."""
        del self.connections.received[watcher.id]
        if told:
            assert self.event(watcher.id, "DISCONNECT") == 200

    def broadcast(self, size: int = 500) -> None:
        """Have the function read the stream to the end."""
        while self.handled < len(self.stream.records):
            event = self.stream.event(self.handled, self.handled + size)
            self.handled += len(event["Records"])
            self.deliver(event)

    def deliver(self, event: Mapping[str, Any]) -> None:
        """Hand stream records to the function that reads the stream."""
        invocation = self.invoke("broadcast", event)
        assert self.run_until(lambda: invocation.strand is not None and invocation.strand.done, step=1)
        assert not invocation.failed

    def read_stream(self, every: int = SECOND) -> None:
        """From now on, have the function read the stream repeatedly."""
        self.time.start_process(partial(self._read_on, every))

    def _read_on(self, every: int) -> None:
        while True:
            self.take(every)
            if self.handled < len(self.stream.records):
                event = self.stream.event(self.handled, self.handled + 500)
                self.handled += len(event["Records"])
                self.invoke("broadcast", event)
