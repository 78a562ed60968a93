"""Measures the console in an account with many tasks: `python -m tests.console.figures [TASKS]`.

The figures depend on the machine and are not asserted. The account is in virtual time with a fake database, so the
measured times until data appears are those of this process and not of AWS.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

from tests.console.conftest import WIDE, chromium
from tests.console.test_responsiveness import layers
from tests.console.world import World
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page, WebSocketRoute

TASKS = 15_000
SOON, LATER = 60, 7_200
ENDED_PART = 3
EVENTS, PER_FRAME = 100_000, 100
IDLE_SECONDS = 60
SAMPLES = 12
PAGES = ("/overview", "/tasks/now", "/tasks", "/tasks?q=state:running", "/schedules", "/topologies", "/workers")
PATIENCE_MS = 180_000
OBSERVE = """
addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
    if (document.querySelector("main h1")) window.headed ??= performance.now();
    const rows = document.querySelector("main tr[data-row], main .empty, main .load, main .part table");
    if (rows) window.filled ??= performance.now();
}).observe(document, {childList: true, subtree: true}));
"""
FRAMES = """(count) => new Promise((done) => {
    const times = [];
    const step = (at) => (times.push(at), times.length > count ? done(times.slice(1).map((t, i) => t - times[i]))
        : requestAnimationFrame(step));
    requestAnimationFrame(step);
})"""


def say(name: str, value: object, unit: str = "") -> None:
    """Print a figure."""
    sys.stdout.write(f"{name:<46} {value} {unit}\n")
    sys.stdout.flush()


def fill(world: World, tasks: int) -> None:
    """Create tasks, of which a third soon end, and a schedule that runs every minute."""
    for number in range(tasks // 100):
        delay = SOON if number % ENDED_PART == 0 else LATER + number
        task = {
            "type": f"type-{number % 7}" if delay > SOON else PLAIN,
            "delay_seconds": delay,
            "tags": {"batch": "figures"},
        }
        world.ask("POST", "/v1/tasks/batch", {"tasks": [task] * 100})
    world.ask("POST", "/v1/schedules", {"name": "each-minute", "cron": "* * * * *", "task": {"type": PLAIN}})
    world.run(2 * MINUTE)
    world.keep_lists()


def heap_megabytes(page: Page) -> float:
    """Return the size of the page's JavaScript heap after a garbage collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return round(float(metrics["JSHeapUsedSize"]) / 1e6, 1)


class Figures:
    """Measures one page after another."""

    def __init__(self, browser: Browser, world: World) -> None:
        self.browser = browser
        self.world = world

    def open(self, path: str, prepare: Callable[[Page], None] | None = None) -> Page:
        """Open a page in a separate browser profile."""
        context = self.browser.new_context(viewport=WIDE)  # type: ignore[arg-type] # width and height
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.add_init_script(OBSERVE)
        if prepare:
            prepare(page)
        page.goto(f"{self.world.url}#{path}")
        page.wait_for_selector("main h1")
        return page

    def pages(self) -> None:
        """Measure the time to open each page, and its number of requests."""
        for path in PAGES:
            asked = len(self.world.requests)
            page = self.open(path)
            page.wait_for_selector("main tr[data-row], main .empty, main .load", state="attached")
            paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
            heading, data = page.evaluate("[window.headed ?? 0, window.filled ?? 0]")
            page.wait_for_load_state("networkidle")
            count = len(self.world.requests) - asked
            say(path, f"paint {paint:.0f}, heading {heading:.0f}, data {data:.0f} ms, {count} requests")
            page.context.close()

    def idle(self) -> None:
        """Count the requests that an open page sends in a minute."""
        page = self.open("/overview")
        page.wait_for_load_state("networkidle")
        asked = len(self.world.requests)
        page.wait_for_timeout(IDLE_SECONDS * 1000)
        say("open overview", len(self.world.requests) - asked, "requests a minute")
        page.context.close()

    def event_to_screen(self) -> None:
        """Measure the delay from a request until the task's page shows the change."""
        task_id = self.world.create(type=PLAIN, delay_seconds=LATER)
        page = self.open(f"/tasks/{task_id}")
        page.wait_for_selector(".live-live")
        took: list[float] = []
        for number in range(SAMPLES):
            verb, state = ("pause", "paused") if number % 2 == 0 else ("resume", "scheduled")
            page.evaluate(
                """(state) => { window.seen = new Promise((done) => {
                    const look = () => document.querySelector("h1 .chip")?.textContent === state
                        ? done(Date.now()) : requestAnimationFrame(look);
                    look();
                }) }""",
                state,
            )
            began = time.time()
            self.world.ask("POST", f"/v1/tasks/{task_id}/{verb}", {})
            took.append(float(page.evaluate("window.seen")) - began * 1000)
        say("event to screen", f"p50 {statistics.median(took):.0f}, max {max(took):.0f} ms")
        page.context.close()

    def many_events(self) -> None:
        """Measure the heap after 100,000 pushed changes to tasks that the list does not show."""
        sockets: list[WebSocketRoute] = []

        def answer(socket: WebSocketRoute, text: str | bytes) -> None:
            message = json.loads(text)
            if message["do"] == "subscribe":
                socket.send(json.dumps({"kind": "snapshot", "ref": message["ref"], "version": 0, "item": None}))
                refs.append(message["ref"])

        def connect(socket: WebSocketRoute) -> None:
            sockets.append(socket)
            socket.on_message(lambda text: answer(socket, text))

        refs: list[str] = []
        page = self.open("/tasks", lambda each: each.route_web_socket("**", connect))
        page.wait_for_selector(".live-live")
        before = heap_megabytes(page)
        began = time.perf_counter()
        for first in range(0, EVENTS, PER_FRAME):
            changes = [_change(number, refs) for number in range(first, first + PER_FRAME)]
            sockets[-1].send(json.dumps({"kind": "change", "changes": changes}))
        page.wait_for_timeout(SECOND)
        spent = time.perf_counter() - began
        say(f"heap after {EVENTS:,} events", f"{before} → {heap_megabytes(page)} MB in {spent:.0f} s")
        page.context.close()

    def graphs(self) -> None:
        """Measure the frame rate while a graph of a thousand or ten thousand nodes is moved."""
        for levels, width in ((25, 40), (100, 100)):
            body = {"nodes": layers(levels, width), "delay_seconds": LATER}
            topology = self.world.ask("POST", "/v1/topologies", body)["id"]
            began = time.perf_counter()
            page = self.open(f"/topologies/{topology}")
            graph = page.get_by_role("application")
            graph.wait_for()
            page.get_by_text("Arranging").wait_for(state="detached")
            drawn = time.perf_counter() - began
            box = graph.bounding_box() or {"x": 0, "y": 0, "width": 0, "height": 0}
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            page.mouse.down()
            page.evaluate(f"window.frames_ = ({FRAMES})(90)")
            for step in range(60):
                page.mouse.move(box["x"] + box["width"] / 2 + step * 4, box["y"] + box["height"] / 2 + step)
            page.mouse.up()
            frames = sorted(page.evaluate("window.frames_"))
            p95 = frames[int(len(frames) * 0.95)]
            figures = f"frames p50 {statistics.median(frames):.0f}, p95 {p95:.0f}, max {frames[-1]:.0f} ms"
            say(
                f"graph of {levels * width:,} nodes",
                f"drawn after {drawn:.1f} s, {figures}, heap {heap_megabytes(page)} MB",
            )
            page.context.close()


def _change(number: int, refs: list[str]) -> dict[str, Any]:
    """Return a pushed creation."""
    id_ = f"01M7YJJ6RJ{number:016d}"
    at = "2026-11-21T03:00:00.000Z"
    item: dict[str, Any] = {
        "id": id_, "type": PLAIN, "name": None, "state": "scheduled", "due_at": at, "created_at": at,
        "started_at": None, "finished_at": None, "tags": {}, "attempt": 0, "progress": None, "error": None,
        "schedule": None,
        "topology": None, "node": None, "version": 1,
    }  # fmt: skip
    return {"id": id_, "version": 1, "refs": refs, "left": [], "item": item}


def main(tasks: int) -> int:
    """Measure everything; return 1 if there is no browser."""
    path = chromium()
    if path is None:
        sys.stderr.write(
            "There is no Chromium: install Debian's `chromium-headless-shell`, or name a browser in DUETIME_CHROMIUM.\n"
        )
        return 1
    told: dict[str, str] = {}
    world = World(told)
    os.environ.update(told)
    try:
        began = time.perf_counter()
        fill(world, tasks)
        say("account", f"{tasks:,} tasks, filled in {time.perf_counter() - began:.0f} s")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            figures = Figures(browser, world)
            for measure in (figures.pages, figures.event_to_screen, figures.idle, figures.many_events, figures.graphs):
                measure()
            browser.close()
    finally:
        world.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else TASKS))
