"""Tests the console's overview in a browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from duetime.environment_variables import Variable
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND

if TYPE_CHECKING:
    from tests.console.conftest import Console
    from tests.console.world import World

URL = "https://endpoint.example.org/work"


def test_the_next_day_is_drawn_with_colliding_schedules(console: Console, world: World) -> None:
    """Each bar shows the schedule runs and future tasks in half an hour; minutes with colliding schedules are named."""
    for name in ("reports", "backup"):
        daily = {"name": name, "cron": "0 18 * * *", "timezone": "UTC", "task": {"type": PLAIN}}
        world.ask("POST", "/v1/schedules", daily)
    world.create(delay_seconds=5 * HOUR // SECOND)
    page = console.open("/overview")
    bars = page.locator(".load li")
    expect(bars).to_have_count(49)
    expect(bars.filter(has=page.locator("b"))).to_contain_text("2 runs (backup 1, reports 1) 1 minute with several")
    expect(bars.filter(has=page.locator(".tasks-due"))).to_contain_text("1 task")
    expect(page.locator(".legend")).to_contain_text("2 runs of schedules")
    collision = page.locator(".collision")
    expect(collision.locator("summary")).to_contain_text(re.compile("19:00:00 CET · 2 schedules in "))
    expect(collision.get_by_role("link", name="backup")).to_have_count(0)
    collision.locator("summary").click()
    expect(collision.get_by_role("link", name="backup")).to_be_visible()
    bars.filter(has=page.locator("b")).get_by_role("button").click()
    expect(page.locator(".period").get_by_role("link", name="reports 1")).to_have_attribute(
        "href", "#/schedules/reports"
    )
    page.locator(".period").get_by_role("link", name="Tasks due then").click()
    expect(page.get_by_label("Search tasks")).to_have_value(re.compile(r"due:>2026-11-\d\dT19:00:00\+01:00 due:<"))
    page.go_back()
    expect(bars).to_have_count(49)
    page.get_by_role("button", name="7 days").click()
    expect(bars).to_have_count(57)
    expect(page.locator(".legend")).to_contain_text("14 runs of schedules")
    console.check_accessibility(page)


def test_the_cost_of_tasks_is_estimated(console: Console, world: World) -> None:
    """Three tasks with four write units each cost 2.5 millionths of a dollar per task; the sum is the day's cost."""
    for _ in range(3):
        world.create()
    world.run(10 * SECOND)
    page = console.open("/overview")
    figures = page.locator("section", has=page.get_by_role("heading", name="Throughput and cost"))
    expect(figures.locator("dt")).to_have_text(["Ended per hour", "Per million tasks", "Today"])
    expect(figures.locator("dd")).to_have_text(["3", "$2.50", "7.5 µ$"])
    expect(figures).to_contain_text("Estimated from the last 3 tasks")
    page.goto(page.url.replace("/overview", "/tasks"))
    page.get_by_role("button", name="Dates and columns").click()
    expect(page.locator(".cell-cost")).to_have_count(0)
    page.get_by_label("Cost").check()
    expect(page.locator(".cell-cost").first).to_have_text("2.5 µ$")


def test_reasons_why_tasks_do_not_run_are_shown(console: Console, world: World) -> None:
    """A stopped type is a problem with a link to the page for switches, and the other checks are good."""
    world.ask("PUT", f"/v1/switches/type/{PLAIN}", {"stopped": True, "reason": "maintenance"})
    page = console.open("/overview")
    health = page.locator(".health")
    expect(health.locator(".bad")).to_have_count(1)
    expect(health.get_by_role("link", name="1 switch is stopping")).to_have_attribute("href", "#/switches")
    expect(health).to_contain_text("Due tasks start, no backlog")
    expect(health).to_contain_text("No host keeps failing")


@pytest.mark.slow
def test_the_overview_counts_open_circuits(console: Console, world: World) -> None:
    """An open circuit is counted, with a link to the page for switches, which names the host."""
    world.do(lambda live: setattr(live, "endpoint_down_until", live.now + HOUR))
    for number in range(12):
        world.create(target={"kind": "http", "url": URL}, delay_seconds=number)
    world.run(30 * SECOND)
    page = console.open("/overview")
    circuit = page.locator(".health").get_by_role("link", name="1 host not called")
    expect(circuit).to_be_visible()
    circuit.click()
    expect(page.locator("table", has_text="endpoint.example.org")).to_contain_text("not called")


@pytest.mark.slow
def test_an_operator_sees_the_trigger_and_the_queues(console: Console, world: World) -> None:
    """The overview shows that the trigger runs or how long ago it ran; the page for workers has a row per queue."""
    world.create(priority="high", delay_seconds=100)
    world.run(3 * MINUTE)
    page = console.open("/overview")
    health = page.locator(".health")
    expect(health).to_contain_text("The trigger runs")
    expect(health).to_contain_text("No due tasks in the queues")
    world.do(lambda live: setattr(live, "ticking", False))
    world.run(10 * MINUTE)
    page.reload()
    expect(health.get_by_role("link", name="The trigger last ran 1")).to_have_attribute("href", "#/workers")
    page.goto(page.url.replace("/overview", "/workers"))
    rows = page.get_by_role("table", name="Queues").locator("tbody tr")
    expect(rows).to_contain_text(["high", "normal", "low"])
    console.check_accessibility(page)


@pytest.mark.slow
def test_a_user_who_is_not_an_operator_requests_no_trigger_data(console: Console, world: World) -> None:
    """For a user who is not an operator, the page has no section about the trigger and requests no trigger data."""
    world.do(lambda live: live.environ.update({Variable.OPERATORS: "boss", Variable.ADMINS: ""}))
    page = console.open("/overview")
    expect(page.locator(".health")).to_contain_text("Due tasks start")
    expect(page.locator(".health")).not_to_contain_text("trigger")
    assert not [path for _, path in world.requests if path.startswith("/v1/dispatch")]


@pytest.mark.slow
def test_counts_link_to_lists_with_the_same_tasks(console: Console, world: World) -> None:
    """A count on the overview, and the list to which it links, include topology nodes, unlike the plain list."""
    world.ask("POST", "/v1/topologies", {"nodes": {"a": {"type": PLAIN}, "b": {"type": PLAIN}}})
    world.run(MINUTE)
    page = console.open("/overview")
    count = page.get_by_label("Tasks by state").get_by_role("link", name="succeeded")
    expect(count).to_contain_text("3")
    count.click()
    expect(page.locator("tr[data-row]")).to_have_count(3)
    with_nodes = page.get_by_role("button", name="with nodes")
    expect(with_nodes).to_be_disabled()
    page.get_by_role("group", name="Views").get_by_role("link", name="All").click()
    expect(page.locator("tr[data-row]")).to_have_count(1)
    with_nodes.click()
    expect(page.locator("tr[data-row]")).to_have_count(3)


@pytest.mark.slow
def test_unknown_health_is_not_green(console: Console) -> None:
    """If the lists cannot be read, health is shown as unknown, with the reason."""
    console.expected = ("Failed to load resource",)
    page = console.open("/settings")
    page.route(re.compile(r"/v1/(tasks|switches)\b"), lambda route: route.abort())
    page.goto(page.url.replace("/settings", "/overview"))
    health = page.locator(".health")
    for text in ("Oldest due task: not known", "Switches and failing hosts: not known", "Failed tasks: not known"):
        expect(health.locator("li", has_text=text).locator(".unknown")).to_have_text("?")
    expect(health.locator("li .good")).to_have_count(2)
    expect(health).not_to_contain_text("no backlog")
