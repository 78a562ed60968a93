"""Tests the list, versions, differences and runs of topology definitions in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.scenarios.scenario import MINUTE, PLAIN

if TYPE_CHECKING:
    from tests.console.conftest import Console
    from tests.console.world import World

pytestmark = pytest.mark.slow

HOSTILE = """<img src=x onerror="document.title='hit'">"""
BODY: dict[str, Any] = {
    "description": HOSTILE,
    "parameters": {"region": {"enum": ["eu", "us"]}, "rows": {"type": "integer", "default": 3}},
    "nodes": {
        "load": {"type": PLAIN, "payload": "<duetime.parameters.region>"},
        "beside": {"type": PLAIN},
        "report": {"type": PLAIN, "depends_on": ["load"]},
    },
    "outputs": ["report"],
}


def test_a_definition_is_listed_compared_and_run(console: Console, world: World) -> None:
    """The page lists a definition with its versions and differences, and a run names its definition."""
    page = console.open("/definitions")
    expect(page.get_by_role("heading", name="No definitions yet")).to_be_visible()
    for timeout in (None, 600):
        world.ask("PUT", "/v1/topologies/definitions/nightly", {**BODY, "timeout_seconds": timeout})
    page.reload()
    page.get_by_role("link", name="nightly").click()
    expect(page.locator("h1")).to_contain_text("version 2")
    page.get_by_role("link", name="changes of version 2").click()
    changes = page.locator("section", has=page.get_by_role("heading", name="From version 1 to 2"))
    expect(changes.locator("code")).to_have_text("timeout_seconds")
    expect(changes.locator("ins")).to_have_text("600")
    page.get_by_role("link", name="version 1", exact=True).click()
    expect(page.locator("h1")).to_contain_text("version 1")

    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("region").fill("us")
    dialog.get_by_label("rows").fill("7")
    dialog.get_by_role("button", name="Run", exact=True).click()
    origin = page.get_by_role("link", name="nightly version 1")
    expect(origin).to_be_visible()
    expect(page.locator(".page-head code.tag")).to_have_text(['region = "us"', "rows = 7"])
    expect(page.locator(".page-head button.link")).to_have_text("report")
    page.goto(f"{world.url}#/topologies?q=definition:nightly")
    expect(page.locator("table.topologies tbody tr")).to_have_count(1)
    assert page.title() != "hit"


def test_a_topology_runs_again_from_a_node(console: Console, world: World) -> None:
    """A successful run can be run again from a node's panel; nodes that do not depend on this node keep their tasks."""
    topology = str(world.ask("POST", "/v1/topologies", {"nodes": BODY["nodes"] | {"load": {"type": PLAIN}}})["id"])
    world.run(MINUTE)
    before = {key: node["task_id"] for key, node in world.ask("GET", f"/v1/topologies/{topology}")["nodes"].items()}
    page = console.open(f"/topologies/{topology}?node=load")
    page.get_by_role("button", name="Run again from here").click()
    page.get_by_label("Reason").fill("other rates")
    page.get_by_role("button", name="Run again", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    world.run(MINUTE)
    shown = world.ask("GET", f"/v1/topologies/{topology}")
    assert (shown["state"], shown["run"]) == ("succeeded", 2)
    assert [key for key, node in shown["nodes"].items() if node["task_id"] == before[key]] == ["beside"]
    page.get_by_role("link", name="its own task").click()
    expect(page.get_by_role("table", name="Events")).to_contain_text("retried from load")
