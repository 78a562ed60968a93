"""Tests the progress, the rejections and the stopping of bulk operations in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.scenarios.scenario import PLAIN, SECOND

if TYPE_CHECKING:
    from tests.console.conftest import Console
    from tests.console.world import World

pytestmark = pytest.mark.slow

LATER = 7_200
COUNTS = ".counts strong"


def test_a_paced_action_shows_its_progress_and_can_be_stopped(console: Console, world: World) -> None:
    """A long action opens its operation's page, whose counts grow; changes made before a stop are kept."""
    for _ in range(20):
        world.create(type=PLAIN, delay_seconds=LATER, tags={"team": "docs"})
    page = console.open("/tasks?q=tag:team:docs")
    page.get_by_role("button", name="Cancel all…").click()
    page.get_by_role("button", name="Count the tasks").click()
    page.get_by_label("Tasks a second, at most").fill("1")
    page.get_by_role("button", name="Cancel 20").click()
    expect(page.locator("h1")).to_contain_text("Cancelling tasks")
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call")).to_contain_text("duetime tasks cancel --of-tag team=docs --per-second 1")
    world.run(8 * SECOND)
    expect(page.locator(COUNTS).nth(2)).not_to_have_text("0")
    console.check_accessibility(page)
    page.get_by_role("button", name="Stop").click()
    page.locator("dialog").get_by_role("button", name="Stop").click()
    expect(page.locator("h1 .chip")).to_have_text("cancelled")
    (read,) = world.ask("GET", "/v1/bulk-operations")["operations"]
    expect(page.locator(".last-call")).to_contain_text(f"duetime bulk cancel {read['id']}")
    expect(page.locator(COUNTS)).to_have_text([str(read[name]) for name in ("examined", "matched", "affected")] + ["0"])
    assert 0 < read["affected"] < 20


def test_a_new_operation_appears_in_the_list(console: Console, world: World) -> None:
    """An empty page describes what the page will contain; on a phone, each operation is shown as a card."""
    page = console.open("/bulk-operations", narrow=True)
    expect(page.get_by_role("heading", name="No bulk operations")).to_be_visible()
    for _ in range(4):
        world.create(type=PLAIN, delay_seconds=LATER)
    world.ask("POST", "/v1/tasks/cancel", {"filter": {"type": PLAIN}, "per_second": 1})
    page.keyboard.press("r")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    console.check_accessibility(page)


def test_operations_of_the_system_without_effect_are_only_counted(console: Console) -> None:
    """Requested operations are listed, but not the operations that duetime starts for a topology without open nodes."""
    page = console.open("/settings")
    base: dict[str, Any] = {
        "state": "succeeded", "created_at": "2026-11-21T02:00:00.000Z", "finished_at": "2026-11-21T02:00:01.000Z",
        "topology_id": None, "examined": 0, "matched": 0, "affected": 0, "refused": {}, "reason": None,
    }  # fmt: skip
    operations = [
        {**base, "id": "01M7YJJ6RJ000VK12BGKK15FQ1", "kind": "end", "created_by": None},
        {**base, "id": "01M7YJJ6RJ000VK12BGKK15FQ2", "kind": "cancel", "created_by": "ada"},
    ]
    page.route("**/v1/bulk-operations", lambda route: route.fulfill(json={"operations": operations}))
    page.goto(page.url.replace("/settings", "/bulk-operations"))
    expect(page.locator("tr[data-row]")).to_have_count(1)
    expect(page.locator("tr[data-row]")).to_contain_text("cancel tasks")
    expect(page.locator("main")).to_contain_text(
        "1 operation that duetime started and that had nothing to do is not shown."
    )
