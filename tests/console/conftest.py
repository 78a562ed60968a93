"""Fixtures for a browser, the console's account, and pages that must not report errors."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect, sync_playwright

from duetime.handlers import REGISTRY
from infra import ROOT
from tests.console.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
PATIENCE_MS = 60_000
"""Timeouts are long because the machine may be busy; only a wait for something that never happens reaches them."""


def chromium() -> str | None:
    """Return the path of a browser on this machine, or `None`.

    The headless shell is preferred, because it opens no windows and therefore takes a third of the CPU time.
    """
    installed = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    names = (os.environ.get("DUETIME_CHROMIUM", ""), *installed)
    return next((path for name in names if name and (path := shutil.which(name))), None)


# The scope is a module: while the browser is open, its event loop runs in the tests' thread, where other modules' tests
# need their own loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start headless Chromium; tests that need it are skipped on machines without it."""
    path = chromium()
    if path is None:
        pytest.skip("no Chromium: install Debian's `chromium-headless-shell`, or name a browser in DUETIME_CHROMIUM")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        # The sandbox would need a different user, and these pages are trusted.
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Return a separate account for each test."""
    told: dict[str, str] = {}
    made = World(told)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    before = dict(REGISTRY)
    yield made
    made.close()
    REGISTRY.clear()
    REGISTRY.update(before)


@dataclass
class Console:
    """Opens the console's pages and records their errors."""

    browser: Browser
    world: World
    complaints: list[str] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    expected: tuple[str, ...] = ()
    """Parts of the messages that a test expects in the browser's log, because the browser logs each error response."""

    def open(self, path: str = "/tasks", *, narrow: bool = False, scheme: str = "light") -> Page:
        """Open a page in a separate browser profile, at the account's time."""
        context = self.browser.new_context(
            viewport=NARROW if narrow else WIDE,  # type: ignore[arg-type] # width and height
            color_scheme=scheme,  # type: ignore[arg-type] # a valid theme
            locale="en-GB",
            timezone_id="Europe/Berlin",
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error('CSP: ' + event.violatedDirective))"
        )
        page.on("console", lambda said: self._note(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(f"{self.world.url}#{path}")
        page.wait_for_selector("h1")
        self.pages.append(page)
        return page

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"} and not any(part in text for part in self.expected):
            self.complaints.append(text)

    def check_accessibility(self, page: Page) -> None:
        """Fail if axe finds an accessibility violation."""
        # The script is evaluated and not loaded, because the page's policy allows no script from elsewhere.
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run({resultTypes: ['violations']}).then((result) => result.violations)")
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []


@pytest.fixture
def console(browser: Browser, world: World) -> Iterator[Console]:
    """Return the console; the test fails if one of its pages has logged an error."""
    made = Console(browser, world)
    yield made
    for page in made.pages:
        page.context.close()
    assert made.complaints == []
