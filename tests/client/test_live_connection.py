"""Tests the connection through the `websockets` package to a server on the loopback interface."""

from __future__ import annotations

import json
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from websockets.sync.server import serve

from duetime_client.errors import Unreachable
from duetime_client.live_connection import WebSocketConnection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from websockets.sync.server import ServerConnection


def _answer(connection: ServerConnection) -> None:
    """Echo each message, but close the connection for `bye`, send a list for `list`, and send invalid JSON for `x`."""
    for text in connection:
        message = json.loads(text)
        if message.get("do") == "bye":
            return
        connection.send("[1]" if message.get("do") == "list" else "no JSON" if message.get("do") == "x" else text)


@pytest.fixture
def url() -> Iterator[str]:
    """Return the server's address."""
    with serve(_answer, "127.0.0.1", 0) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


def test_live_messages_are_json_objects(url: str) -> None:
    """Messages are received, silence returns `None`, a list is read as an empty object, invalid JSON is an error."""
    with WebSocketConnection(f"{url}/live?ticket=t") as connection:
        connection.send({"do": "ping", "ref": "é"})
        assert connection.receive(10) == {"do": "ping", "ref": "é"}
        assert connection.receive(0.01) is None
        connection.send({"do": "list"})
        assert connection.receive(10) == {}
        connection.send({"do": "x"})
        with pytest.raises(Unreachable):
            connection.receive(10)


def test_live_updates_of_the_local_stack_do_not_use_the_proxy(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy cannot reach this machine's loopback interface, so watching the local stack does not use the proxy."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with WebSocketConnection(f"{url}/live?ticket=t") as connection:
        connection.send({"do": "ping"})
        assert connection.receive(10) == {"do": "ping"}


def test_a_closed_connection_raises_an_error_of_this_package(url: str) -> None:
    """Callers see neither the library's errors nor the ticket in the address."""
    connection = WebSocketConnection(f"{url}/live?ticket=secret")
    connection.send({"do": "bye"})
    with pytest.raises(Unreachable) as lost:
        connection.receive(10)
    assert "secret" not in str(lost.value)
    with pytest.raises(Unreachable):
        connection.send({"do": "ping"})
    connection.close()


def test_a_refused_connection_raises_an_error_of_this_package() -> None:
    """A refused connection raises one of the client's own errors."""
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1/live"):
        WebSocketConnection("ws://127.0.0.1:1/live?ticket=t")
