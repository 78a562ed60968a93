"""Tests the pages for schedules in a browser."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.scenarios.scenario import HOUR, PLAIN

if TYPE_CHECKING:
    from tests.console.conftest import Console
    from tests.console.world import World
    from tests.scenarios.live import Live

pytestmark = pytest.mark.slow

EVERY_MINUTE = {"cron": "* * * * *", "timezone": "Europe/London", "task": {"type": PLAIN}}


def test_a_schedule_with_a_clock_change_is_previewed_during_typing(console: Console, world: World) -> None:
    """The preview shows a clock change's effect on each occurrence, and the created schedule equals the preview."""
    page = console.open("/schedules")
    expect(page.get_by_role("heading", name="No schedules yet")).to_be_visible()
    page.get_by_role("button", name="New schedule").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("nightly")
    page.get_by_label("Task type").fill(PLAIN)
    page.get_by_label("Cron").fill("30 1 28 3 *")
    page.locator("dialog").get_by_label("Time zone").fill("Europe/London")
    preview = page.get_by_label("Next occurrences")
    expect(preview).to_contain_text("2027-03-28")
    expect(preview.locator(".not").first).to_contain_text("does not run")
    page.get_by_label("A time that the clock skips").select_option("shift_forward")
    expect(preview.locator("li").first).to_contain_text("2027-03-28 02:00")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("h1")).to_contain_text("nightly")
    expect(page.get_by_role("button", name="As a command")).to_be_visible()
    stored = world.ask("GET", "/v1/schedules/nightly")
    assert (stored["cron"], stored["timezone"], stored["dst_gap"]) == ("30 1 28 3 *", "Europe/London", "shift_forward")


def test_the_error_for_an_invalid_timing_is_shown_during_typing(console: Console) -> None:
    """The server's reason for an invalid timing is shown below the form during typing."""
    console.expected = ("status of 422",)
    page = console.open("/schedules")
    page.get_by_role("button", name="New schedule").click()
    page.get_by_label("Cron").fill("61 * * * *")
    expect(page.locator(".preview .fault")).to_contain_text("61")


def test_a_run_before_a_change_is_explained_with_its_error(console: Console, world: World) -> None:
    """The page explains a failed run from before the timing changed, also when the user enters the time."""
    console.expected = ("status of 400",)
    world.do(lambda live: setattr(live, "act", lambda *_: 1 / 0))
    task = {"type": PLAIN, "retry": {"max_attempts": 1}}
    world.ask("POST", "/v1/schedules", {**EVERY_MINUTE, "task": task, "name": "each-minute"})
    world.run(HOUR // 30)
    world.ask("PATCH", "/v1/schedules/each-minute", {"cron": "30 1 * * *"})
    (failed, *_) = [
        each for each in world.ask("GET", "/v1/schedules/each-minute/runs")["runs"] if each["status"] == "failed"
    ]
    page = console.open("/schedules/each-minute")
    why = page.get_by_label("Why", exact=True)
    expect(why).to_contain_text("ran")
    expect(why).to_contain_text("ZeroDivisionError: division by zero")
    expect(why.get_by_role("link", name="Its task")).to_have_attribute("href", re.compile(failed["task_id"]))
    why.get_by_label("At another time").fill("2020-01-01T00:00:00Z")
    why.get_by_role("button", name="Explain").click()
    expect(why).to_contain_text("before creation")
    why.get_by_label("At another time").fill("yesterday")
    why.get_by_role("button", name="Explain").click()
    expect(why).to_contain_text("RFC 3339")


def test_the_strip_shows_the_outcome_of_each_occurrence(console: Console, world: World) -> None:
    """Occurrences link to their tasks; a pause shows its reason, and a resume makes the schedule active again."""
    world.ask("POST", "/v1/schedules", {**EVERY_MINUTE, "name": "each-minute"})
    world.run(HOUR // 12)
    page = console.open("/schedules/each-minute")
    expect(page.locator(".strip a .state-succeeded").first).to_be_visible()
    expect(page.locator(".occurrences li")).to_have_count(5)
    expect(page.locator(".events time").first).to_contain_text("GMT")
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("Reason").fill("the ledger is being moved")
    page.locator("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator(".page-head")).to_contain_text("the ledger is being moved")
    page.get_by_role("button", name="Resume").click()
    page.locator("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator("h1 .chip")).to_have_text("active")
    console.check_accessibility(page)
    page.locator(".strip a").first.click()
    page.wait_for_url(re.compile("#/tasks/"))


def test_the_list_shows_the_time_zone_of_each_schedule(console: Console, world: World) -> None:
    """A schedule's time zone, and its times in this zone, are shown at both widths."""
    world.ask("POST", "/v1/schedules", {**EVERY_MINUTE, "name": "each-minute", "timezone": "Asia/Tokyo"})
    for narrow in (False, True):
        page = console.open("/schedules", narrow=narrow)
        row = page.locator("tr[data-row]")
        expect(row).to_contain_text("Asia/Tokyo")
        expect(row.locator("time").first).to_contain_text(re.compile("GMT\\+9|JST"))
        console.check_accessibility(page)
        width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1]


def test_every_kind_of_timing_is_previewed_in_words(console: Console, world: World) -> None:
    """Rates, dates, permanent schedules and intervals are previewed in words; an interval is created as shown."""
    # Between choosing a kind and typing, the preview may be requested with an empty string.
    console.expected = ("status of 422",)
    page = console.open("/schedules")
    page.get_by_role("button", name="New schedule").click()
    preview = page.get_by_label("Next occurrences")
    page.get_by_role("textbox", name="Name", exact=True).fill("month-end")
    page.get_by_label("Task type").fill(PLAIN)
    for kind, label, text, words in (
        ("rate", "Every", "90 minutes", "every 1 hour 30 minutes"),
        ("dates", "Dates", "2026-12-24T09:00:00", "at 2026-12-24 09:00"),
        ("permanent", "Seconds between runs", "45", "again 45 seconds after the end of each run"),
        ("interval", "Interval", "R/2026-11-30T18:00:00/P1M", "every month from 2026-11-30 18:00"),
    ):
        page.locator("dialog").get_by_label("Runs", exact=True).select_option(kind)
        page.get_by_label(label, exact=True).fill(text)
        expect(preview.locator("strong").first).to_have_text(words)
    page.get_by_label("While the last run is active").select_option("buffer_one")
    page.get_by_label("Of the missed runs").select_option("all")
    page.get_by_text("Calendars, dates, start, end and jitter").click()
    page.get_by_label("Dates added").fill("2026-12-30T09:00:00, 2026-12-31T09:00:00")
    page.get_by_label("Dates left out").fill("2027-01-31")
    page.get_by_label("Spread in seconds").fill("60")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator(".page-head")).to_contain_text("every month from 2026-11-30 18:00")
    stored = world.ask("GET", "/v1/schedules/month-end")
    assert stored["extra_dates"] == ["2026-12-30T09:00:00", "2026-12-31T09:00:00"]
    given = stored["excluded_dates"], stored["spread_seconds"], stored["catch_up_mode"]
    assert given == (["2027-01-31"], 60, "all")
    assert (stored["interval"], stored["cron"], stored["overlap"]) == ("R/2026-11-30T18:00:00/P1M", None, "buffer_one")
    page.get_by_role("button", name="Change…").click()
    page.locator("dialog").get_by_label("Runs", exact=True).select_option("cron")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator(".page-head")).to_contain_text("at 02:00 every day")


def test_several_timings_are_shown_and_edited(console: Console, world: World) -> None:
    """Each timing is a line in the form, and other changes keep all timings of any kind.

    The second change starts from the first change's response, although the page has not read the schedule again.
    """
    timings = [
        {"cron": "0 9 * * mon-fri"},
        {"cron": "cron(0 12 ? * SAT *)", "dialect": "eventbridge"},
        {"rate": "36 hours"},
        {"dates": ["2026-12-24T09:00:00", "2026-12-27T09:00:00"]},
    ]
    world.ask("POST", "/v1/schedules", {"name": "shops", "timings": timings, "task": {"type": PLAIN}})
    stored = world.ask("GET", "/v1/schedules/shops")["timings"]
    page = console.open("/schedules/shops")
    shown = "cron 0 9 * * mon-fri; eventbridge cron(0 12 ? * SAT *); rate 36 hours; dates 2026-12-24T09:00:00, "
    expect(page.locator(".page-head code")).to_contain_text(shown)
    page.get_by_role("button", name="Change…").click()
    lines = page.get_by_label("Timings", exact=True)
    expect(page.get_by_label("Next occurrences").locator("strong").first).to_contain_text("every 36 hours")
    page.route("**/v1/schedules/shops", lambda route: route.fallback() if route.request.method == "PATCH" else None)
    page.get_by_label("While the last run is active").select_option("buffer_one")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("dialog")).to_have_count(0)
    changed = world.ask("GET", "/v1/schedules/shops")
    assert (changed["timings"], changed["cron"], changed["overlap"]) == (stored, None, "buffer_one")
    page.get_by_role("button", name="Change…").click()
    lines.fill("cron 0 9 * * mon-fri\ninterval P1D")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("dialog")).to_have_count(0)
    changed = world.ask("GET", "/v1/schedules/shops")["timings"]
    assert [each["cron"] or each["interval"] for each in changed] == ["0 9 * * mon-fri", "P1D"]


def test_the_schedule_form_does_not_overwrite_changes_made_while_it_is_open(console: Console, world: World) -> None:
    """The page shows another user's change, and a form that still has older values is refused and stays open."""
    console.expected = ("status of 412",)
    world.ask("POST", "/v1/schedules", {**EVERY_MINUTE, "cron": "0 * * * *", "name": "hourly"})
    page = console.open("/schedules/hourly")
    page.get_by_role("button", name="Change…").click()
    page.get_by_label("While the last run is active").select_option("buffer_one")
    world.ask("PATCH", "/v1/schedules/hourly", {"cron": "30 * * * *"})
    expect(page.locator(".page-head code")).to_have_text("30 * * * *")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("dialog .problem")).to_be_visible()
    kept = world.ask("GET", "/v1/schedules/hourly")
    assert (kept["cron"], kept["overlap"]) == ("30 * * * *", "skip")


def test_a_cron_expression_keeps_its_dialect(console: Console, world: World) -> None:
    """The form offers each dialect, and the page shows the dialect beside the expression."""
    # The preview for an expression that can be read in two ways is refused.
    console.expected = ("status of 422",)
    page = console.open("/schedules")
    page.get_by_role("button", name="New schedule").first.click()
    page.get_by_label("Name", exact=True).fill("odd-days")
    page.get_by_label("Task type").fill(PLAIN)
    page.get_by_label("Cron", exact=True).fill("0 0 */2 * 1-5")
    expect(page.locator("dialog")).to_contain_text("dialect: vixie for both")
    page.get_by_text("Calendars, dates, start, end and jitter").click()
    page.get_by_label("Dialect").select_option("vixie")
    expect(page.get_by_label("Next occurrences").locator("strong").first).to_contain_text("if that day is Monday")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator(".page-head code")).to_have_text("vixie 0 0 */2 * 1-5")
    assert world.ask("GET", "/v1/schedules/odd-days")["dialect"] == "vixie"


def test_a_backfill_is_previewed_and_runs(console: Console, world: World) -> None:
    """A backfill's occurrences are counted before anything runs, and the page shows the backfill's progress."""
    world.ask("POST", "/v1/schedules", {**EVERY_MINUTE, "cron": "0 * * * *", "name": "hourly", "timezone": "UTC"})
    page = console.open("/schedules/hourly")
    page.get_by_role("button", name="Backfill…").click()
    page.get_by_label("From", exact=True).fill("2026-11-20T00:00:00Z")
    page.get_by_label("To", exact=True).fill("2026-11-20T06:00:00Z")
    expect(page.get_by_label("Occurrences of the period")).to_contain_text("6 runs")
    page.get_by_label("One run at a time").check()
    page.get_by_role("button", name="Backfill", exact=True).click()
    expect(page.get_by_role("heading", name="Backfills")).to_be_visible()
    world.run(HOUR // 12)
    runs = world.ask("GET", "/v1/schedules/hourly/runs")["runs"]
    assert [run["status"] for run in runs if run["cause"] == "backfill"] == ["succeeded"] * 6
    backfill = world.ask("GET", "/v1/schedules/hourly/backfills")["backfills"][0]
    assert (backfill["overlap"], backfill["only_missing"]) == ("buffer_all", True)


def test_a_backfill_of_several_timings_is_previewed(console: Console, world: World) -> None:
    """The preview has the occurrences of all timings, without the days on which the schedule does not run."""
    timings = [{"cron": "0 6 * * *"}, {"cron": "0 18 * * *"}]
    body = {"name": "twice", "timings": timings, "excluded_dates": ["2026-11-20"], "task": {"type": PLAIN}}
    world.ask("POST", "/v1/schedules", body)
    page = console.open("/schedules/twice")
    page.get_by_role("button", name="Backfill…").click()
    page.get_by_label("From", exact=True).fill("2026-11-19T00:00:00Z")
    page.get_by_label("To", exact=True).fill("2026-11-21T00:00:00Z")
    expect(page.get_by_label("Occurrences of the period")).to_contain_text("2 runs")


def test_the_command_of_a_schedule_does_what_the_form_does(console: Console, world: World) -> None:
    """The command has the payload and the type; there is none if it could not set an option to its default."""
    page = console.open("/schedules")
    page.get_by_role("button", name="New schedule").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("nightly")
    page.get_by_label("Task type").fill(PLAIN)
    page.get_by_label("Payload").fill('{"month": 11}')
    page.get_by_label("While the last run is active").select_option("allow_all")
    page.get_by_text("Failures and expectations").click()
    page.get_by_label("Longest run").fill("2.5")
    assert page.get_by_label("Longest run").evaluate("field => field.validity.valid")
    page.get_by_label("Longest run").fill("")
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call .command").first).to_contain_text(
        """--overlap allow_all --payload '{"month":11}'"""
    )
    page.get_by_role("button", name="Change…").click()
    page.get_by_label("Task type").fill("report")
    page.locator("dialog").get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator(".last-call .command").first).to_contain_text("duetime schedules update nightly --type report")
    assert world.ask("GET", "/v1/schedules/nightly")["task"]["type"] == "report"
    page.get_by_role("button", name="Change…").click()
    page.get_by_label("While the last run is active").select_option("skip")
    page.locator("dialog").get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator(".last-call .command")).to_have_count(1)
    expect(page.locator(".last-call .command")).to_contain_text("curl -X PATCH")


def test_the_task_options_of_a_schedule_are_set_changed_and_removed(console: Console, world: World) -> None:
    """A change sends a merge patch that removes emptied fields and omits untouched fields."""
    page = console.open("/schedules")
    page.get_by_role("button", name="New schedule").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("nightly")
    page.get_by_label("Task type").fill(PLAIN)
    page.get_by_text("Options of its tasks").click()
    expect(page.locator("[data-option='due_at']")).to_have_count(0)
    for path, value in {"lock.key": "ledger", "retry.max_attempts": "7", "tags": "team=dba\nenv=prod"}.items():
        page.locator(f"[data-option='{path}'] :is(input, textarea)").fill(value)
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("h1")).to_contain_text("nightly")
    task = world.ask("GET", "/v1/schedules/nightly")["task"]
    assert (task["lock"]["key"], task["retry"]["max_attempts"]) == ("ledger", 7)
    assert task["tags"] == {"team": "dba", "env": "prod"}
    page.get_by_role("button", name="Change…").click()
    page.get_by_text("Options of its tasks").click()
    for path, value in {"lock.key": "", "expires_seconds": "600", "tags": "team=dba"}.items():
        page.locator(f"[data-option='{path}'] :is(input, textarea)").fill(value)
    page.locator("dialog").get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("dialog")).to_have_count(0)
    task = world.ask("GET", "/v1/schedules/nightly")["task"]
    assert (task["lock"], task["expires_seconds"], task["tags"]) == (None, 600, {"team": "dba"})
    assert task["retry"]["max_attempts"] == 7


def test_a_schedule_is_created_from_json(console: Console, world: World) -> None:
    """The form's request can be edited as JSON and is sent as typed."""
    page = console.open("/schedules")
    page.get_by_role("button", name="New schedule").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("nightly")
    page.get_by_label("Task type").fill(PLAIN)
    page.get_by_role("button", name="Edit as JSON").click()
    request = page.get_by_label("Request")
    asked = json.loads(request.input_value())
    request.fill(json.dumps({**asked, "cron": "15 4 * * *"}))
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("h1")).to_contain_text("nightly")
    assert world.ask("GET", "/v1/schedules/nightly")["cron"] == "15 4 * * *"


def test_schedules_are_searched_sorted_and_paused_by_tag(console: Console, world: World) -> None:
    """Schedules are found across all pages by part of a name, type, tag or state, and paused by tag with a reason."""
    tagged = {"type": PLAIN, "tags": {"team": "dba"}}
    made = [("backup-eu", 1, tagged), ("backup-us", 3, tagged), ("report", 2, {"type": PLAIN})]
    for name, hour, task in made:
        world.ask("POST", "/v1/schedules", {"name": name, "cron": f"0 {hour} * * *", "timezone": "UTC", "task": task})

    def crowd(live: Live) -> None:
        for number in range(100):
            rare = {"name": f"a-{number:03}", "cron": "0 0 1 1 *", "task": {"type": "crowd"}}
            assert live.ask("POST", "/v1/schedules", rare).status == 201

    world.do(crowd)
    page = console.open("/schedules")
    rows = page.locator("tr[data-row] [data-open]")
    expect(page.locator("h1")).to_have_text("Schedules 103")
    expect(rows).to_have_count(100)
    page.get_by_role("button", name="Show 3 more").click()
    expect(rows).to_have_count(103)
    search = page.get_by_label("Search schedules")
    search.fill("BACKUP")
    page.keyboard.press("Enter")
    expect(rows).to_have_text(["backup-eu", "backup-us"])
    page.get_by_label("Order").select_option("Next run first")
    expect(rows).to_have_text(["backup-us", "backup-eu"])
    expect(page.get_by_role("button", name="Pause all…")).to_be_disabled()
    search.fill("tag:team:dba")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Pause all…").click()
    page.get_by_label("Reason").fill("a release")
    page.get_by_role("button", name="Pause 2", exact=True).click()
    expect(page.locator("tr[data-row]", has_text="a release")).to_have_count(2)
    page.get_by_role("group", name="States").get_by_role("button", name="active").click()
    expect(page.get_by_role("heading", name="No schedule matches")).to_be_visible()
    states = [world.ask("GET", f"/v1/schedules/{name}")["state"] for name, *_ in made]
    assert states == ["paused", "paused", "active"]
    world.ask("POST", "/v1/schedules/backup-eu/resume")
    search.fill("tag:team:dba")
    page.keyboard.press("Enter")
    expect(page.locator("tr[data-row]", has_text="a release")).to_have_count(1)
    page.get_by_role("button", name="Resume all…").click()
    expect(page.locator("dialog h2")).to_have_text("Resume 1 schedule")
    page.keyboard.press("Escape")
    console.check_accessibility(page)


def test_a_change_shows_old_and_new_values_with_an_optional_reason(console: Console, world: World) -> None:
    """The form lists the differences before a change is sent, and the events contain them, with or without a reason."""
    world.ask("POST", "/v1/schedules", {**EVERY_MINUTE, "name": "each-minute"})
    world.ask("PATCH", "/v1/schedules/each-minute", {"cron": "*/2 * * * *"})
    page = console.open("/schedules/each-minute")
    expect(page.get_by_role("table", name="Events")).to_contain_text("no reason given")
    page.get_by_role("button", name="Change…").click()
    expect(page.locator("dialog")).to_contain_text("Nothing has been changed.")
    page.get_by_label("Cron").fill("*/7 * * * *")
    changes = page.get_by_role("list", name="Changes")
    expect(changes).to_have_text("cron: */2 * * * * → */7 * * * *")
    page.get_by_label("Reason").fill("the feed is slower now")
    page.get_by_role("button", name="Change", exact=True).click()
    row = page.get_by_role("table", name="Events").locator("tr", has_text="the feed is slower now")
    expect(row).to_contain_text("cron: */2 * * * * → */7 * * * *")
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call")).to_contain_text("--reason 'the feed is slower now'")


def test_the_next_clock_change_is_previewed_months_before(console: Console) -> None:
    """In November, a daily run at 01:30 in London is marked with March's clock change; a daily run at noon is not."""
    page = console.open("/schedules")
    page.get_by_role("button", name="New schedule").click()
    page.get_by_label("Cron").fill("30 1 * * *")
    page.locator("dialog").get_by_label("Time zone").fill("Europe/London")
    change = page.locator(".clock-change")
    expect(change).to_contain_text("Next clock change: Sun 2027-03-28")
    expect(change.locator("li.not")).to_contain_text("does not run")
    page.get_by_label("Cron").fill("0 12 * * *")
    expect(change).to_contain_text("no run is affected")


def test_older_runs_are_shown_on_request(console: Console, world: World) -> None:
    """The latest fifty runs are shown first and older runs on request, until all occurrences are listed."""
    world.ask("POST", "/v1/schedules", {**EVERY_MINUTE, "name": "each-minute"})
    world.run(HOUR + 10 * HOUR // 60)
    page = console.open("/schedules/each-minute")
    ran = page.get_by_role("table", name="Runs").locator(".state-succeeded")
    expect(ran).to_have_count(50)
    expect(page.get_by_text("Every occurrence since")).to_have_count(0)
    page.get_by_role("button", name="Show older runs").click()
    expect(page.get_by_text("Every occurrence since")).to_be_visible()
    assert ran.count() >= 69
