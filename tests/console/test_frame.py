"""Tests every page's keys, themes, time zones, widths, accessibility, policy and size budgets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from functions.console.handler import FILES
from tests.scenarios.scenario import PLAIN, SECOND
from tests.waiting import until

if TYPE_CHECKING:
    from tests.console.conftest import Console
    from tests.console.world import World

LATER = 7_200
ROWS = "tr[data-row]"
TASK_LIST_BYTES, ALL_BYTES = 40_000, 150_000
PAGES = ["/overview", "/tasks", "/tasks?q=state:failed"]
BUILT = pytest.mark.skipif(not FILES, reason="the console is not built: `make console`")


@pytest.fixture
def task_id(world: World) -> str:
    """Create a task that has run and a task that has not, and return the id of the first task."""
    made = world.create(type=PLAIN, name="nightly", tags={"team": "docs"}, payload={"a": 1})
    world.create(type=PLAIN, delay_seconds=LATER)
    world.run(5 * SECOND)
    return made


@pytest.mark.parametrize(
    ("scheme", "narrow"),
    [
        ("light", True),
        pytest.param("dark", False, marks=pytest.mark.slow),
        pytest.param("light", False, marks=pytest.mark.slow),
        pytest.param("dark", True, marks=pytest.mark.slow),
    ],
)
def test_no_page_has_axe_violations(console: Console, task_id: str, scheme: str, *, narrow: bool) -> None:
    """No page has axe violations in either theme or at either width, and every page fits on a phone."""
    for path in [*PAGES, f"/tasks/{task_id}"]:
        page = console.open(path, narrow=narrow, scheme=scheme)
        expect(page.locator("main .card, main tr[data-row], main .empty").first).to_be_visible()
        console.check_accessibility(page)
        width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], path


def test_the_console_can_be_used_with_only_the_keyboard(console: Console, task_id: str) -> None:
    """Lists, tasks, the palette and the help can be used without a mouse."""
    page = console.open("/tasks")
    expect(page.locator(ROWS)).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("nightly")
    page.keyboard.press("Control+k")
    page.keyboard.type("overv")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_contain_text("Next and previous row")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    page.keyboard.press("Control+k")
    page.keyboard.type(task_id)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("nightly")


def test_the_theme_follows_the_system_until_one_is_chosen(console: Console) -> None:
    """The page follows the system's theme when it changes; a chosen theme takes precedence and survives a reload."""
    page = console.open("/tasks")

    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))

    light = background()
    page.emulate_media(color_scheme="dark")
    dark = background()
    assert dark != light
    page.get_by_label("Theme").select_option("light")
    assert background() == light
    page.reload()
    page.wait_for_selector("h1")
    assert background() == light


def test_every_time_is_printed_with_its_zone(console: Console, task_id: str) -> None:
    """A time is printed with its zone, which a control in the header changes."""
    page = console.open(f"/tasks/{task_id}")
    due = page.locator(".page-head time").first
    expect(due).to_contain_text("CET")
    page.get_by_label("Time zone").select_option("UTC")
    expect(due).to_contain_text("UTC")
    expect(due).to_have_text(re.compile(r"02:33:\d\d UTC"))


def test_the_page_of_an_unknown_task_shows_the_problem(console: Console) -> None:
    """For an unknown task, the page shows the API's problem with its code."""
    console.expected = ("status of 404",)
    page = console.open("/tasks")
    page.goto(page.url.replace("/tasks", "/tasks/01M7YJJ6RJ000VK12BGKK15FQ0"))
    expect(page.locator(".problem code").first).to_have_text("task_not_found")


def test_the_page_cannot_run_or_load_foreign_content(console: Console, world: World) -> None:
    """The page can neither assign HTML as text nor send requests to other origins."""
    console.expected = ("Content Security Policy", "TrustedHTML", "Failed to", "Refused to")
    page = console.open("/tasks")
    assert (
        page.evaluate("try { document.body.innerHTML = '<b>x</b>'; 'set' } catch (error) { error.name }") == "TypeError"
    )
    blocked = page.evaluate(
        "(url) => fetch(url).then(() => 'loaded', () => 'blocked')",
        world.watch_url.replace("ws", "http").replace("1:", "2:"),
    )
    assert blocked == "blocked"
    assert until(lambda: "CSP: connect-src" in console.complaints or page.evaluate("0"))
    console.complaints.clear()


def closure(names: set[str]) -> set[str]:
    """Return the scripts that are loaded together with the given scripts because of static imports."""
    found = set(names)
    for name in names:
        text = FILES[name].content.decode()
        found |= {one for one in re.findall(r'(?:from|import)"\./([^"]+\.js)"', text) if one not in found}
    return found if found == names else closure(found)


@BUILT
def test_the_scripts_stay_within_their_size_limits() -> None:
    """The task list loads at most 40 KB of compressed scripts, and the complete console at most 150 KB."""
    scripts = {name for name in FILES if name.endswith(".js")}
    entries = {name for name in scripts if name.startswith(("main-", "tasks-"))}
    first = closure(entries)
    assert len(entries) == 2
    assert sum(len(FILES[name].packed) for name in first) <= TASK_LIST_BYTES
    assert sum(len(FILES[name].packed) for name in scripts) <= ALL_BYTES


@BUILT
def test_no_file_contains_the_address_of_another_origin() -> None:
    """Scripts, styles and pages contain no addresses on other origins except XML namespaces."""
    for name, file in FILES.items():
        if Path(name).suffix in {".js", ".css", ".html"}:
            urls = set(re.findall(r"https?://[a-z0-9.-]+", file.content.decode()))
            assert urls <= {"http://www.w3.org"}, name
