"""Tests the pages for switches and locks in a browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.scenarios.scenario import PLAIN, SECOND

if TYPE_CHECKING:
    from tests.console.conftest import Console
    from tests.console.world import World

pytestmark = pytest.mark.slow


def test_a_type_is_stopped_with_a_reason_and_started_again(console: Console, world: World) -> None:
    """A stopped type is listed with its reason; "Start again" lets the type's tasks start."""
    page = console.open("/switches")
    expect(page.get_by_role("heading", name="Nothing is stopped or limited")).to_be_visible()
    page.get_by_role("button", name="Set a switch").click()
    page.get_by_role("textbox", name="Name").fill(PLAIN)
    page.get_by_role("textbox", name="Reason").fill("the bank is closed")
    page.get_by_role("button", name="Stop", exact=True).click()
    row = page.locator("tbody tr")
    expect(row).to_contain_text("the bank is closed")
    console.check_accessibility(page)
    task_id = world.create(type=PLAIN)
    world.run(20 * SECOND)
    assert world.ask("GET", f"/v1/tasks/{task_id}")["state"] == "waiting"
    expect(row.locator(".chip")).to_have_text("stopped")
    row.get_by_role("button", name="Start again…").click()
    page.locator("dialog").get_by_role("button", name="Start again").click()
    expect(page.get_by_role("heading", name="Nothing is stopped or limited")).to_be_visible()
    world.run(120 * SECOND)
    assert world.ask("GET", f"/v1/tasks/{task_id}")["state"] == "succeeded"


def test_a_type_is_limited_in_running_tasks_and_starts(console: Console, world: World) -> None:
    """Both limits of a switch are set with one form and are shown in the list."""
    page = console.open("/switches")
    page.get_by_role("button", name="Set a switch").click()
    page.get_by_role("textbox", name="Name").fill(PLAIN)
    page.get_by_role("spinbutton", name="At most at once").fill("3")
    page.get_by_role("spinbutton", name="Starts").fill("5")
    page.get_by_role("spinbutton", name="In seconds").fill("60")
    console.check_accessibility(page)
    page.get_by_role("button", name="Limit", exact=True).click()
    expect(page.locator("tbody tr")).to_contain_text("at most 3 at once; 5 starts in 60 s")
    (switch,) = world.ask("GET", "/v1/switches")["switches"]
    assert (switch["stopped"], switch["max_concurrent"]) == (False, 3)
    assert switch["rate"] == {"limit": 5, "per_seconds": 60, "burst": 0}


def test_a_lock_shows_the_task_that_holds_it(console: Console, world: World) -> None:
    """The list shows a lock's key, and the name and type of its holder as a link to the task."""
    page = console.open("/locks")
    expect(page.get_by_role("heading", name="No lock is in use")).to_be_visible()
    page.close()
    world.do(lambda live: setattr(live, "act", lambda *_: live.take(60 * SECOND)))
    task_id = world.create(type=PLAIN, name="month 3", lock={"key": "db-17"})
    world.run(5 * SECOND)
    page = console.open("/locks")
    expect(page.locator("tbody tr strong")).to_have_text("db-17")
    expect(page.get_by_role("link", name="month 3")).to_have_attribute("href", f"#/tasks/{task_id}")
    expect(page.locator("tbody tr")).to_contain_text(re.compile(rf"month 3 · {PLAIN} · for \d"))
    console.check_accessibility(page)
