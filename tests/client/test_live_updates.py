"""Tests that the client's view finally agrees with REST, whatever happens to connections and messages."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime_client.changes import PING_AFTER, RENEW_AFTER, Change, SubscriptionRejected, Watch
from duetime_client.errors import ApiError, Problem, Unreachable
from duetime_client.io_operations import Pause
from duetime_client.io_runners import Runner
from duetime_client.live_connection import WebSocketMissing
from duetime_client.retries import Retries
from duetime_client.session import Session
from duetime_common.payload_codecs import encrypted_text

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping

    from typer.testing import Result

    from duetime_client.io_operations import Steps
    from duetime_common.payload_codecs import PayloadCodec
    from tests.client.deployment import Deployment

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
Frame = dict[str, Any]


def item(id_: str, version: int, state: str = "running") -> Frame:
    """Return a task as messages contain it."""
    return {"kind": "task", "id": id_, "version": version, "state": state, "finished_at": None}


def changed(id_: str, version: int, state: str = "running", *, left: bool = False) -> Frame:
    """Return a message with one change."""
    entry = {
        "id": id_,
        "version": version,
        "refs": [] if left else ["1"],
        "left": ["1"] if left else [],
        "item": item(id_, version, state),
    }
    return {"kind": "change", "changes": [entry]}


ENDED = changed("A", 9, "succeeded")
ENDED["changes"][0]["item"]["finished_at"] = "2026-11-21T12:00:00Z"


@dataclass
class Remote:
    """Simulates a deployment with a WebSocket API in its own virtual time.

    Attributes:
        connections: the messages of each connection that can be opened; a connection is lost after its last message.
        records: the records as REST returns them, by id.
        sent: the messages sent by clients.
        slept: how long the clients waited before each reconnection, in seconds.
        codec: the clients' codec.
    """

    connections: deque[list[Frame]] = field(default_factory=deque)
    records: dict[str, tuple[int, Frame]] = field(default_factory=dict)
    sent: list[Mapping[str, Any]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    closed: int = 0
    now: datetime = START
    fails: Callable[[], Exception] = lambda: Unreachable("ws", "refused", sent=False)
    codec: PayloadCodec | None = None

    def open(self) -> Connection:
        """Open the next connection."""
        if not self.connections:
            raise self.fails()
        return Connection(self, deque(self.connections.popleft()))

    def read(self) -> Steps[list[Change]]:
        """Read the records over REST."""
        yield Pause(0)
        return [Change(id_, version, found) for id_, (version, found) in self.records.items()]

    def sleep(self, seconds: float) -> None:
        """Advance the virtual time."""
        if seconds:
            self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)

    def address(self) -> Steps[str]:
        """Return the address to connect to."""
        yield Pause(0)
        return "ws://localhost"

    def watch(self, topic: str = "mine", **subscription: Any) -> Watch:  # noqa: ANN401 - any JSON
        """Return a watch of a subject on this deployment."""
        return Watch(
            topic=topic,
            subscription=subscription,
            address=self.address,
            read=self.read,
            now=lambda: self.now,
            jitter=lambda: 1.0,
            readable=self.session.readable,
        )

    @property
    def session(self) -> Session:
        """Return the client's HTTP session."""
        return Session("http://localhost", Retries(), lambda: 1.0, lambda: self.now, codec=self.codec)

    def changes(self, watch: Watch) -> Iterator[Change]:
        """Return the changes that a waiting client receives."""
        return Runner(self.session, httpx.Client(), self.sleep, lambda _url: self.open()).stream(watch.changes())


@dataclass
class Connection:
    """A connection that is lost when it has no more messages."""

    remote: Remote
    frames: deque[Frame]

    def send(self, message: Mapping[str, Any]) -> None:
        """Record a sent message."""
        self.remote.sent.append(message)

    def receive(self, timeout: float) -> Mapping[str, Any] | None:
        """Return the next message; `{"wait": seconds}` stands for silence, and `after` is the time before a message."""
        if not self.frames:
            raise Unreachable("ws", "lost", sent=True)
        if (seconds := self.frames[0].get("wait")) is not None:
            self.remote.now += timedelta(seconds=timeout)
            self.frames[0]["wait"] = seconds - timeout
            if seconds <= timeout:
                self.frames.popleft()
            return None
        frame = self.frames.popleft()
        self.remote.now += timedelta(seconds=frame.get("after", 0))
        return frame

    def close(self) -> None:
        """Record that the connection was closed."""
        self.remote.closed += 1


def test_changes_of_a_task_are_streamed_until_the_task_ends() -> None:
    """The current task comes first, repeated and older messages are ignored, and the stream ends when the task ends."""
    remote = Remote(deque([[changed("A", 3), changed("A", 3), changed("A", 2), changed("A", 5), ENDED]]))
    remote.records["A"] = (1, item("A", 1))
    assert [change.version for change in remote.changes(remote.watch("task:A"))] == [1, 3, 5, 9]
    assert remote.sent == [{"do": "subscribe", "ref": "1", "topic": "task:A"}]
    assert remote.closed == 1


class Reversed:
    """A codec that reverses strings."""

    def encode(self, data: bytes) -> bytes:
        """Reverse the text."""
        return data[::-1]

    decode = encode


def test_texts_in_messages_are_decrypted() -> None:
    """The error and the progress of a changed task are decrypted."""
    frame = changed("A", 3)
    (change,) = frame["changes"]
    text = encrypted_text(Reversed(), "4111")
    texts = {"error": {"type": "E", "message": text}, "progress": {"percent": 5, "message": text}}
    change["item"] = {**change["item"], **texts}
    remote = Remote(deque([[frame, ENDED]]), codec=Reversed())
    remote.records["A"] = (1, item("A", 1))
    first, second, _ = remote.changes(remote.watch("task:A"))
    assert second.item is not None
    assert (first.version, second.item["error"]["message"]) == (1, "4111")
    assert second.item["progress"]["message"] == "4111"


def test_watching_a_list_reports_only_later_changes() -> None:
    """Tasks in the first list are not reported as changes, but a task that leaves the filter is reported."""
    remote = Remote(deque([[changed("A", 1), changed("A", 2), changed("B", 1), changed("B", 2, left=True)]]))
    remote.records["A"] = (1, item("A", 1))
    told = list(islice(remote.changes(remote.watch(filter={"state": "running"})), 3))
    assert [(change.id, change.version, change.left) for change in told] == [
        ("A", 2, False),
        ("B", 1, False),
        ("B", 2, True),
    ]
    assert remote.sent[0]["filter"] == {"state": "running"}


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(1, 30)), max_size=40), st.randoms(use_true_random=False))
def test_lost_and_reordered_messages_are_corrected_by_the_next_rest_read(
    writes: list[tuple[str, int]], chance: random.Random
) -> None:
    """Lost, repeated and reordered messages and lost connections are corrected by the next REST read."""
    remote = Remote()
    for id_, version in writes:
        if version > remote.records.get(id_, (0, {}))[0]:
            remote.records[id_] = (version, item(id_, version))
    frames = [changed(*write) for write in writes if chance.random() < 0.7]
    frames += [changed(*write) for write in writes if chance.random() < 0.3]
    chance.shuffle(frames)
    for _ in range(3):
        remote.connections.append([frames.pop() for _ in range(len(frames) // 3)])
    last = Change("end", 1, item("end", 1))
    view: dict[str, int] = {}
    watch = remote.watch()
    watch.topic = "schedule:all"  # unlike the first read of a list, this first read is reported
    remote.connections.append([{"kind": "stale", "refs": ["1"]}, changed("end", 1)])
    for change in remote.changes(watch):
        if change.id == last.id:
            break
        assert change.version > view.get(change.id, 0)
        view[change.id] = change.version
    assert view == {id_: version for id_, (version, _) in remote.records.items()}


def test_a_lost_message_is_corrected_within_half_a_minute() -> None:
    """A watched task is also read periodically, so a lost message is corrected within half a minute."""
    remote = Remote(deque([[{"wait": 200.0}]]))
    remote.records["A"] = (1, item("A", 1))
    changes = remote.changes(remote.watch("task:A"))
    assert next(changes).version == 1
    remote.records["A"] = (2, item("A", 2))
    assert next(changes).version == 2
    remote.records["A"] = (3, item("A", 3))
    assert next(changes).version == 3
    assert remote.now - START <= timedelta(seconds=40)


def test_pauses_before_reconnections_grow_to_thirty_seconds() -> None:
    """Pauses before reconnections grow from one second to thirty seconds, with a REST read after each pause."""
    remote = Remote()
    remote.records["A"] = (1, item("A", 1))
    changes = remote.changes(remote.watch("task:A"))
    for version in range(1, 9):
        remote.records["A"] = (version, item("A", version))
        assert next(changes).version == version
    assert remote.slept == [1, 2, 4, 8, 16, 30, 30]


def test_without_the_websockets_package_the_api_is_polled() -> None:
    """Without the `websockets` package, the same changes arrive later, by polling."""
    remote = Remote(fails=WebSocketMissing)
    remote.records["A"] = (1, item("A", 1))
    changes = remote.changes(remote.watch("task:A"))
    assert next(changes).version == 1
    remote.records["A"] = (9, ENDED["changes"][0]["item"])
    assert [change.version for change in changes] == [9]


def test_an_idle_connection_is_pinged_and_renewed_before_its_limit() -> None:
    """The client sends a ping every five minutes, and reconnects without a pause after an hour and 55 minutes."""
    remote = Remote(deque([[{"wait": 7_200.0}], [changed("A", 1)]]))
    changes = remote.changes(remote.watch())
    change = next(changes)
    assert (change.id, remote.slept, remote.closed) == ("A", [], 1)
    pings = [message for message in remote.sent if message["do"] == "ping"]
    assert len(pings) == RENEW_AFTER // PING_AFTER
    assert RENEW_AFTER <= remote.now - START < timedelta(hours=2)


def test_deleting_a_watched_task_is_reported_and_ends_the_watch() -> None:
    """If the message about a deletion was lost, the next read reports the deletion."""
    remote = Remote(deque([[{"wait": 60.0}]]))
    remote.records["A"] = (4, item("A", 4))
    watch = remote.watch("task:A")

    def gone() -> Steps[list[Change]]:
        yield Pause(0)
        raise ApiError(Problem(404, "task_not_found", "", "there is no task A"))

    changes = remote.changes(watch)
    assert next(changes).version == 4
    watch.read = gone
    assert list(changes) == [Change("A", 5, None)]


def test_watching_a_task_that_never_existed_raises_an_error() -> None:
    """Watching a task that never existed raises the API's error."""
    remote = Remote()
    watch = remote.watch("task:A")

    def gone() -> Steps[list[Change]]:
        yield Pause(0)
        raise ApiError(Problem(404, "task_not_found", "", "there is no task A"))

    watch.read = gone
    with pytest.raises(ApiError):
        next(remote.changes(watch))


def test_a_rejected_subscription_raises_an_error_without_retry() -> None:
    """A rejected subscription raises an error and is not retried, because every connection would reject it again."""
    refusal = {"kind": "error", "ref": "1", "code": "fields_invalid", "detail": "filter.x: is not a known field"}
    remote = Remote(deque([[refusal], []]))
    with pytest.raises(SubscriptionRejected, match=r"filter\.x"):
        next(remote.changes(remote.watch(filter={"x": 1})))
    assert (remote.closed, len(remote.connections)) == (1, 1)


def test_the_client_reconnects_after_a_lost_subscription() -> None:
    """If a message reports a lost subscription, the client reconnects and the watch continues."""
    lost = {"kind": "error", "ref": "1", "code": "unauthenticated", "detail": "the request carries no identity"}
    remote = Remote(deque([[lost], [{"message": "Internal server error"}, {"kind": "new"}, changed("A", 1)]]))
    assert next(remote.changes(remote.watch())).id == "A"


def test_the_watch_command_follows_a_task_until_it_ends(duetime: Callable[..., Result], deployment: Deployment) -> None:
    """An API without a WebSocket is polled; each change is a line, and the exit code is 1 unless the task succeeded."""
    duetime("tasks", "create", "report")
    (task_id,) = deployment.tasks
    deployment.tasks[task_id] |= {"state": "succeeded", "version": 7, "finished_at": "2026-11-21T12:00:00Z"}
    result = duetime("watch", task_id.lower(), "--json")
    (line,) = result.stdout.splitlines()
    assert (result.exit_code, json.loads(line)["version"], json.loads(line)["item"]["state"]) == (0, 7, "succeeded")
    assert "payload" not in json.loads(line)["item"]
    deployment.tasks[task_id] |= {"state": "failed"}
    result = duetime("watch", task_id)
    assert (result.exit_code, task_id in result.stdout, "failed" in result.stdout) == (1, True, True)


@pytest.mark.parametrize("arguments", [(), ("A", "--mine"), ("--schedule=a", "--mine"), ("A", "--state=failed")])
def test_the_watch_command_accepts_exactly_one_selection(
    duetime: Callable[..., Result], arguments: tuple[str, ...]
) -> None:
    """`watch` takes an id, a schedule, or all tasks; only all tasks can be filtered."""
    assert duetime("watch", *arguments).exit_code == 2


def test_many_stale_messages_cause_one_read_per_second() -> None:
    """Many `stale` messages in a row cause few reads, but the last message is always followed by a read."""
    remote = Remote(deque([[{"kind": "stale", "refs": ["1"], "after": 0.004} for _ in range(500)]]))
    remote.connections[0].append({"wait": 60.0})
    remote.records["end"] = (1, item("end", 1))
    readings: list[datetime] = []
    watch = remote.watch("schedule:all")

    def read() -> Steps[list[Change]]:
        readings.append(remote.now)
        if remote.now >= START + timedelta(seconds=2):
            remote.records["end"] = (2, item("end", 2))
        return (yield from remote.read())

    watch.read = read
    for change in remote.changes(watch):
        if change.version == 2:
            break
    assert remote.now - START <= timedelta(seconds=4), "the last message is followed, too"
    # Two of the reads belong to the new connection.
    assert len(readings) <= 2 + 3
