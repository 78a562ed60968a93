"""Tests the client's requests for switches, and the commands with their output."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from duetime_client import Client, Forbidden, UnexpectedResponse
from tests.client.deployment import Answer, Deployment, problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]

SWITCH = {
    "scope": "type",
    "name": "report",
    "stopped": True,
    "max_concurrent": 5,
    "reason": "a bad release",
    "updated_at": "2026-11-21T11:00:00Z",
    "updated_by": "ops",
}
CIRCUIT = {
    "host": "example.org",
    "state": "half_open",
    "openings": 2,
    "reason": "Http503",
    "opened_at": "2026-11-21T11:58:00Z",
    "open_until": "2026-11-21T12:00:30Z",
}


def test_switches_are_listed_with_circuits(client: Client, deployment: Deployment) -> None:
    """Each switch and circuit has the values in the response."""
    deployment.scripted.append(Answer(200, {"switches": [SWITCH], "circuits": [CIRCUIT]}))
    held = client.switches.list()
    assert (deployment.received[0].method, deployment.received[0].path) == ("GET", "/stage/v1/switches")
    assert (held.switches[0].max_concurrent, held.switches[0].stopped) == (5, True)
    assert (held.circuits[0].host, held.circuits[0].state) == ("example.org", "half_open")


def test_a_switch_is_replaced_as_a_whole_and_idempotently(client: Client, deployment: Deployment) -> None:
    """A request to set a switch contains all fields, and is repeated after a lost response."""
    deployment.scripted += [Answer(None), Answer(200, SWITCH)]
    assert client.switches.put("type", "report", stopped=True, reason="a bad release").name == "report"
    body = {"stopped": True, "max_concurrent": None, "reason": "a bad release"}
    assert [request.document for request in deployment.received] == [body, body]
    assert {request.target for request in deployment.received} == {"/stage/v1/switches/type/report"}


def test_a_switch_is_read_and_deleted_by_its_name(client: Client, deployment: Deployment) -> None:
    """A switch's name is encoded in the path, and the switch for all tasks is called `all`."""
    deployment.scripted += [Answer(200, SWITCH)] * 3
    client.switches.delete("owner", "1:role/a&b")
    client.switches.delete("all")
    client.switches.get("type", "a/b%")
    assert [(one.method, one.target) for one in deployment.received] == [
        ("DELETE", "/stage/v1/switches/owner/1%3Arole%2Fa%26b"),
        ("DELETE", "/stage/v1/switches/all/all"),
        ("GET", "/stage/v1/switches/type/a%2Fb%25"),
    ]


def test_an_invalid_switch_raises_unexpected_response(client: Client, deployment: Deployment) -> None:
    """A response that is not a switch raises `UnexpectedResponse`."""
    deployment.scripted += [Answer(200, {"switches": 1}), problem(403, "operator_required", "only an operator")]
    with pytest.raises(UnexpectedResponse):
        client.switches.list()
    with pytest.raises(Forbidden, match="operator"):
        client.switches.put("all", stopped=True)


def test_the_command_lists_switches_and_circuits(duetime: Run, deployment: Deployment) -> None:
    """Switches and circuits are printed in tables with local times, or as JSON; an empty list is reported."""
    held = {"switches": [SWITCH], "circuits": [CIRCUIT]}
    deployment.scripted += [Answer(200, held), Answer(200, held), Answer(200, {"switches": [], "circuits": []})]
    told = duetime("switches", "list").stdout
    for words in (
        "report",
        "stopped, at most 5 running",
        "20:00",
        "ops",
        "a bad release",
        "example.org",
        "half_open",
        "Http503",
    ):
        assert words in told
    assert json.loads(duetime("switches", "list", "--json").stdout) == held
    assert "no switches" in duetime("switches", "list").stdout


def test_the_command_sets_shows_and_deletes_switches(duetime: Run, deployment: Deployment) -> None:
    """Options define the switch, and a switch without effect is refused before anything is sent."""
    assert duetime("switches", "set", "type", "report").exit_code == 2
    assert duetime("switches", "set", "task", "report", "--stop").exit_code == 2
    assert not deployment.received
    deployment.scripted += [Answer(200, SWITCH)] * 3
    assert duetime("switches", "set", "type", "report", "--max-concurrent", "5", "--reason", "slow").exit_code == 0
    assert deployment.received[0].document == {"stopped": False, "max_concurrent": 5, "reason": "slow"}
    assert "a bad release" in duetime("switches", "show", "type", "report").stdout
    assert "report" in duetime("switches", "delete", "type", "report").stdout
    assert [one.method for one in deployment.received[1:]] == ["GET", "DELETE"]


def test_control_characters_in_the_reason_of_a_switch_are_escaped(duetime: Run, deployment: Deployment) -> None:
    """Control characters in a switch's reason are escaped."""
    deployment.scripted.append(
        Answer(200, {"switches": [{**SWITCH, "reason": "\x1b[2J", "updated_by": "\x07"}], "circuits": []})
    )
    assert "\x1b[2J" not in duetime("switches", "list").stdout
