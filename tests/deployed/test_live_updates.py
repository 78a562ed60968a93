"""Tests of live updates on the deployed stack, from a request through the table's stream to a WebSocket."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from duetime_client.errors import Unreachable
from duetime_client.live_connection import WebSocketConnection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_client import Client

PATIENCE = 60.0


def received(connection: WebSocketConnection, kind: str) -> Mapping[str, Any]:
    """Wait for the next message of this kind, and return it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        frame = connection.receive(timeout=1.0) or {}
        if frame.get("kind") == kind:
            return frame
    raise AssertionError(f"no {kind} in {PATIENCE} s")


def changed(connection: WebSocketConnection, version: int) -> Mapping[str, Any]:
    """Wait for the next change to a version newer than the given version; older changes may still arrive."""
    while True:
        for change in received(connection, "change")["changes"]:
            if change["version"] > version:
                found: Mapping[str, Any] = change
                return found


def test_a_change_reaches_a_connection_that_a_ticket_has_opened(client: Client) -> None:
    """A change reaches a connection that was opened with a ticket, and the ticket can be used only once."""
    task = client.tasks.create("duetime.probe", delay_seconds=7_200, tags={"a": "b"})
    ticket = client.watch_tickets.create()
    with WebSocketConnection(ticket.address) as connection:
        connection.send({"do": "subscribe", "ref": "one", "topic": f"task:{task.id}"})
        snapshot = received(connection, "snapshot")
        assert (snapshot["ref"], snapshot["item"]["id"], snapshot["item"]["tags"]) == ("one", task.id, {"a": "b"})
        client.tasks.pause(task.id)
        change = changed(connection, snapshot["version"])
        assert (change["id"], change["refs"], change["item"]["state"]) == (task.id, ["one"], "paused")
        assert change["version"] == client.tasks.get(task.id).version
        connection.send({"do": "ping", "ref": "p"})
        assert received(connection, "pong")["ref"] == "p"
        connection.send({"do": "dance"})
        assert received(connection, "error")["code"] == "fields_invalid"
    for address in (ticket.address, ticket.url, f"{ticket.url}?ticket=made-up"):
        with pytest.raises(Unreachable):
            WebSocketConnection(address)


def test_the_client_follows_a_task_to_its_end(client: Client) -> None:
    """Each change that the client receives is newer than the previous change, and the last change is the task's end."""
    task = client.tasks.create("duetime.probe", delay_seconds=3)
    versions = []
    for change in client.tasks.watch(task.id):
        versions.append(change.version)
        last = change
    assert last.item is not None
    assert last.item["state"] == "succeeded"
    assert versions == sorted(set(versions))
