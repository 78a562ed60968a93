"""A page of a list covers a limited number of tasks: nothing is denied before the list was read to its end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from tests.console.conftest import Console
    from tests.console.world import World

pytestmark = pytest.mark.slow
CROWD = 1_600
"""More tasks than one page covers."""
SOON, LATER = 2 * MINUTE // SECOND, 2 * HOUR // SECOND


def crowd(world: World, number: int = CROWD, **body: Any) -> None:  # noqa: ANN401 - any JSON
    """Create many tasks that are not looked for."""
    for _ in range(number // 100):
        answer = world.ask("POST", "/v1/tasks/batch", {"tasks": [{"type": "crowd", **body}] * 100})
        assert len(answer["results"]) == 100


class Held:
    """Holds back the later pages of a list until it is told to go on."""

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
        """Let those that wait pass, and all others."""
        self._is_open = True
        for route in self._routes:
            route.continue_()


def test_a_search_reads_on_until_it_finds_what_is_on_the_last_page(console: Console, world: World) -> None:
    """The list says how far it has looked, and shows the only hit, although the first page has none."""
    world.create(type=PLAIN, name="needle", delay_seconds=SOON)
    crowd(world, delay_seconds=LATER)
    page = console.open("/settings")
    held = Held(page, "/v1/tasks?")
    page.goto(page.url.replace("/settings", "/tasks?q=name%3Aneedle"))
    expect(page.locator(".reading")).to_contain_text(re.compile("Looked at 1,000 tasks, up to .*:.*Stop"))
    expect(page.get_by_role("heading", name="None found so far")).to_be_visible()
    expect(page.get_by_text("No task matches")).to_have_count(0)
    held.release()
    expect(page.locator("tr[data-row]")).to_have_count(1)
    expect(page.locator(".reading")).to_contain_text("Looked at 1,601 tasks.")
    console.check_accessibility(page)


def test_a_list_that_was_read_to_its_end_says_that_there_is_none(console: Console, world: World) -> None:
    """Only after the last page, and with the number of tasks that were looked at."""
    crowd(world, delay_seconds=LATER)
    page = console.open("/tasks?q=name%3Aneedle")
    expect(page.get_by_role("heading", name="No task matches")).to_be_visible()
    expect(page.locator(".reading")).to_contain_text("Looked at 1,600 tasks.")


def test_reading_on_can_be_stopped_and_continued(console: Console, world: World) -> None:
    """A stopped list says what it has not looked at; it goes on from there."""
    world.create(type=PLAIN, name="needle", delay_seconds=SOON)
    crowd(world, delay_seconds=LATER)
    page = console.open("/settings")
    held = Held(page, "/v1/tasks?")
    page.goto(page.url.replace("/settings", "/tasks?q=name%3Aneedle"))
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".reading")).to_contain_text("Stopped. Looked at 1,000 tasks")
    expect(page.locator(".reading")).to_contain_text("there may be more")
    expect(page.get_by_role("heading", name="None found so far")).to_be_visible()
    held.release()
    asked = len(world.requests)
    page.get_by_role("button", name="Read on").click()
    expect(page.locator("tr[data-row]")).to_have_count(1)
    assert [
        path for _, path in world.requests[asked:] if path.startswith("/v1/tasks?") and "next_token" not in path
    ] == []


def test_health_is_not_green_while_tasks_were_not_looked_at(console: Console, world: World) -> None:
    """Behind more ended tasks than a page covers, what is overdue is found; before that, nothing is said to be well."""
    crowd(world, delay_seconds=SOON)
    world.ask("POST", "/v1/tasks/cancel", {"filter": {"type": "crowd"}})
    world.do(lambda live: setattr(live, "ticking", False))
    world.create(delay_seconds=20 * MINUTE // SECOND)
    world.run(30 * MINUTE)
    page = console.open("/settings")
    held = Held(page, "/v1/tasks?")
    page.goto(page.url.replace("/settings", "/overview"))
    health = page.locator(".health")
    expect(health).to_contain_text(re.compile("No backlog found so far, among the first 1,000 tasks, up to"))
    expect(health.locator("li", has_text="backlog").locator(".good")).to_have_count(0)
    expect(page.get_by_text("not known yet")).to_be_visible()
    expect(page.get_by_text("No task is scheduled.")).to_have_count(0)
    expect(health).not_to_contain_text("Due tasks start")
    held.release()
    expect(
        health.locator("li", has_text="1 due task not started, the oldest for 10 min").locator(".bad")
    ).to_be_visible()
    expect(page.get_by_role("table", name="Next tasks").locator("tr[data-row]")).to_have_count(1)


def test_health_that_was_looked_for_to_the_end_is_green(console: Console, world: World) -> None:
    """With as many ended tasks, and one that waits for its time behind them, nothing is overdue."""
    crowd(world, delay_seconds=SOON)
    world.ask("POST", "/v1/tasks/cancel", {"filter": {"type": "crowd"}})
    world.create(delay_seconds=LATER)
    page = console.open("/overview")
    line = page.locator(".health li", has_text="Due tasks start, no backlog")
    expect(line.locator(".good")).to_be_visible()
    expect(page.locator(".figures", has_text="Oldest due")).to_contain_text("none")


def test_topologies_are_found_behind_many_tasks(console: Console, world: World) -> None:
    """A page of topologies that covers other tasks only is not the end of the list."""
    soon = {"nodes": {"a": {"type": PLAIN}}, "name": "nightly-close", "delay_seconds": SOON}
    world.ask("POST", "/v1/topologies", soon)
    crowd(world, delay_seconds=LATER)
    page = console.open("/topologies")
    expect(page.get_by_role("link", name="nightly-close")).to_be_visible()
    expect(page.get_by_text("No topologies yet")).to_have_count(0)


def test_a_running_task_is_found_behind_many_that_are_to_come(console: Console, world: World) -> None:
    """The page of workers looks for as many as the summary has counted, and says so until it has found them."""
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


def test_the_history_of_a_schedule_is_found_behind_what_is_to_come(console: Console, world: World) -> None:
    """The runs of a schedule are looked for until some have happened: other tasks that are due later hide none."""
    each = {"name": "each-minute", "cron": "* * * * *", "task": {"type": PLAIN}}
    world.ask("POST", "/v1/schedules", each)
    world.run(5 * MINUTE)
    crowd(world, delay_seconds=LATER)
    page = console.open("/schedules/each-minute")
    expect(page.locator(".strip .state-succeeded")).not_to_have_count(0)
    expect(page.get_by_text("None yet.")).to_have_count(0)
