"""Tests that no script blocks a page for more than 100 ms, whatever the page contains and however often it changes."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.console.test_tasks import ROWS, states_of
from tests.scenarios.scenario import PLAIN, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.console.conftest import Console
    from tests.console.world import World
    from tests.scenarios.live import Live

LATER = 7_200
BUDGET_MS = 100
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60))))"


def longest_task(page: Page, act: Callable[[], None]) -> float:
    """Return the longest continuous work of the page's thread during an action, in milliseconds of CPU time.

    Elapsed time would depend on other processes.
    """
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["toplevel"])
    act()
    page.evaluate(FRAMES)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks: list[float] = [
        event["tdur"] for event in events if (event["pid"], event["tid"]) in threads and "tdur" in event
    ]
    return max(tasks) / 1_000


def layers(levels: int, width: int) -> dict[str, dict[str, Any]]:
    """Return a graph in levels, in which each node depends on up to three nodes in the previous level."""
    nodes: dict[str, dict[str, Any]] = {}
    for level in range(levels):
        for at in range(width):
            parents = {(at * 13 + each * 5) % width for each in range(1 + at % 3)} if level else set()
            depends_on = [f"{level - 1}_{parent}" for parent in sorted(parents)]
            nodes[f"{level}_{at}"] = {"type": PLAIN, "depends_on": depends_on}
    return nodes


@pytest.mark.slow
def test_a_graph_of_a_thousand_nodes_can_be_panned_and_zoomed(console: Console, world: World) -> None:
    """Panning and zooming a thousand nodes never blocks the page, and a search finds one node."""
    topology = world.ask("POST", "/v1/topologies", {"nodes": layers(25, 40), "delay_seconds": LATER})["id"]
    page = console.open(f"/topologies/{topology}")
    graph = page.get_by_role("application")
    expect(page.get_by_text("Arranging")).to_have_count(0)
    box = graph.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def move() -> None:
        page.mouse.move(x, y)
        page.mouse.down()
        for step in range(40):
            page.mouse.move(x + step * 4 - 80 * (step % 2), y + step * 2)
        page.mouse.up()
        for delta in (-240, -240, -240, 240, 240, 240):
            page.mouse.wheel(0, delta)

    assert longest_task(page, move) <= BUDGET_MS
    page.get_by_role("button", name="Fit").click()
    page.get_by_label("Search nodes").fill("12_7")
    page.get_by_role("button", name="Nodes", exact=True).click()
    expect(page.locator(".node-table tbody tr")).to_have_count(1)


@pytest.mark.slow
def test_a_list_with_fifty_changes_per_second_finally_equals_rest(console: Console, world: World) -> None:
    """A hundred tasks change repeatedly, fifty at a time; the list stays responsive and finally agrees with REST."""
    body = {"type": PLAIN, "delay_seconds": LATER}
    ids = world.do(lambda live: [str(live.ask("POST", "/v1/tasks", body).body["id"]) for _ in range(100)])
    page = console.open("/tasks")
    expect(page.locator(".live")).to_have_text("Live")
    expect(page.locator(ROWS)).to_have_count(100)
    paused: set[str] = set()

    def change(live: Live, chosen: list[str]) -> None:
        for task_id in chosen:
            action = "resume" if task_id in paused else "pause"
            paused.symmetric_difference_update({task_id})
            assert live.ask("POST", f"/v1/tasks/{task_id}/{action}", {}).status == 200

    def burst() -> None:
        for part in (ids[:50], ids[25:75], ids[50:]):
            world.do(partial(change, chosen=part))
        expect(page.locator(f"{ROWS} .chip.state-paused")).to_have_count(len(paused))

    assert longest_task(page, burst) <= BUDGET_MS
    world.run(SECOND)
    by_rest = [task["state"] for task in world.ask("GET", "/v1/tasks")["tasks"]]
    assert {"paused", "scheduled"} == set(by_rest)
    expect(page.locator(f"{ROWS} .chip.state-paused")).to_have_count(by_rest.count("paused"))
    assert states_of(page) == by_rest
