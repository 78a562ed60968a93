"""Tests searches in a browser, including names, tags, times, the palette, views, columns and selections."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.scenarios.scenario import MINUTE, PLAIN, SECOND
from tests.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.console.conftest import Console
    from tests.console.world import World

pytestmark = pytest.mark.slow
LATER = 7_200
ROWS = "tr[data-row]"


def asked_of(world: World, name: str) -> list[str]:
    """Return a parameter's distinct values in the requests for tasks, in the order of the requests."""
    queries = [parse_qs(urlsplit(path).query) for _, path in world.requests if path.startswith("/v1/tasks?")]
    return list(dict.fromkeys(query[name][0] for query in queries if name in query))


def search(page: Page, text: str) -> None:
    """Type and submit a search."""
    page.get_by_label("Search tasks").fill(text)
    page.keyboard.press("Enter")


def test_a_typed_time_is_in_the_displayed_time_zone(console: Console, world: World) -> None:
    """A typed time is in the header's time zone, not the browser's; the link has an offset and works in any zone."""
    page = console.open("/tasks")
    page.get_by_label("Time zone").select_option("Asia/Tokyo")
    search(page, "finished:>2026-11-25T02:00")
    page.wait_for_url(re.compile(re.escape("finished%3A%3E2026-11-25T02%3A00%3A00%2B09%3A00")))
    expect(page.get_by_role("heading", name="No task matches")).to_be_visible()
    assert asked_of(world, "finished_after") == ["2026-11-24T17:00:00.000Z"]
    page.get_by_label("Time zone").select_option("UTC")
    page.reload()
    expect(page.get_by_role("heading", name="No task matches")).to_be_visible()
    assert asked_of(world, "finished_after") == ["2026-11-24T17:00:00.000Z"]


def test_a_time_without_a_date_refers_to_today(console: Console, world: World) -> None:
    """`finished:>02:00` means two o'clock today in the shown time zone, and the zone's offset is added to a link."""
    page = console.open("/tasks?q=finished%3A%3E02%3A00")
    page.wait_for_url(re.compile(r"finished%3A%3E2026-11-\d\dT02%3A00%3A00%2B01%3A00"))
    expect(page.get_by_role("heading", name="No task matches")).to_be_visible()
    (sent,) = asked_of(world, "finished_after")
    assert re.fullmatch(r"2026-11-\d\dT01:00:00.000Z", sent)


def test_words_without_a_qualifier_search_for_a_name(console: Console, world: World) -> None:
    """Words without a qualifier find tasks with this name, and a schedule and topologies with the name are offered."""
    world.create(type=PLAIN, name="month close", delay_seconds=LATER)
    world.create(type=PLAIN, name="other", delay_seconds=LATER)
    world.ask("POST", "/v1/schedules", {"name": "nightly", "cron": "0 2 * * *", "task": {"type": PLAIN}})
    world.ask("POST", "/v1/topologies", {"name": "nightly", "nodes": {"a": {"type": PLAIN}}, "delay_seconds": LATER})
    page = console.open("/tasks?q=type:simulation-plain")
    expect(page.locator(ROWS)).to_have_count(2)
    search(page, "month close")
    expect(page.locator(ROWS)).to_have_count(1)
    search(page, "nightly")
    also = page.locator(".also")
    expect(also.get_by_role("link", name="schedule nightly")).to_have_attribute("href", "#/schedules/nightly")
    also.get_by_role("link", name="1 topology").click()
    expect(page.get_by_role("table", name="Topologies").get_by_role("link", name="nightly")).to_be_visible()


def test_a_search_for_a_part_of_a_name_is_offered(console: Console, world: World) -> None:
    """A word is searched for as a complete name; if no task has this name, the list offers to search for a part.

    Other empty searches do not offer this.
    """
    task_id = world.create(type=PLAIN, name="Month close", delay_seconds=LATER)
    world.create(type=PLAIN, name="other", delay_seconds=LATER)
    page = console.open("/tasks?q=month")
    expect(page.locator(".empty")).to_contain_text("Only full names match")
    page.get_by_role("link", name="Search for a part of a name").click()
    expect(page.get_by_label("Search tasks")).to_have_value("contains:month")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(ROWS)).to_have_attribute("data-row", task_id)
    search(page, "state:failed")
    expect(page.locator(".empty")).to_contain_text("Remove a term")
    expect(page.locator(".empty")).not_to_contain_text("Only full names match")


def test_a_part_of_an_error_finds_its_task(console: Console, world: World) -> None:
    """A search for an error's text finds the text in the error's type or message, regardless of case."""
    world.do(lambda live: setattr(live, "act", lambda *_: 1 / 0))
    failed = world.create(type=PLAIN, retry={"max_attempts": 1})
    world.create(type=PLAIN, delay_seconds=LATER)
    world.run(MINUTE)
    page = console.open('/tasks?q=message:"BY zero"')
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(ROWS)).to_have_attribute("data-row", failed)


def test_the_palette_finds_objects_by_name(console: Console, world: World) -> None:
    """The palette finds schedules by part of the name (exact matches first), and tasks by the full name."""
    for name in ("nightly-close", "close"):
        world.ask("POST", "/v1/schedules", {"name": name, "cron": "0 2 * * *", "task": {"type": PLAIN}})
    task_id = world.create(type=PLAIN, name="close", delay_seconds=LATER)
    page = console.open("/settings")
    page.keyboard.press("Control+k")
    page.keyboard.type("close")
    results = page.locator("#palette-list li")
    expect(results).to_have_count(4)
    expect(results.nth(0)).to_have_text("close schedule")
    expect(results.nth(1)).to_have_text("nightly-close schedule")
    expect(results.nth(2)).to_have_text(f"close, scheduled task {task_id}")
    expect(results.nth(3)).to_have_text("Tasks: close search by full name")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("close")
    assert page.url.endswith("#/schedules/close")


def test_a_tag_with_a_blank_links_to_its_tasks(console: Console, world: World) -> None:
    """A click on a tag that contains a space finds the tag's tasks, in the list and on a task's page."""
    task_id = world.create(type=PLAIN, tags={"team": "two words"}, delay_seconds=LATER)
    world.create(type=PLAIN, delay_seconds=LATER)
    for path in ("/tasks", f"/tasks/{task_id}"):
        page = console.open(path)
        page.get_by_role("link", name="team:two words").click()
        expect(page.get_by_label("Search tasks")).to_have_value('tag:"team:two words"')
        expect(page.locator(ROWS)).to_have_count(1)
        expect(page.locator(".fault")).to_have_count(0)


def test_a_view_is_saved_with_its_order(console: Console, world: World) -> None:
    """A saved view is a link with search and order, which the palette offers and which can be removed."""
    world.create(type=PLAIN, delay_seconds=LATER)
    page = console.open("/tasks?q=state:scheduled")
    page.get_by_label("Order").select_option("Earliest due first")
    page.wait_for_url(re.compile("order=asc"))
    page.once("dialog", lambda dialog: dialog.accept("mine"))
    page.get_by_role("button", name="Save this view").click()
    page.get_by_role("group", name="Views").get_by_role("link", name="All").click()
    expect(page.get_by_label("Search tasks")).to_have_value("")
    page.get_by_role("link", name="mine").click()
    expect(page.get_by_label("Search tasks")).to_have_value("state:scheduled")
    expect(page.get_by_label("Order")).to_have_value("due_at asc")
    page.get_by_role("button", name="Remove this view").click()
    expect(page.get_by_role("link", name="mine")).to_have_count(0)


def test_a_date_range_is_selected_and_columns_are_kept(console: Console, world: World) -> None:
    """A range of dates becomes part of the search with offsets, and chosen columns survive a reload."""
    world.create(type=PLAIN, delay_seconds=LATER)
    page = console.open("/tasks")
    page.get_by_role("button", name="Dates and columns").click()
    page.get_by_label("from").fill("2026-11-20T09:00")
    page.get_by_label("to", exact=True).fill("2026-11-20T10:00")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_label("Search tasks")).to_have_value(
        "due:>2026-11-20T09:00:00+01:00 due:<2026-11-20T10:00:00+01:00"
    )
    assert until(lambda: asked_of(world, "due_before") == ["2026-11-20T09:00:00.000Z"])
    page.get_by_label("Created").check()
    page.goto(page.url.partition("#")[0] + "#/tasks")
    page.reload()
    expect(page.get_by_role("columnheader", name="Created")).to_be_visible()
    console.check_accessibility(page)


def test_selected_rows_are_changed_together_and_two_are_compared(console: Console, world: World) -> None:
    """Two of three tasks are paused with a reason; the differences of two tasks are marked."""
    ids = [world.create(type=PLAIN, name=f"job-{n}", payload={"n": n}, delay_seconds=LATER) for n in range(3)]
    page = console.open("/tasks")
    page.get_by_label("Select job-0").check()
    page.get_by_label("Select job-1").check()
    expect(page.locator(".selection")).to_contain_text("2 selected")
    console.check_accessibility(page)
    page.get_by_role("button", name="Pause…").click()
    page.get_by_label("Reason").fill("freeze")
    page.get_by_role("button", name="Pause 2").click()
    expect(page.locator("dialog")).to_have_count(0)
    assert [world.ask("GET", f"/v1/tasks/{each}")["state"] for each in ids] == ["paused", "paused", "scheduled"]
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call .command").first).to_contain_text(
        re.compile(f"{ids[0]}.*{ids[1]}|{ids[1]}.*{ids[0]}", re.DOTALL)
    )
    page.get_by_role("link", name="Compare").click()
    expect(page.locator(".last-call .command")).to_have_count(0)
    table = page.get_by_role("table", name="Comparison")
    expect(table.locator("tr.differs", has_text="Name")).to_have_count(1)
    expect(table.locator("tr.differs", has_text="State")).to_have_count(0)
    expect(page.locator(".difference del")).to_contain_text('"n"')


def test_the_now_page_lists_overdue_running_ended_and_next_tasks(console: Console, world: World) -> None:
    """The navigation entry leads to the page, and a task moves between the page's lists automatically."""
    world.create(type=PLAIN, name="done")
    world.run(5 * SECOND)
    world.create(type=PLAIN, name="soon", delay_seconds=60)
    page = console.open("/overview")
    page.get_by_role("navigation").get_by_role("link", name="Tasks").click()
    expect(page.get_by_role("table", name="Just ended")).to_contain_text("done")
    expect(page.get_by_role("table", name="Next")).to_contain_text("soon")
    expect(page.get_by_text("No task is past its due time.")).to_be_visible()
    expect(page.get_by_text("No task is running.")).to_be_visible()
    console.check_accessibility(page)
    expect(page.locator(".live")).to_have_text("Live")
    world.run(2 * MINUTE)
    expect(page.get_by_role("table", name="Just ended")).to_contain_text("soon")


def test_going_back_restores_the_scroll_position(console: Console, world: World) -> None:
    """When the user returns from a task, the list has the same scroll position; the task's page starts at its top."""
    body = {"type": PLAIN, "delay_seconds": LATER}
    world.do(lambda live: [live.ask("POST", "/v1/tasks", body) for _ in range(100)])
    page = console.open("/tasks")
    row = page.locator(f"{ROWS} [data-open]").nth(60)
    row.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    assert before > 500
    row.click()
    expect(page.locator("h1 .chip")).to_be_visible()
    assert page.evaluate("scrollY") == 0
    page.go_back()
    expect(page.locator(ROWS)).to_have_count(100)
    assert until(lambda: abs(page.evaluate("scrollY") - before) < 3)


def test_the_focus_returns_after_a_dialog(console: Console, world: World) -> None:
    """The focus returns to the button that opened the dialog, or to the heading if the button is gone."""
    task_id = world.create(type=PLAIN, delay_seconds=LATER)
    page = console.open(f"/tasks/{task_id}")
    focused = "document.activeElement.textContent"
    page.get_by_role("button", name="Pause").click()
    page.keyboard.press("Escape")
    assert until(lambda: page.evaluate(focused) == "Pause")
    page.get_by_role("button", name="Pause").click()
    page.locator("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator("h1 .chip")).to_have_text("paused")
    assert until(lambda: page.evaluate("document.activeElement.tagName") in {"H1", "BUTTON"})
