"""A test that runs, on the deployed stack, the examples of the page about the unified task interface."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.docs.pages import REFERENCE
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_local.stack import Stack

PAGE = REFERENCE / "first-designs.md"
BLOCK = re.compile(r"^```http\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMES = ["create", "query", "change", "pause", "continue", "run", "prepare", "status"]
NAMES += ["heartbeat", "progress", "notify", "clean", "rollback", "summary"]
ANSWERS = {"run": (202, None), "status": (200, {"copied": 9}), "summary": (200, {"moved": 17})}


@dataclass
class Service:
    """A small HTTP service that a task calls.

    Attributes:
        calls: the method, the action, and the fence of each received call.
    """

    url: str = ""
    calls: list[tuple[str, str, int]] = field(default_factory=list)

    def was_asked(self, method: str, action: str) -> bool:
        """Whether a call with this method and action was received."""
        return any((one[0], one[1]) == (method, action) for one in self.calls)

    @property
    def fence(self) -> int:
        """The fence of the `run` call to the service."""
        return next(fence for _, action, fence in self.calls if action == "run")


@contextmanager
def serving() -> Iterator[Service]:
    """Run the service on a free port of the loopback address."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            (action,) = parse_qs(urlsplit(self.path).query)["action"]
            service.calls.append((self.command, action, int(self.headers["Duetime-Fence"])))
            status, document = ANSWERS.get(action, (200, "done"))
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = answer  # noqa: N815 - the standard library's names

        def log_message(self, *_: object) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    service.url = f"http://127.0.0.1:{server.server_port}/work"
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Reader:
    """Runs the page's examples one after the other."""

    api: httpx.Client
    service: Service
    task: str = ""

    def run(self, block: str) -> None:
        """Run one example, and check its effect and response."""
        asked, _, rest = block.partition("-> ")
        if asked.strip() and not asked.startswith("service:"):
            self.request(asked, rest.split("\nservice:")[0])
        for method, action in re.findall(r"^service: (\w+) action=(\w+)$", block, re.MULTILINE):
            assert until(lambda m=method, a=action: self.service.was_asked(m, a)), f"{method} {action} never came"  # type: ignore[misc] # a lambda with defaults
        if "action=run" in block:
            assert until(lambda: self.answer("GET", f"/v1/tasks/{self.task}", None)[1]["awaiting_notification"])
        if "action=clean" in block or "action=rollback" in block:
            assert until(lambda: self.answer("GET", f"/v1/tasks/{self.task}", None)[1]["finished_at"])

    def request(self, asked: str, expected: str) -> None:
        """Send the request of an example, and compare the response with the page."""
        first, _, body = self.filled(asked).strip().partition("\n")
        method, path = first.split(" ")
        status, document = self.answer(method, path, json.loads(body) if body else None)
        wanted_status, _, wanted = expected.strip().partition(" ")
        assert (status, first) == (int(wanted_status), first), document
        self.task = self.task or document["id"]
        assert_holds(document, json.loads(self.filled(wanted)))

    def filled(self, text: str) -> str:
        """The text, with the example's placeholders replaced by values."""
        text = text.replace("{service}", self.service.url).replace("{task}", self.task)
        return text.replace("{fence}", str(self.service.fence)) if "{fence}" in text else text

    def answer(self, method: str, path: str, body: object) -> tuple[int, Any]:
        """Send a request to the API, and return the status and the body of the response."""
        response = self.api.request(method, path, json=body)
        return response.status_code, response.json()


def assert_holds(document: Any, wanted: Any) -> None:  # noqa: ANN401 - any JSON
    """Check that the response contains the parts that the page shows."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            assert_holds(document[key], value)
    elif isinstance(wanted, list):
        assert len(document) == len(wanted)
        for one, value in zip(document, wanted, strict=True):
            assert_holds(one, value)
    else:
        assert document == wanted


def test_each_example_of_the_task_interface_page_works_as_documented(deployed: Stack) -> None:
    """Each of the fourteen examples on the page, in order, has the documented effect and response."""
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^### \d+ (\w+)$", text, re.MULTILINE) == NAMES
    with serving() as service, httpx.Client(base_url=deployed.ready.api_url, timeout=120) as api:
        reader = Reader(api, service)
        for block in BLOCK.findall(text):
            reader.run(block)
