"""Tests the client's requests for API keys, and the `keys` commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

import pytest

from duetime.domain.callers import Role
from duetime_client import Unreachable, api_keys
from duetime_client.commands.keys import RoleName
from tests.client.deployment import Answer, Deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from duetime_client import Client

    Run = Callable[..., Result]

KEY = {
    "id": "01a1fc020e348e0a2aaf",
    "name": "billing api",
    "owner": "billing",
    "roles": ["writer", "worker"],
    "state": "active",
    "created_at": "2026-11-21T11:00:00Z",
    "created_by": "ops",
    "expires_at": "2027-02-19T12:00:00Z",
    "revoked_at": None,
    "used_at": "2026-11-21T11:00:00Z",
}
TEXT = f"dtk_{KEY['id']}_{'0' * 64}"


def test_client_and_command_know_every_role() -> None:
    """The client and the command list the API's roles, in the API's order."""
    assert [*RoleName] == [*get_args(api_keys.Role)] == [*Role]


def test_a_key_is_created_and_printed_once(duetime: Run, deployment: Deployment) -> None:
    """For scripts, standard output contains only the key; the key's roles are printed on the error stream."""
    deployment.scripted.append(Answer(201, {**KEY, "key": TEXT}))
    wanted = ("--role", "writer", "--role", "worker", "--for", "billing", "--expires", "90d")
    result = duetime("keys", "create", "billing api", *wanted)
    assert (result.exit_code, result.stdout) == (0, f"{TEXT}\n")
    assert "key 01a1fc020e348e0a2aaf of billing, writer, worker until 2027-02-19 12:00 UTC" in result.stderr
    body = deployment.received[0].document
    assert body["roles"] == ["writer", "worker"]
    assert (body["name"], body["owner"], body["expires_at"][:10]) == ("billing api", "billing", "2027-02-19")


def test_creating_a_key_is_not_retried(client: Client, deployment: Deployment) -> None:
    """Creating a key is not retried, because the first key could be lost; omitted fields are not sent."""
    deployment.scripted.append(Answer(201, {**KEY, "key": TEXT}))
    assert client.api_keys.create("n", ["reader"]).key == TEXT
    assert deployment.received[0].document == {"name": "n", "roles": ["reader"]}
    assert "Idempotency-Key" not in deployment.received[0].headers
    deployment.scripted.append(Answer(None))
    with pytest.raises(Unreachable):
        client.api_keys.create("n", ["reader"])
    assert len(deployment.received) == 2


def test_keys_are_listed_page_by_page(duetime: Run, deployment: Deployment) -> None:
    """Keys are listed as a table or as one JSON array, without secrets."""
    revoked = {**KEY, "state": "revoked", "used_at": None, "expires_at": None}
    pages = [Answer(200, {"keys": [KEY], "next_token": "t"}), Answer(200, {"keys": [revoked], "next_token": None})]
    deployment.scripted += pages
    table = duetime("keys", "list").stdout
    assert "billing api" in table
    assert ("writer, worker" in table, "revoked" in table, "never" in table) == (True, True, True)
    deployment.scripted += pages
    assert json.loads(duetime("keys", "list", "--json").stdout) == [KEY, revoked]


def test_a_key_is_revoked_by_its_id(duetime: Run, deployment: Deployment) -> None:
    """The command prints the owner of the revoked key."""
    deployment.scripted.append(Answer(200, {**KEY, "state": "revoked"}))
    result = duetime("keys", "revoke", str(KEY["id"]))
    assert result.stdout == "revoked the key 01a1fc020e348e0a2aaf (billing api) of billing\n"
    assert (deployment.received[0].method, deployment.received[0].path) == ("DELETE", f"/stage/v1/keys/{KEY['id']}")


def test_an_unknown_role_or_invalid_duration_is_a_usage_error(duetime: Run, deployment: Deployment) -> None:
    """An unknown role or an invalid duration is a usage error, and nothing is sent."""
    for arguments in (["--role", "root"], ["--role", "reader", "--expires", "soon"], []):
        assert duetime("keys", "create", "n", *arguments).exit_code == 2
    assert deployment.received == []
