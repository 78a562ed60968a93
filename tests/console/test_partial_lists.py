"""Tests lists whose pages each cover a limited number of tasks; tasks count as missing only after the list's end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from tests.console.conftest import Console
    from tests.console.world import World

pytestmark = pytest.mark.slow
CROWD = 1_600
"""A number of tasks that is larger than one page covers and for which lists are not stored at once."""
SOON, LATER = 2 * MINUTE // SECOND, 2 * HOUR // SECOND


def crowd(world: World, number: int = CROWD, **body: Any) -> None:  # noqa: ANN401 - any JSON
    """Create many tasks that do not match the search."""
    for _ in range(number // 100):
        answer = world.ask("POST", "/v1/tasks/batch", {"tasks": [{"type": "crowd", **body}] * 100})
        assert len(answer["results"]) == 100


def unavailable(route: Route) -> None:
    """Respond that the API is unavailable."""
    route.fulfill(status=503, json={})


class Held:
    """Holds back a list's later pages until they are released."""

    def __init__(self, page: Page, path: str) -> None:
        self._routes: list[Route] = []
        self._is_open = False
        page.route(re.compile(rf"{re.escape(path)}.*next_token="), self._hold)

    def _hold(self, route: Route) -> None:
        if self._is_open:
            route.continue_()
        else:
            self._routes.append(route)

    def release(self) -> None:
        """Release the pages that are held back, and all later pages."""
        self._is_open = True
        for route in self._routes:
            route.continue_()


def test_a_search_continues_until_it_finds_a_match_on_the_last_page(console: Console, world: World) -> None:
    """The list shows its progress and finds the only match, although the first page has no match."""
    world.create(type=PLAIN, name="needle", delay_seconds=SOON)
    crowd(world, delay_seconds=LATER)
    page = console.open("/settings")
    held = Held(page, "/v1/tasks?")
    page.goto(page.url.replace("/settings", "/tasks?q=name%3Aneedle"))
    expect(page.locator(".reading")).to_contain_text(
        re.compile("Examined 1,000 tasks, 0 found, up to .*:.*Loading more.*Stop")
    )
    expect(page.get_by_role("heading", name="None found so far")).to_be_visible()
    expect(page.get_by_text("No task matches")).to_have_count(0)
    held.release()
    expect(page.locator("tr[data-row]")).to_have_count(1)
    expect(page.locator(".reading")).to_contain_text("Examined 1,601 tasks, 1 found.")
    console.check_accessibility(page)


def test_a_completely_read_empty_list_reports_that_there_are_no_entries(console: Console, world: World) -> None:
    """The list says that there are no tasks only after the last page, with the number of examined tasks."""
    crowd(world, delay_seconds=LATER)
    page = console.open("/tasks?q=name%3Aneedle")
    expect(page.get_by_role("heading", name="No task matches")).to_be_visible()
    expect(page.locator(".reading")).to_contain_text("Examined 1,600 tasks, 0 found.")


def test_the_tasks_for_an_action_are_counted_across_all_pages(console: Console, world: World) -> None:
    """Tasks are counted page by page; a stopped count can be continued, and tasks that are created later are kept."""
    task_id = world.create(type=PLAIN, name="the needle", delay_seconds=SOON)
    crowd(world, delay_seconds=LATER)
    page = console.open("/tasks?q=contains:needle")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    held: list[Route] = []
    is_open = False

    def hold(route: Route) -> None:
        if is_open or "next_token" not in (route.request.post_data or ""):
            route.continue_()
        else:
            held.append(route)

    page.route("**/v1/tasks/cancel", hold)
    page.get_by_role("button", name="Cancel all…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Count the tasks").click()
    expect(dialog.get_by_role("status")).to_contain_text("0 tasks match, of 1,000 examined so far")
    console.check_accessibility(page)
    dialog.get_by_role("button", name="Stop counting").click()
    expect(dialog.get_by_role("status")).to_contain_text("0 tasks match, of 1,000 examined; there may be more")
    expect(dialog.get_by_role("button", name="Cancel 0 or more")).to_be_disabled()
    is_open = True
    dialog.get_by_role("button", name="Continue counting").click()
    expect(dialog.get_by_role("status")).to_contain_text("1 task matches, of 1,601 examined. Nodes")
    later = world.create(type=PLAIN, name="the needle", delay_seconds=SOON)
    dialog.get_by_role("button", name="Cancel 1", exact=True).click()
    expect(dialog).to_have_count(0)
    world.run(MINUTE)
    assert world.ask("GET", f"/v1/tasks/{task_id}")["state"] == "cancelled"
    assert world.ask("GET", f"/v1/tasks/{later}")["state"] != "cancelled"
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call")).to_contain_text("duetime tasks cancel --name-contains needle")


def test_reading_a_list_can_be_stopped_and_continued(console: Console, world: World) -> None:
    """A stopped list says which tasks have not been examined, and can be continued."""
    world.create(type=PLAIN, name="needle", delay_seconds=SOON)
    crowd(world, delay_seconds=LATER)
    page = console.open("/settings")
    held = Held(page, "/v1/tasks?")
    page.goto(page.url.replace("/settings", "/tasks?q=name%3Aneedle"))
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".reading")).to_contain_text("Examined 1,000 tasks, 0 found")
    expect(page.locator(".reading")).to_contain_text("There may be more")
    expect(page.get_by_role("heading", name="None found so far")).to_be_visible()
    held.release()
    asked = len(world.requests)
    page.get_by_role("button", name="Load more").click()
    expect(page.locator("tr[data-row]")).to_have_count(1)
    assert [
        path for _, path in world.requests[asked:] if path.startswith("/v1/tasks?") and "next_token" not in path
    ] == []


def test_health_is_not_green_before_all_tasks_are_examined(console: Console, world: World) -> None:
    """An overdue task behind many ended tasks is found, and until then health is not shown as good."""
    crowd(world, delay_seconds=SOON)
    world.ask("POST", "/v1/tasks/cancel", {"filter": {"type": "crowd"}})
    world.do(lambda live: setattr(live, "ticking", False))
    world.create(delay_seconds=20 * MINUTE // SECOND)
    world.run(30 * MINUTE)
    page = console.open("/settings")
    held = Held(page, "/v1/tasks?")
    page.goto(page.url.replace("/settings", "/overview"))
    health = page.locator(".health")
    unknown = health.locator("li", has_text="Oldest due task: not known. 1,000 tasks examined so far, without a result")
    expect(unknown.locator(".unknown")).to_have_text("?")
    expect(health.locator("li", has_text="backlog")).to_have_count(0)
    expect(page.locator(".figures", has_text="Oldest due")).to_contain_text("not known")
    expect(page.get_by_text("No task is scheduled.")).to_have_count(0)
    expect(health).not_to_contain_text("Due tasks start")
    held.release()
    line = health.locator("li", has_text="1 due task not started, the oldest for 10 min")
    expect(line.locator(".bad")).to_be_visible()
    expect(page.locator(".figures", has_text="Oldest due")).to_contain_text("10 min")


def test_health_is_green_after_all_tasks_are_examined(console: Console, world: World) -> None:
    """If no task is overdue, health is green once all ended tasks have been examined, even if there are many."""
    crowd(world, delay_seconds=SOON)
    world.ask("POST", "/v1/tasks/cancel", {"filter": {"type": "crowd"}})
    world.create(delay_seconds=LATER)
    page = console.open("/overview")
    line = page.locator(".health li", has_text="Due tasks start, no backlog")
    expect(line.locator(".good")).to_be_visible()
    expect(page.locator(".figures", has_text="Oldest due")).to_contain_text("none")


def test_topologies_are_found_behind_many_tasks(console: Console, world: World) -> None:
    """The list of topologies continues after a page that covers only other tasks."""
    soon = {"nodes": {"a": {"type": PLAIN}}, "name": "nightly-close", "delay_seconds": SOON}
    world.ask("POST", "/v1/topologies", soon)
    crowd(world, delay_seconds=LATER)
    page = console.open("/topologies")
    expect(page.get_by_role("link", name="nightly-close")).to_be_visible()
    expect(page.get_by_text("No topologies yet")).to_have_count(0)


def test_a_running_task_is_found_behind_many_future_tasks(console: Console, world: World) -> None:
    """Until a running task is found, the page for workers says that no running task was found so far."""
    world.do(lambda live: setattr(live, "act", lambda *_: live.take(HOUR)))
    world.create(type=PLAIN)
    world.run(5 * SECOND)
    crowd(world, delay_seconds=LATER)
    assert world.ask("GET", "/v1/summary")["states"]["running"] == 1
    page = console.open("/settings")
    held = Held(page, "/v1/tasks?")
    page.goto(page.url.replace("/settings", "/workers"))
    expect(page.get_by_role("heading", name="None found so far")).to_be_visible()
    expect(page.get_by_text("No task is running")).to_have_count(0)
    held.release()
    expect(page.locator(".worker tr[data-row]")).to_have_count(1)


def test_past_runs_of_a_schedule_are_found_behind_future_tasks(console: Console, world: World) -> None:
    """A schedule's past runs are found even behind many tasks that are due later."""
    each = {"name": "each-minute", "cron": "* * * * *", "task": {"type": PLAIN}}
    world.ask("POST", "/v1/schedules", each)
    world.run(5 * MINUTE)
    crowd(world, delay_seconds=LATER)
    page = console.open("/schedules/each-minute")
    expect(page.locator(".strip .state-succeeded")).not_to_have_count(0)
    expect(page.get_by_text("None yet.")).to_have_count(0)


def test_reading_stops_after_twenty_pages_until_the_user_continues(console: Console) -> None:
    """After twenty pages the list stops reading; the user decides whether to continue from there."""
    page = console.open("/settings")
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        applied = {"filters": {}, "order": "desc", "order_by": "due_at", "limit": 100, "examined": 1000}
        body = {"tasks": [], "applied": {**applied, "examined_to": None}, "next_token": f"t{len(asked)}"}
        route.fulfill(json=body)

    page.route(re.compile(r"/v1/tasks\?"), answer)
    page.goto(page.url.replace("/settings", "/tasks?q=error%3ATimeout"))
    line = page.locator(".reading")
    expect(line).to_contain_text("Examined 20,000 tasks, 0 found. There may be more.")
    assert len(asked) == 20
    expect(page.get_by_role("heading", name="None found so far")).to_be_visible()
    page.get_by_role("button", name="Load more").click()
    expect(line).to_contain_text("Examined 40,000 tasks, 0 found. There may be more.")
    assert len(asked) == 40
    assert "next_token=t20" in asked[20]


def test_previous_rows_stay_while_a_search_is_running(console: Console, world: World) -> None:
    """A new search shows the previous rows, marked as old, until its own rows arrive, and never reports no results."""
    world.create(type=PLAIN, delay_seconds=LATER)
    page = console.open("/tasks")
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(1)
    held: list[Route] = []
    page.route(re.compile(r"/v1/tasks\?.*state=failed"), lambda route: held.append(route))  # noqa: PLW0108 - it must be a function
    page.get_by_role("group", name="States").get_by_role("button", name="failed").click()
    expect(page.locator(".rows.old")).to_have_attribute("aria-busy", "true")
    expect(rows).to_have_count(1)
    expect(page.locator(".reading")).to_have_text("Loading…")
    expect(page.locator(".empty")).to_have_count(0)
    for route in held:
        route.continue_()
    expect(page.get_by_role("heading", name="No task matches")).to_be_visible()
    expect(rows).to_have_count(0)


def test_a_relative_time_range_advances_without_emptying_the_list(console: Console, world: World) -> None:
    """The view of the last hour is read again with a later bound, and the view's row stays visible meanwhile."""
    world.create(type=PLAIN)
    world.run(5 * SECOND)
    page = console.open("/settings")
    page.clock.install()
    page.goto(page.url.replace("/settings", "/tasks?q=finished%3A%3Enow-1h"))
    page.reload()
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(1)
    page.evaluate(
        """window.least = 1; new MutationObserver(() => {
            window.least = Math.min(window.least, document.querySelectorAll("tr[data-row]").length);
        }).observe(document.body, {childList: true, subtree: true})"""
    )
    asked = len(world.requests)
    world.run(3 * MINUTE)
    page.clock.run_for(180_000)
    assert until(lambda: len({path for _, path in world.requests[asked:] if "finished_after" in path}) > 1)
    expect(rows).to_have_count(1)
    assert page.evaluate("window.least") == 1


def test_the_rows_stay_if_the_api_does_not_respond(console: Console, world: World) -> None:
    """If the API stops responding, the content stays, the header says so, and the page recovers later."""
    console.expected = ("Failed to load resource", "WebSocket connection to")
    world.create(type=PLAIN, delay_seconds=LATER)
    page = console.open("/tasks")
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(1)
    world.down = True
    page.keyboard.press("r")
    expect(page.locator(".problem")).to_contain_text("The API cannot be reached")
    expect(page.locator(".live")).to_contain_text("Not reachable")
    expect(rows).to_have_count(1)
    world.down = False
    expect(page.locator(".problem")).to_have_count(0)
    expect(page.locator(".live")).to_have_text("Live")


def test_figures_show_the_last_ended_tasks_despite_many_future_tasks(console: Console, world: World) -> None:
    """Figures include the tasks that ended last, even if there are more future tasks than a page covers."""
    for _ in range(3):
        world.create()
    world.run(10 * SECOND)
    crowd(world, delay_seconds=LATER)
    page = console.open("/overview")
    expect(page.locator("section", has_text="On time").last).to_contain_text("Of the last 3 tasks")
    assert [path for _, path in world.requests if "order_by=finished_at" in path]


def test_stored_lists_need_one_request(console: Console, world: World) -> None:
    """If lists are stored, searches and the pages for health, workers and topologies need one request each."""
    world.do(lambda live: setattr(live, "act", lambda *_: live.take(10 * HOUR)))
    world.ask("POST", "/v1/topologies", {"nodes": {"a": {"type": PLAIN}}, "name": "nightly", "delay_seconds": LATER})
    world.create(type=PLAIN, name="needle", timeout_seconds=800)
    crowd(world, delay_seconds=12 * LATER)
    world.keep_lists()
    asked = len(world.requests)
    page = console.open("/overview")
    expect(page.locator(".health li", has_text="Due tasks start, no backlog").locator(".good")).to_be_visible()
    page.goto(page.url.replace("/overview", "/tasks/now"))
    nothing = page.locator("p", has_text="No task is past its due time.")
    expect(nothing).to_contain_text("No task is past its due time. Last change listed at")
    page.goto(page.url.replace("/tasks/now", "/workers"))
    expect(page.locator(".worker tr[data-row]")).to_have_count(1)
    page.goto(page.url.replace("/workers", "/topologies"))
    expect(page.get_by_role("link", name="nightly")).to_be_visible()
    page.goto(page.url.replace("/topologies", "/tasks?q=needle"))
    expect(page.locator("tr[data-row]")).to_have_count(1)
    expect(page.locator(".pager")).to_contain_text("last change listed at")
    assert [path for _, path in world.requests[asked:] if "next_token" in path] == []


def test_the_oldest_due_time_is_unknown_if_one_list_is_unreadable(console: Console, world: World) -> None:
    """If unstarted tasks cannot be read, the oldest due time is shown as unknown, although waiting tasks are listed."""
    console.expected = ("Failed to load resource",)
    world.ask("POST", "/v1/tasks", {"type": PLAIN, "target": {"kind": "approval"}})
    world.run(10 * MINUTE)
    page = console.open("/settings")
    page.route(re.compile(r"/v1/tasks\?.*state=scheduled.*due_before"), unavailable)
    page.goto(page.url.replace("/settings", "/overview"))
    health = page.locator(".health")
    expect(health.locator("li", has_text="1 task past the due time waits")).to_be_visible()
    expect(health.locator("li", has_text="Oldest due task: not known").locator(".unknown")).to_have_text("?")
    expect(page.locator(".figures", has_text="Oldest due")).to_contain_text("not known")


def test_waiting_tasks_are_not_known_if_the_list_is_unreadable(console: Console) -> None:
    """If the list of waiting tasks cannot be read, a message says so, so that the list does not look empty."""
    console.expected = ("Failed to load resource",)
    page = console.open("/settings")
    page.route(re.compile(r"/v1/tasks\?.*state=waiting"), unavailable)
    page.goto(page.url.replace("/settings", "/overview"))
    line = page.locator(".health li", has_text="Tasks that wait past their due time: not known")
    expect(line.locator(".unknown")).to_have_text("?")


def test_outdated_counts_of_failures_cause_no_alarm(console: Console) -> None:
    """Outdated counts that still include retried tasks cause no alarm."""
    page = console.open("/settings")

    def answer(route: Route) -> None:
        read = route.fetch().json()
        route.fulfill(json={**read, "states": {**read["states"], "failed": 3}})

    page.route(re.compile(r"/v1/summary$"), answer)
    page.goto(page.url.replace("/settings", "/overview"))
    expect(page.get_by_label("Tasks by state").get_by_role("link", name="3 failed")).to_be_visible()
    line = page.locator(".health li", has_text="No task has failed for good")
    expect(line.locator(".good")).to_be_visible()
