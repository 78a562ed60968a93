"""The overview, in a browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.scenarios.scenario import HOUR, PLAIN, SECOND

if TYPE_CHECKING:
    from tests.console.conftest import Console
    from tests.console.world import World

HOST = "broken.example.org"


def test_the_coming_day_is_drawn_with_its_collisions(console: Console, world: World) -> None:
    """Runs of schedules and far tasks are bars of half hours; minutes in which schedules collide are named."""
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
    expect(page.locator(".coming li")).to_contain_text(re.compile("19:00:00 CET.* in .*backup.*reports"))
    console.check_accessibility(page)


def test_what_tasks_cost_is_estimated_and_says_what_it_leaves_out(console: Console, world: World) -> None:
    """Three tasks of four write units each: 2.5 millionths of a dollar a task, and next to nothing a day."""
    for _ in range(3):
        world.create()
    world.run(10 * SECOND)
    page = console.open("/overview")
    figures = page.locator("section", has=page.get_by_role("heading", name="Throughput and cost"))
    expect(figures.locator("dd")).to_have_text(["3", "$2.50", re.compile("µ\\$$")])
    expect(figures).to_contain_text("Estimated from the last 3 tasks")
    page.goto(page.url.replace("/overview", "/tasks"))
    expect(page.locator(".cell-cost").first).to_have_text("2.5 µ$")


def test_what_keeps_tasks_from_running_is_said(console: Console, world: World) -> None:
    """A stop, tasks that are due and not started, and a task that failed for good: each leads to its page."""
    world.ask("PUT", f"/v1/switches/type/{PLAIN}", {"stopped": True, "reason": "maintenance"})
    page = console.open("/overview")
    health = page.locator(".health")
    expect(health.locator(".bad")).to_have_count(1)
    expect(health.get_by_role("link", name="1 switch stop")).to_have_attribute("href", "#/switches")
    expect(health).to_contain_text("Due tasks start, no backlog")
    expect(health).to_contain_text("No host keeps failing")
