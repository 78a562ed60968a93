"""Tests the pages for dead letters, calendars, locks, workers and settings in a browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from duetime.environment_variables import Variable
from tests.console.sample_account import fill
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.console.conftest import Console
    from tests.console.world import World

pytestmark = pytest.mark.slow

PAGES = [
    "/dead-letters",
    "/calendars",
    "/calendars/uk-holidays",
    "/definitions",
    "/definitions/nightly?version=2&from=1",
    "/locks/ledger",
    "/workers",
    "/settings",
    "/schedules",
]
FAILING = {"type": PLAIN, "retry": {"max_attempts": 1}}
HOSTILE = "<img src=x onerror=alert(1)> ' \" & </script>"


class Broken(Exception):
    """A permanent failure."""


def _behave(world: World, act: Callable[..., object]) -> None:
    world.do(lambda live: setattr(live, "act", act))


def _fail(_phase: str, _context: object, _payload: object) -> object:
    raise Broken(HOSTILE)


@pytest.mark.slow
def test_every_page_is_accessible(console: Console, world: World) -> None:
    """No page with content has axe violations on a wide screen in the light theme or a narrow one in the dark theme."""
    fill(world)
    for narrow, scheme in ((False, "light"), (True, "dark")):
        page = console.open(PAGES[0], narrow=narrow, scheme=scheme)
        for path in PAGES:
            _go(page, path)
            console.check_accessibility(page)


@pytest.mark.slow
def test_every_page_fits_a_phone(console: Console, world: World) -> None:
    """At a width of 390 pixels, each page's content fits the screen, and axe finds no violation on the first page."""
    fill(world)
    page = console.open(PAGES[0], narrow=True, scheme="dark")
    console.check_accessibility(page)
    for path in PAGES:
        _go(page, path)
        width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], path


def _go(page: Page, path: str) -> None:
    page.evaluate("(path) => { location.hash = path }", path)
    expect(page.locator("main h1")).to_contain_text(
        re.compile(path.partition("?")[0].rpartition("/")[2].replace("-", "."), re.IGNORECASE)
    )
    expect(page.locator("main .card, main tr[data-row]").first).to_be_visible()


def test_dead_letters_are_grouped_and_retried_at_the_chosen_pace(console: Console, world: World) -> None:
    """A group is counted before its tasks run again at the chosen pace, and hostile messages are shown as text."""
    _behave(world, _fail)
    ids = [world.create(**FAILING, name=f"job-{number}") for number in range(3)]
    world.run(10 * SECOND)
    page = console.open("/dead-letters")
    group = page.locator(".group")
    expect(group).to_have_count(1)
    expect(group).to_contain_text("Broken")
    expect(group).to_contain_text(HOSTILE)
    _behave(world, lambda *_: "done")
    group.get_by_role("button", name="Retry…").click()
    page.get_by_label("Reason").fill("fixed in 4.2")
    page.get_by_role("button", name="Count the tasks").click()
    expect(page.locator("dialog")).to_contain_text("3 tasks match")
    page.get_by_role("button", name="Retry 3").click()
    expect(page.locator("dialog")).to_have_count(0)
    world.run(MINUTE)
    assert {world.ask("GET", f"/v1/tasks/{one}")["state"] for one in ids} == {"succeeded"}
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call")).to_contain_text("duetime dead-letters retry --type simulation-plain")
    page.reload()
    expect(page.get_by_role("heading", name="No task has failed for good")).to_be_visible()


def test_dead_letters_are_discarded(console: Console, world: World) -> None:
    """A group's tasks are counted and deleted, tasks that run again meanwhile are kept, and the command is shown."""
    _behave(world, _fail)
    ids = [world.create(**FAILING) for _ in range(3)]
    world.run(10 * SECOND)
    page = console.open("/dead-letters")
    page.get_by_role("button", name="Discard…").click()
    page.get_by_role("button", name="Count the tasks").click()
    expect(page.locator("dialog")).to_contain_text("3 tasks match")
    _behave(world, lambda *_: "done")
    world.ask("POST", f"/v1/tasks/{ids[0]}/retry")
    world.run(10 * SECOND)
    page.get_by_role("button", name="Delete 3").click()
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.get_by_role("heading", name="No task has failed for good")).to_be_visible()
    assert world.ask("GET", f"/v1/tasks/{ids[0]}")["state"] == "succeeded"
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call")).to_contain_text("duetime dead-letters delete --type simulation-plain")


def test_a_group_of_dead_letters_counts_the_tasks_of_all_pages(console: Console, world: World) -> None:
    """The page counts the complete group's tasks, even if the group is larger than a page of a hundred tasks."""
    _behave(world, _fail)
    world.do(lambda live: [live.ask("POST", "/v1/tasks", FAILING) for _ in range(120)])
    world.run(MINUTE)
    page = console.open("/dead-letters")
    expect(page.locator(".group-count")).to_have_text("120")
    expect(page.locator(".group-note")).to_have_text("120 tasks in 1 group.")


def test_a_calendar_is_drawn_while_it_is_edited(console: Console, world: World) -> None:
    """A calendar is drawn while it is edited; replacing it keeps values outside the form, and names its schedules."""
    page = console.open("/calendars")
    expect(page.get_by_role("heading", name="No calendars yet")).to_be_visible()
    page.get_by_role("button", name="New calendar").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("freeze")
    page.get_by_label("Dates", exact=True).fill("2026-12-25 Christmas Day\n2026-12-26")
    page.get_by_label("Hours").fill("22:00-06:00 mon,tue Night")
    page.get_by_label("sun", exact=True).check()
    expect(page.locator("dialog .day-whole[title='Christmas Day']")).to_have_text(re.compile("25"))
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("h1")).to_have_text("freeze")
    stored = world.ask("GET", "/v1/calendars/freeze")
    assert stored["dates"] == {"2026-12-25": "Christmas Day", "2026-12-26": ""}
    assert stored["windows"] == [{"start": "22:00", "end": "06:00", "weekdays": ["mon", "tue"], "label": "Night"}]
    assert stored["weekdays"] == ["sun"]
    timed = {"cron": "0 2 * * *", "task": {"type": PLAIN}, "calendars": ["freeze"]}
    world.ask("POST", "/v1/schedules", {**timed, "name": "nightly"})
    page.reload()
    expect(page.get_by_role("link", name="nightly")).to_be_visible()
    page.get_by_role("button", name="Change…").click()
    page.get_by_label("Except").fill("2026-12-27")
    page.get_by_role("button", name="Replace").click()
    expect(page.locator("dialog")).to_have_count(0)
    assert world.ask("GET", "/v1/calendars/freeze") == {**stored, "except_dates": ["2026-12-27"]}
    expect(page.locator(".day-excepted").first).to_have_text(re.compile("27"))


def test_the_calendar_form_does_not_overwrite_changes_made_while_it_is_open(console: Console, world: World) -> None:
    """The page shows another user's change, and a form that still has older values is refused and stays open."""
    console.expected = ("status of 412",)
    world.ask("PUT", "/v1/calendars/freeze", {"weekdays": ["sun"]})
    page = console.open("/calendars/freeze")
    page.get_by_role("button", name="Change…").click()
    world.ask("PUT", "/v1/calendars/freeze", {"weekdays": ["sun"], "timezone": "Asia/Tokyo"})
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(page.locator(".page-head")).to_contain_text("Asia/Tokyo")
    page.get_by_role("button", name="Replace", exact=True).click()
    expect(page.locator("dialog .problem")).to_be_visible()
    assert world.ask("GET", "/v1/calendars/freeze")["timezone"] == "Asia/Tokyo"


def test_a_calendar_says_until_when_it_is_known(console: Console, world: World) -> None:
    """A calendar's end is shown on its page, in the list and with schedules, and the form keeps the end."""
    world.ask("PUT", "/v1/calendars/freeze", {"dates": ["2026-12-25"], "known_until": "2026-11-23T00:00:00Z"})
    world.ask("PUT", "/v1/calendars/sundays", {"weekdays": ["sun"]})
    timed = {"cron": "0 2 * * *", "task": {"type": PLAIN}, "calendars": ["freeze"]}
    world.ask("POST", "/v1/schedules", {**timed, "name": "nightly"})
    page = console.open("/calendars")
    expect(page.locator("[data-row=freeze]")).to_contain_text("23 Nov")
    expect(page.locator("[data-row=sundays]")).to_contain_text("always")
    page = console.open("/calendars/freeze")
    expect(page.locator(".grid")).to_contain_text("Known until")
    page.get_by_role("button", name="Change…").click()
    expect(page.get_by_label("Known until")).to_have_value("2026-11-23T00:00:00Z")
    page.get_by_role("button", name="Replace").click()
    expect(page.locator("dialog")).to_have_count(0)
    assert world.ask("GET", "/v1/calendars/freeze")["known_until"] == "2026-11-23T00:00:00.000Z"
    page = console.open("/schedules/nightly")
    expect(page.locator("main")).to_contain_text("its times are not known from 2026-11-23 on")


def test_a_changed_calendar_is_not_overwritten(console: Console, world: World) -> None:
    """The form overwrites only the version that was current when the form was opened."""
    world.ask("PUT", "/v1/calendars/freeze", {"dates": ["2026-12-25"]})
    console.expected = ("status of 412",)
    page = console.open("/calendars/freeze")
    page.get_by_role("button", name="Change…").click()
    world.ask("PUT", "/v1/calendars/freeze", {"dates": ["2026-12-24"]})
    page.get_by_role("button", name="Replace").click()
    expect(page.locator("dialog .problem")).to_be_visible()
    assert list(world.ask("GET", "/v1/calendars/freeze")["dates"]) == ["2026-12-24"]


def test_a_lock_shows_its_waiting_tasks_and_can_be_released(console: Console, world: World) -> None:
    """Holders and waiting tasks are shown in order, and a forced release gives the lock to the first waiting task."""
    world.do(lambda live: setattr(live, "act", lambda *_: live.take(HOUR)))
    world.create(type=PLAIN, name="first", lock={"key": "db-17"})
    world.run(5 * SECOND)
    world.create(type=PLAIN, name="second", lock={"key": "db-17"})
    world.run(5 * SECOND)
    page = console.open("/locks")
    page.get_by_role("link", name="db-17").click()
    expect(page.locator(".line").first).to_contain_text("first · simulation-plain · for ")
    expect(page.locator(".line").last).to_contain_text("second · simulation-plain")
    page.goto(page.url.replace("/locks/db-17", "/workers"))
    expect(page.locator(".worker").first).to_contain_text(PLAIN)
    page.go_back()
    page.get_by_role("button", name="Release by force…").click()
    page.locator("dialog").get_by_role("button", name="Release by force").click()
    expect(page.locator(".line").first).to_contain_text("second · simulation-plain")
    world.do(lambda live: live.watching.violations.clear())


def test_the_settings_page_shows_what_the_deployment_allows(console: Console, world: World) -> None:
    """The page shows the user, retention times and allowed targets; a task's page shows how to read its logs."""
    log_group: dict[str, str] = {Variable.STACK: "duetime-test", Variable.WORKER_LOGS: "duetime-test-worker"}
    world.do(lambda live: live.environ.update(log_group))
    page = console.open("/settings")
    expect(page.locator("main")).to_contain_text("Signed in as")
    expect(page.locator("main")).to_contain_text("can be read for 30 days")
    expect(page.locator("main")).to_contain_text("arn:aws:sqs:us-east-1:123456789012:sink")
    task_id = world.create(type=PLAIN)
    world.run(10 * SECOND)
    page.goto(page.url.replace("/settings", f"/tasks/{task_id}"))
    expect(page.locator(".logs")).to_contain_text(f"duetime logs {task_id} --stack duetime-test")


def test_a_task_on_the_local_stack_shows_the_command_for_its_logs(console: Console, world: World) -> None:
    """The local stack's logs are not in CloudWatch; without options, the command shows only the last hour."""
    world.do(lambda live: live.environ.__setitem__(Variable.STACK, "duetime-local"))
    task_id = world.create(type=PLAIN)
    world.run(2 * HOUR)
    page = console.open(f"/tasks/{task_id}")
    expect(page.locator(".logs code")).to_have_text(f"duetime local logs {task_id} --since 3h")


def test_all_keys_of_a_limit_are_listed_on_request(console: Console, world: World) -> None:
    """A section with more than a hundred keys shows the other keys on request."""
    body = {"type": PLAIN, "delay_seconds": HOUR // SECOND}
    world.do(lambda live: [live.ask("POST", "/v1/tasks", {**body, "unique": {"key": f"k-{n}"}}) for n in range(101)])
    page = console.open("/limits")
    rows = page.get_by_role("table", name="Unique keys").locator("tbody tr")
    expect(rows).to_have_count(100)
    page.get_by_role("button", name="Show more unique keys").click()
    expect(rows).to_have_count(101)
    expect(page.get_by_role("button", name="Show more unique keys")).to_have_count(0)


def test_the_command_of_a_paused_rate_has_the_reason(console: Console, world: World) -> None:
    """The shown command does the same as the button, with the reason."""
    world.create(type=PLAIN, rate={"key": "crm", "limit": 5})
    world.run(10 * SECOND)
    page = console.open("/rates/crm")
    page.get_by_role("button", name="Pause…").click()
    page.get_by_label("Reason").fill("the target is slow")
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call")).to_contain_text("duetime rates pause crm --reason 'the target is slow'")


def test_a_dialog_stays_open_if_a_selection_of_text_ends_outside(console: Console) -> None:
    """Only a click that also begins outside the dialog closes it, so that typed text is not lost."""
    page = console.open("/calendars")
    page.get_by_role("button", name="New calendar").click()
    name = page.get_by_label("Name")
    name.fill("holidays")
    box = name.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 20, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(5, 5)
    page.mouse.up()
    expect(name).to_have_value("holidays")
    page.mouse.click(5, 5)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_settings_page_shows_quotas_and_their_usage(console: Console, world: World) -> None:
    """A user sees their own quotas and use; an operator also sees the defaults and the owners with special quotas."""
    world.do(lambda live: live.environ.__setitem__(Variable.QUOTAS, '{"schedules": 5}'))
    world.ask("PUT", "/v1/quotas/1:role/reports", {"creates_per_second": 20, "reason": "a loop"})
    page = console.open("/settings")
    expect(page.locator("section", has_text="Your quotas")).to_contain_text("0 of 5")
    owners = page.locator("section", has_text="Quotas of owners")
    expect(owners).to_contain_text("By default")
    expect(owners).to_contain_text("1:role/reports")
    expect(owners).to_contain_text("creations 20 a second: a loop")
    expect(owners.locator(".command")).to_contain_text("duetime quotas set OWNER creates_per_second=20")


@pytest.mark.parametrize("page_name", ["dead-letters", "calendars", "workers"])
def test_an_empty_page_describes_its_content(console: Console, page_name: str) -> None:
    """Each empty page has an explanation and a first command, and fits on a phone."""
    page = console.open(f"/{page_name}", narrow=True, scheme="dark")
    expect(page.locator(".empty p").first).to_be_visible()
    expect(page.locator(".empty .command")).to_contain_text("duetime ")
    console.check_accessibility(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
