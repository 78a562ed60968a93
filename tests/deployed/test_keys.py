"""Tests of API keys on the deployed stack, where the gateway calls the authorizer function and passes on its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from duetime_client import Client, Forbidden

if TYPE_CHECKING:
    from duetime_local.stack import Stack


def test_a_key_is_checked_by_the_gateway(deployed: Stack, client: Client) -> None:
    """A key acts for its owner within its roles; a revoked key, a forged key, and a missing key are refused."""
    url = deployed.ready.api_url
    key = client.api_keys.create("program", ["writer"], owner="team")
    with Client(url, api_key=key.key) as program:
        task = program.tasks.create("sleep", delay_seconds=3600)
        with pytest.raises(Forbidden) as refused:
            program.dispatch.get_status()
        assert refused.value.code == "operator_required"
        with Client(url, owner="team") as team:
            assert team.tasks.cancel(task.id).state == "cancelled"
        assert client.api_keys.revoke(key.id).state == "revoked"
        with pytest.raises(Forbidden):
            program.tasks.get(task.id)
    with Client(url, api_key=key.key[:-1] + ("0" if key.key[-1] != "0" else "1")) as forged, pytest.raises(Forbidden):
        forged.tasks.get(task.id)
    assert httpx.get(f"{url}/key/v1/tasks", timeout=60).status_code == 401
