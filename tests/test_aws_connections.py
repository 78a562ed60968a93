"""Tests that AWS clients' connections do not outlive their test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.aws_connections import close_connections

if TYPE_CHECKING:
    from duetime_local.emulator import Emulator


def test_connections_are_closed_and_a_shared_client_reconnects(engine: Emulator) -> None:
    """After a test, no client has an open connection, and a client that tests share can be used again."""
    client = engine.client("sqs")
    client.list_queues()
    pools = client._endpoint.http_session._manager.pools  # type: ignore[attr-defined]  # private
    assert len(pools) == 1
    close_connections()
    assert len(pools) == 0
    client.list_queues()
    assert len(pools) == 1
