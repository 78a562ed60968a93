"""Takes the screenshots for the docs: `python -m tests.console.screenshots [FOLDER]`.

The unmodified functions run in virtual time with a sample account, so the images change only if the console changes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

from infra import ROOT
from tests.console.conftest import NARROW, WIDE, chromium
from tests.console.sample_account import fill
from tests.console.world import World

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = ROOT / "docs" / "images"
LIGHT, DARK = "light", "dark"
SHORT, TALL = {**WIDE, "height": 680}, {**WIDE, "height": 1040}
MAX_BYTES = 150 * 1024


def pages(ids: dict[str, str]) -> dict[str, tuple[str, str, Any]]:
    """The screenshots by name, each with the page's address, theme and size."""
    return {
        "overview": ("/overview", LIGHT, TALL),
        "tasks-dark": ("/tasks", DARK, SHORT),
        "task-waiting": (f"/tasks/{ids['waiting']}", LIGHT, WIDE),
        "dead-letters": ("/dead-letters", LIGHT, WIDE),
        "schedule-dark": ("/schedules/each-minute", DARK, WIDE),
        "calendar": ("/calendars/uk-holidays", LIGHT, WIDE),
        "topology": (f"/topologies/{ids['topology']}", LIGHT, WIDE),
        "phone-task-dark": (f"/tasks/{ids['retried']}", DARK, NARROW),
    }


def main(folder: Path, wanted: set[str]) -> int:
    """Take the screenshots; return 1 if there is no browser."""
    path = chromium()
    if path is None:
        sys.stderr.write(
            "There is no Chromium: install Debian's `chromium-headless-shell`, or name a browser in DUETIME_CHROMIUM.\n"
        )
        return 1
    told: dict[str, str] = {}
    world = World(told)
    os.environ.update(told)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        ids = fill(world)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            for name, (address, scheme, size) in pages(ids).items():
                if not wanted or name in wanted:
                    _take(browser, world, folder / f"{name}.png", (address, scheme, size))
            browser.close()
    finally:
        world.close()
    return 0


def _take(browser: Browser, world: World, file: Path, page: tuple[str, str, Any]) -> None:
    address, scheme, size = page
    context = browser.new_context(
        viewport=size,
        color_scheme=scheme,  # type: ignore[arg-type] # a valid theme
        locale="en-GB",
        timezone_id="Europe/London",
        reduced_motion="reduce",
    )
    shown = context.new_page()
    shown.goto(f"{world.url}#{address}")
    shown.wait_for_selector("main .card, main table, main .empty")
    shown.wait_for_load_state("networkidle")
    shown.screenshot(path=str(file))
    assert file.stat().st_size <= MAX_BYTES, f"{file.name} is too large for the docs"
    sys.stdout.write(f"{file.name}: {file.stat().st_size // 1024} KB\n")
    context.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES, set(sys.argv[2:])))
