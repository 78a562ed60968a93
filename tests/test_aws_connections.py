"""Connections of AWS clients do not outlive their test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import Clients
from tests.aws_connections import close_connections

if TYPE_CHECKING:
    import pytest

    from duetime_local.emulator import Emulator


def test_connections_are_closed_and_a_client_opens_another(engine: Emulator) -> None:
    """After a test no client has a connection left, and one that is shared by tests can be used again."""
    client = engine.client("sqs")
    client.list_queues()
    pools = client._endpoint.http_session._manager.pools  # type: ignore[attr-defined]  # nothing else tells
    assert len(pools) == 1
    close_connections()
    assert len(pools) == 0
    client.list_queues()
    assert len(pools) == 1


def test_connections_to_the_table_are_closed_as_well(engine: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of duetime's own table has connections of another kind, which do not outlive a test either."""
    for name, value in engine.environ.items():
        monkeypatch.setenv(name, value)
    client = Clients().dynamodb()
    client.list_tables()
    idle = client._endpoint.http_session._idle  # type: ignore[attr-defined]  # nothing else tells
    assert sum(map(len, idle.values())) == 1
    close_connections()
    assert sum(map(len, idle.values())) == 0
