"""Tests the client's requests for quotas, and how the `quotas` commands print quotas and their use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.quotas import Quota
from duetime_client import Client, RateLimited
from duetime_client.commands.quotas import NAMES
from tests.client.deployment import Answer, Deployment, problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]

UNSET: dict[str, Any] = dict.fromkeys(NAMES)
OWN = {
    "owner": "1:role/a",
    "own": {**UNSET, "creates_per_second": 20},
    "reason": "a loop",
    "updated_at": "2026-11-21T11:00:00Z",
    "updated_by": "ops",
}
STATUS = {
    **OWN,
    "limits": {**UNSET, "creates_per_second": 20, "open_tasks": 10_000},
    "used": {"creates_per_second": 3.5, "open_tasks": 1_234},
}


def test_the_command_knows_every_quota() -> None:
    """The command lists the API's quotas, in the API's order."""
    assert tuple(Quota) == NAMES


def test_quotas_are_replaced_as_a_whole_and_read_by_owner(client: Client, deployment: Deployment) -> None:
    """The owner is encoded in the path, and a request to set quotas is idempotent and retried after a lost response."""
    deployment.scripted += [Answer(None), Answer(200, STATUS), Answer(200, STATUS), Answer(200, STATUS)]
    found = client.quotas.put("1:role/a", {"creates_per_second": 20}, reason="a loop")
    assert (found.limits["open_tasks"], found.used["creates_per_second"]) == (10_000, 3.5)
    client.quotas.get("1:role/a")
    client.quotas.delete("1:role/a")
    assert [one.method for one in deployment.received] == ["PUT", "PUT", "GET", "DELETE"]
    assert {one.target for one in deployment.received} == {"/stage/v1/quotas/1%3Arole%2Fa"}
    assert deployment.received[1].document == {"creates_per_second": 20, "reason": "a loop"}


def test_an_error_names_the_quota(client: Client, deployment: Deployment) -> None:
    """The error for a used-up quota names the quota."""
    used_up = problem(429, "quota_exceeded", "used up")
    used_up.document["quota"] = "creates_per_second"
    deployment.scripted += [used_up] * 10
    with pytest.raises(RateLimited) as caught:
        client.quotas.list()
    assert caught.value.quota == "creates_per_second"


def test_the_command_sets_quotas_and_shows_their_usage(duetime: Run, deployment: Deployment) -> None:
    """Each limit is printed with its source; an unknown quota is refused by name before any request."""
    deployment.scripted.append(Answer(200, STATUS))
    done = duetime("quotas", "set", "1:role/a", "creates_per_second=20", "--reason", "a loop")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[1:] == [
        ["creates_per_second", "20", "3.5", "its", "own"],
        ["open_tasks", "10,000", "1,234", "default"],
    ]
    assert deployment.received[0].document == {"creates_per_second": 20, "reason": "a loop"}
    wrong = duetime("quotas", "set", "1:role/a", "creates=20")
    assert wrong.exit_code == 2
    assert "'creates=20'" in wrong.output
    assert len(deployment.received) == 1


def test_the_command_lists_and_deletes_quotas(duetime: Run, deployment: Deployment) -> None:
    """The default quotas are listed first, and a deletion prints the deleted quotas."""
    listed = {"defaults": {**UNSET, "open_tasks": 10_000}, "owners": [OWN]}
    deployment.scripted += [Answer(200, listed), Answer(200, {"defaults": UNSET, "owners": []}), Answer(200, STATUS)]
    found = duetime("quotas", "list").stdout
    assert found.startswith("defaults: open_tasks 10,000\n")
    assert "1:role/a" in found
    assert duetime("quotas", "list").stdout == "defaults: none\nno owner has quotas of its own\n"
    deleted = duetime("quotas", "delete", "1:role/a").stdout
    assert deleted == "deleted the quotas of 1:role/a (were: creates_per_second 20)\n"
