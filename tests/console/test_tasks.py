"""Tests the task list and a task's page in a browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from duetime.handlers import RetryIn
from tests.scenarios.scenario import PLAIN, SECOND

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from duetime.handlers import Context
    from tests.console.conftest import Console
    from tests.console.world import World

HOSTILE = """<img src=x onerror="document.title='hit'"><script>document.title='hit'</script>"""
LATER = 7_200
ROWS = "tr[data-row]"


class Bad(Exception):
    """The exception that the tests' target raises."""


def act(_phase: str, _context: object, payload: object) -> str:
    """Raise an error if the payload says so."""
    if isinstance(payload, dict) and payload.get("fail"):
        raise Bad(HOSTILE)
    return "done"


@pytest.fixture
def failing(world: World) -> World:
    """Return an account whose tasks fail if their payloads say so."""
    world.do(lambda live: setattr(live, "act", act))
    return world


def states_of(page: Page) -> list[str]:
    """Return the states in the rows, from top to bottom."""
    return [text.strip() for text in page.locator(f"{ROWS} .chip").all_inner_texts()]


def test_an_empty_list_explains_how_to_create_a_task(console: Console) -> None:
    """An empty list explains what a task is, and shows a command that creates a task."""
    page = console.open("/tasks")
    expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    expect(page.locator(".command code")).to_contain_text("duetime tasks create")


def test_a_new_user_creates_a_task_and_follows_its_run(console: Console, world: World) -> None:
    """The form creates a task, whose page follows it from scheduled to succeeded and shows how to repeat it."""
    page = console.open("/tasks")
    page.get_by_role("button", name="New task").click()
    page.get_by_label("Type").fill(PLAIN)
    page.get_by_label("Payload").fill('{"order": 7}')
    page.get_by_label("Due in seconds").fill("30")
    page.get_by_role("button", name="Create", exact=True).click()
    chip = page.locator("h1 .chip")
    expect(chip).to_have_text("scheduled")
    expect(page.get_by_role("heading", name="Why it waits")).to_be_visible()
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call")).to_contain_text("duetime tasks create")
    expect(page.locator(".last-call")).to_contain_text("curl -X POST")
    expect(page.locator(".live")).to_have_text("Live")
    world.run(40 * SECOND)
    expect(chip).to_have_text("succeeded")
    expect(page.get_by_label("Result")).to_have_text('"done"')
    expect(page.locator(".events")).to_contain_text("attempt 1 ended")


def test_a_failed_task_is_run_again_with_another_payload(console: Console, failing: World) -> None:
    """The page shows the error as text; the form marks the changed lines, and the copy has the edited payload."""
    task_id = failing.create(type=PLAIN, payload={"fail": True, "n": 1}, name=HOSTILE, retry={"max_attempts": 1})
    failing.run(5 * SECOND)
    page = console.open(f"/tasks/{task_id}")
    expect(page.locator("h1 .chip")).to_have_text("failed")
    expect(page.locator(".card.failed")).to_contain_text("<script>")
    page.get_by_role("button", name="Run again…").click()
    page.get_by_role("textbox", name="Payload").fill('{\n  "fail": false,\n  "n": 1\n}')
    expect(page.locator(".difference del")).to_have_text('-   "fail": true,')
    expect(page.locator(".difference ins")).to_have_text('+   "fail": false,')
    page.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_url(lambda url: task_id not in url)
    failing.run(5 * SECOND)
    expect(page.locator("h1 .chip")).to_have_text("succeeded")
    assert "hit" not in page.title()


def test_attempts_are_labeled_with_the_run_of_their_task(console: Console, failing: World) -> None:
    """A task that was run again has two first attempts, each labeled with its run."""
    task_id = failing.create(type=PLAIN, payload={"fail": True}, retry={"max_attempts": 1})
    failing.run(5 * SECOND)
    page = console.open(f"/tasks/{task_id}")
    expect(page.locator(".attempt-name")).to_have_text(["Attempt 1"])
    failing.ask("POST", f"/v1/tasks/{task_id}/retry")
    failing.run(5 * SECOND)
    page.reload()
    expect(page.locator(".attempt-name")).to_have_text(["Run 1, attempt 1", "Run 2, attempt 1"])


def test_the_steps_of_a_task_are_listed_between_attempts(console: Console, world: World) -> None:
    """The page names completed steps during the wait, lists their results, and then adds the next attempt's step."""

    def order(_phase: str, context: Context, _payload: object) -> None:
        context.step("charge", lambda: {"receipt": HOSTILE})
        if context.attempt == 1:
            raise RetryIn(60)
        context.step("ship", lambda: "parcel")

    world.do(lambda live: setattr(live, "act", order))
    task_id = world.create(type=PLAIN)
    world.run(5 * SECOND)
    page = console.open(f"/tasks/{task_id}")
    expect(page.get_by_label("Why")).to_contain_text("Steps done: charge. The next attempt does not repeat them.")
    rows = page.get_by_role("table", name="Steps").locator("tbody tr")
    expect(rows).to_have_count(1)
    rows.get_by_text("Result").click()
    expect(page.get_by_label("Result of charge")).to_contain_text("<script>")
    world.run(90 * SECOND)
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("ship")
    expect(page.get_by_label("Why")).to_contain_text("Steps done: charge, ship.")
    expect(page.get_by_label("Why")).not_to_contain_text("The next attempt")
    assert "hit" not in page.title()


def test_a_task_is_cancelled_with_its_children(console: Console, world: World) -> None:
    """The dialog shows the number of children; without the check mark, children are kept and can be cancelled later."""

    def wait(_phase: str, _context: object, _payload: object) -> None:
        raise RetryIn(3_600)

    world.do(lambda live: setattr(live, "act", wait))
    parent = world.create(type=PLAIN)
    world.run(5 * SECOND)
    children = [world.create(type=PLAIN, parent_task_id=parent, delay_seconds=LATER) for _ in range(2)]
    page = console.open(f"/tasks/{parent}")
    table = page.get_by_role("table", name="Children")
    expect(table.locator(ROWS)).to_have_count(2)
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_label("Also cancel its 2 children")).not_to_be_checked()
    page.locator("dialog").get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator("h1 .chip")).to_have_text("cancelled")
    assert {world.ask("GET", f"/v1/tasks/{child}")["state"] for child in children} == {"scheduled"}
    page.get_by_role("button", name="Cancel its children…").click()
    page.get_by_label("Reason").fill("the import is wrong")
    page.locator("dialog").get_by_role("button", name="Cancel its children").click()
    expect(table.locator(".chip")).to_have_text(["cancelled", "cancelled"])
    expect(page.get_by_role("button", name="Cancel its children…")).to_have_count(0)
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call")).to_contain_text(f"duetime tasks cancel {parent} --force --children")


def test_the_check_mark_in_the_dialog_cancels_the_children_at_once(console: Console, world: World) -> None:
    """With the check mark, one request cancels a waiting task and its children."""

    def wait(_phase: str, _context: object, _payload: object) -> None:
        raise RetryIn(3_600)

    world.do(lambda live: setattr(live, "act", wait))
    parent = world.create(type=PLAIN)
    world.run(5 * SECOND)
    child = world.create(type=PLAIN, parent_task_id=parent, delay_seconds=LATER)
    page = console.open(f"/tasks/{parent}")
    expect(page.get_by_role("table", name="Children").locator(ROWS)).to_have_count(1)
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_label("Also cancel its 1 child").check()
    console.check_accessibility(page)
    page.locator("dialog").get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator("h1 .chip")).to_have_text("cancelled")
    assert world.ask("GET", f"/v1/tasks/{child}")["state"] == "cancelled"


def test_the_reason_of_an_action_is_shown_in_the_events(console: Console, world: World) -> None:
    """Pausing asks for a reason, the events show actor and reason, and the offered actions suit the new state."""
    task_id = world.create(type=PLAIN, delay_seconds=LATER)
    page = console.open(f"/tasks/{task_id}")
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("Reason").fill("the month is not closed")
    page.locator("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator("h1 .chip")).to_have_text("paused")
    expect(page.locator(".events")).to_contain_text("the month is not closed")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    expect(page.get_by_role("button", name="Run now")).to_have_count(0)


def test_a_rejected_action_shows_the_error_of_the_api(console: Console, world: World) -> None:
    """If the task was deleted meanwhile, the dialog shows the API's problem with its code."""
    console.expected = ("status of 404", "status of 410")
    task_id = world.create(type=PLAIN, delay_seconds=LATER)
    page = console.open(f"/tasks/{task_id}")
    page.get_by_role("button", name="Cancel").click()
    world.do(lambda live: live.ask("DELETE", f"/v1/tasks/{task_id}"))
    page.locator("dialog").get_by_role("button", name="Cancel").click()
    expect(page.locator("dialog .problem code").first).to_have_text(re.compile("task_(deleted|not_found)"))


def test_the_search_is_in_the_address_and_the_back_button_restores_it(console: Console, world: World) -> None:
    """A filter changes the address; back, forward and a reload show the list for the address."""
    world.create(type=PLAIN, delay_seconds=LATER, tags={"team": "docs"})
    world.create(type=PLAIN, delay_seconds=LATER, tags={"team": "billing"})
    page = console.open("/tasks")
    expect(page.locator(ROWS)).to_have_count(2)
    page.get_by_label("Search tasks").fill("tag:team:docs")
    page.keyboard.press("Enter")
    expect(page.locator(ROWS)).to_have_count(1)
    assert "q=tag%3Ateam%3Adocs" in page.url
    page.get_by_role("group", name="States").get_by_role("button", name="failed").click()
    expect(page.get_by_role("heading", name="No task matches")).to_be_visible()
    page.go_back()
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.get_by_label("Search tasks")).to_have_value("tag:team:docs")
    page.reload()
    expect(page.locator(ROWS)).to_have_count(1)
    page.go_back()
    expect(page.locator(ROWS)).to_have_count(2)


def test_an_invalid_search_is_explained_and_not_sent(console: Console, world: World) -> None:
    """The page names unknown qualifiers and states, invalid times and a second type, and sends no request."""
    page = console.open("/tasks?q=invoice:7 state:late due:soon type:a type:b")
    expect(page.locator(".fault")).to_have_count(4)
    expect(page.locator(".fault").first).to_contain_text("Use name:invoice:7 to search for a name")
    for time in ("5", "1 Dec 2026", "2026-02-31", "2026-13-01"):
        page.goto(page.url.partition("#")[0] + f'#/tasks?q=due:>"{time}"')
        expect(page.locator(".fault")).to_contain_text("is not a time")
    assert not [target for _, target in world.requests if target.startswith("/v1/tasks")]


def test_suggestions_complete_qualifiers_and_values(console: Console, world: World) -> None:
    """While the user types, qualifiers and then their values are offered and can be chosen with the keyboard."""
    world.create(type=PLAIN, delay_seconds=LATER)
    page = console.open("/tasks")
    expect(page.locator(ROWS)).to_have_count(1)
    page.keyboard.press("/")
    page.keyboard.type("sta")
    expect(page.locator("#search-options li")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("sched")
    expect(page.get_by_role("option", name="state:scheduled")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("state%3Ascheduled"))
    expect(page.locator(ROWS)).to_have_count(1)


def test_a_suggestion_replaces_the_word_at_the_cursor(console: Console, world: World) -> None:
    """A word before other words is completed, and the other words are kept."""
    world.create(type=PLAIN, delay_seconds=LATER)
    page = console.open(f"/tasks?q=type:{PLAIN}")
    expect(page.locator(ROWS)).to_have_count(1)
    page.keyboard.press("/")
    page.keyboard.press("Home")
    page.keyboard.type("sta ")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    expect(page.locator("#search-options li")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("sched")
    expect(page.get_by_role("option", name="state:scheduled")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Search tasks")).to_have_value(f"state:scheduled type:{PLAIN}")
    page.wait_for_url(re.compile(f"state%3Ascheduled\\+type%3A{PLAIN}"))
    expect(page.locator(ROWS)).to_have_count(1)


def test_new_tasks_are_counted_and_visible_tasks_are_updated(console: Console, world: World) -> None:
    """Pushed changes update visible rows; other changes are only counted until a button reads the list again."""
    world.create(type=PLAIN, delay_seconds=20)
    page = console.open("/tasks")
    expect(page.locator(".live")).to_have_text("Live")
    expect(page.locator(ROWS)).to_have_count(1)
    world.create(type=PLAIN, delay_seconds=LATER)
    expect(page.locator(".pill")).to_have_text("1 new")
    world.run(30 * SECOND)
    expect(page.locator(f"{ROWS} .chip")).to_have_text(["succeeded"])
    page.locator(".pill").click()
    expect(page.locator(ROWS)).to_have_count(2)
    expect(page.locator(".pill")).to_have_count(0)


def test_missed_changes_are_shown_after_a_reconnection(console: Console, world: World) -> None:
    """Without a connection the page says so; after reconnecting, it reads the list again and agrees with REST."""
    console.expected = ("Failed to load resource", "WebSocket connection to")
    world.create(type=PLAIN, delay_seconds=20)
    page = console.open("/tasks")
    expect(page.locator(".live")).to_have_text("Live")
    expect(page.locator(ROWS)).to_have_count(1)
    world.down = True
    world.cut_off()
    expect(page.locator(".live")).to_contain_text("Not reachable")
    world.run(30 * SECOND)
    assert states_of(page) == ["scheduled"]
    world.down = False
    expect(page.locator(".live")).to_have_text("Live")
    expect(page.locator(f"{ROWS} .chip")).to_have_text(["succeeded"])


def test_changes_between_reading_and_watching_a_task_are_shown(console: Console, world: World) -> None:
    """The response to the subscription contains changes that were made after the page had read the task."""
    task_id = world.create(type=PLAIN, delay_seconds=20)
    page = console.open(f"/tasks/{task_id}")
    held: list[Route] = []
    page.route("**/v1/watch-tickets", lambda route: held.append(route))  # noqa: PLW0108 - it must be a function
    page.reload()
    expect(page.locator("h1 .chip")).to_have_text("scheduled")
    world.run(30 * SECOND)
    for each in held:
        each.continue_()
    expect(page.locator("h1 .chip")).to_have_text("succeeded")


def test_two_browsers_show_the_same_state(console: Console, world: World) -> None:
    """Actions in one browser appear in the other browser without a click."""
    task_id = world.create(type=PLAIN, delay_seconds=LATER)
    here, there = console.open(f"/tasks/{task_id}"), console.open("/tasks")
    expect(there.locator(".live")).to_have_text("Live")
    here.get_by_role("button", name="Cancel").click()
    here.locator("dialog").get_by_role("button", name="Cancel").click()
    expect(here.locator("h1 .chip")).to_have_text("cancelled")
    expect(there.locator(f"{ROWS} .chip")).to_have_text(["cancelled"])


def test_each_new_page_of_the_list_is_one_request(console: Console, world: World) -> None:
    """Each new page of the list needs one request, and going back shows the first page again."""
    world.do(lambda live: [live.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": LATER}) for _ in range(103)])
    page = console.open("/tasks")
    expect(page.locator(ROWS)).to_have_count(100)
    lists = [target for _, target in world.requests if target.startswith("/v1/tasks?")]
    assert len(lists) == 1
    page.get_by_role("button", name="Next page").click()
    expect(page.locator(ROWS)).to_have_count(3)
    assert len([target for _, target in world.requests if target.startswith("/v1/tasks?")]) == 2
    page.go_back()
    expect(page.locator(ROWS)).to_have_count(100)


def test_the_tasks_of_all_pages_are_counted_on_request(console: Console, world: World) -> None:
    """The count and the cost are for the complete search and not only for the page; a new search is counted again."""
    world.do(lambda live: [live.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": LATER}) for _ in range(103)])
    page = console.open("/tasks?q=state:scheduled")
    expect(page.locator(ROWS)).to_have_count(100)
    page.get_by_role("button", name="Count all").click()
    expect(page.get_by_text("103 tasks in all")).to_contain_text("µ$")
    page.goto(page.url.replace("state:scheduled", f"type:{PLAIN}"))
    expect(page.get_by_role("button", name="Count all")).to_be_visible()


def test_new_tasks_are_announced_by_the_current_search(console: Console, world: World) -> None:
    """New tasks are announced if they match the current search, not the original search, until they are listed."""
    page = console.open("/tasks?q=type:other")
    page.get_by_label("Search tasks").fill(f"type:{PLAIN}")
    page.get_by_label("Search tasks").press("Enter")
    page.wait_for_url(re.compile(f"type%3A{PLAIN}"))
    expect(page.locator(".live")).to_have_text("Live")
    expect(page.get_by_role("heading", name="No task matches")).to_be_visible()
    world.create(type=PLAIN, delay_seconds=LATER)
    expect(page.locator(".pill")).to_have_text("1 new")
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(".pill")).to_have_count(0)


def test_the_cost_of_a_complete_list_is_computed_on_request(console: Console, world: World) -> None:
    """If one page has all tasks, the number of tasks is known, and the page offers to compute their cost."""
    world.create(type=PLAIN, delay_seconds=LATER)
    page = console.open(f"/tasks?q=type:{PLAIN}")
    page.get_by_role("button", name="Total cost").click()
    expect(page.get_by_text("1 task in all")).to_contain_text("µ$")


def test_a_bulk_cancel_requires_the_counted_number_as_confirmation(console: Console, world: World) -> None:
    """Bulk actions need a filter, only counted tasks are cancelled, and a count above a hundred must be typed."""
    kept = world.create(type=PLAIN, delay_seconds=LATER, tags={"team": "docs"})
    body = {"type": PLAIN, "delay_seconds": LATER, "tags": {"team": "billing"}}
    world.do(lambda live: [live.ask("POST", "/v1/tasks", body) for _ in range(101)])
    page = console.open("/tasks")
    expect(page.get_by_role("button", name="Cancel all…")).to_be_disabled()
    page.goto(page.url.partition("#")[0] + "#/tasks?q=tag:team:billing")
    page.get_by_role("button", name="Cancel all…").click()
    page.get_by_role("button", name="Count the tasks").click()
    expect(page.locator("dialog")).to_contain_text("101 tasks match")
    confirm = page.get_by_role("button", name="Cancel 101")
    expect(confirm).to_be_disabled()
    page.get_by_label("Type 101 to continue").fill("101")
    confirm.click()
    expect(page.locator("dialog")).to_have_count(0)
    world.run(60 * SECOND)
    assert world.ask("GET", f"/v1/tasks/{kept}")["state"] == "scheduled"
    page.reload()
    expect(page.locator(f"{ROWS} .chip").first).to_have_text("cancelled")


def test_a_stopped_deployment_is_announced_on_every_page(console: Console, world: World) -> None:
    """A switch for all tasks is shown as a banner on every page, with the switch's author and reason."""
    world.ask("PUT", "/v1/switches/all/all", {"stopped": True, "reason": "migration of the ledger"})
    page = console.open("/tasks")
    banner = page.locator(".banner")
    expect(banner).to_contain_text("All tasks are stopped")
    expect(banner).to_contain_text("migration of the ledger")
    expect(banner).to_contain_text("local")
