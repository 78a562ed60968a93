"""A small loopback HTTP server that implements the API's contract with tasks in memory."""

from __future__ import annotations

import json
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from email.message import Message

NOW = datetime.fromisoformat("2026-11-21T12:00:00Z")
PAGE = 2
STRANGE_FENCE = 9
"""A fence that belongs to no attempt of any task."""
ATTEMPT = {
    "attempt": 2,
    "fence": 2,
    "worker": "worker 1",
    "function_version": "17",
    "planned_at": "2026-11-21T11:59:59Z",
    "started_at": "2026-11-21T12:00:00Z",
    "lateness_ms": 12,
    "duration_ms": 480,
    "outcome": "succeeded",
    "cost_dollars": 0.00000765,
}
FAILED = {**ATTEMPT, "outcome": "retried", "error": {"type": "Boom", "message": "no such row"}}
LOST = {**dict.fromkeys(ATTEMPT), "attempt": 1, "fence": 1, "outcome": "lost"}


@dataclass(frozen=True)
class Received:
    """A request as it was received."""

    method: str
    target: str
    headers: Message
    body: bytes

    @property
    def path(self) -> str:
        """The request's path, decoded."""
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> dict[str, list[str]]:
        """The request's parameters, decoded."""
        return parse_qs(urlsplit(self.target).query)

    @property
    def document(self) -> Any:  # noqa: ANN401 - a test looks into JSON of any shape
        """The request body, parsed as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """A response of the server; without a status, the server closes the connection."""

    status: int | None
    document: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    text: bytes | None = None

    @property
    def content(self) -> bytes:
        """The body's bytes as they are sent."""
        return json.dumps(self.document).encode() if self.text is None else self.text


def problem(status: int, code: str, detail: str, *errors: Mapping[str, str], **headers: str) -> Answer:
    """Return an RFC 9457 response."""
    document = {"type": "about:blank", "title": f"title of {code}", "status": status, "code": code, "detail": detail}
    listed = {"errors": list(errors)} if errors else {}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {**document, **listed}, sent, "application/problem+json")


class Deployment:
    """Implements the contract with tasks in memory; scripted responses are sent first."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.scripted: deque[Answer] = deque()
        self.tasks: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, str] = {}
        self.states: deque[str] = deque()
        """The states that tasks go through; each read moves a task to the next state."""
        self.url = ""

    def answer(self, request: Received) -> Answer:
        """Return the deployment's response to a request."""
        self.received.append(request)
        if self.scripted:
            return self.scripted.popleft()
        match request.method, request.path.removeprefix("/stage/v1/tasks"):
            case "POST", "":
                return Answer(201, self.create(request.document, request.headers["Idempotency-Key"]))
            case "POST", "/batch":
                return Answer(200, {"results": [self.batched(body) for body in request.document["tasks"]]})
            case "GET", "":
                return Answer(200, self.page(request.query))
            case method, _:
                return self.one(method, request)

    def create(self, body: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Return the task with an idempotency key, which is created if no such task exists."""
        task_id = self.keys.setdefault(key, f"01TASK{len(self.keys):020}")
        due = body.get("due_at") or (NOW + timedelta(seconds=body.get("delay_seconds", 0))).isoformat()
        defaults = {"priority": "normal", "attempt": 0, "fence": 0, "version": 1, "created_at": "2026-11-21T12:00:00Z"}
        carried = {name: value for name, value in body.items() if name not in {"due_at", "delay_seconds"}}
        return self.tasks.setdefault(
            task_id, {"id": task_id, "state": "scheduled", "due_at": due, **defaults, **carried}
        )

    def batched(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result for one task in a batch."""
        if body["type"] == "refused":
            return {"status": 422, "problem": problem(422, "fields_invalid", "no such type").document}
        return {"status": 201, "task": self.create(body, f"batch {len(self.keys)}")}

    def page(self, query: Mapping[str, list[str]]) -> dict[str, Any]:
        """Return one page of the list of all tasks, whatever the filter is."""
        start = int(query.get("next_token", ["0"])[0])
        every = list(self.tasks.values())
        more = {"next_token": str(start + PAGE)} if len(every) > start + PAGE else {}
        return {"tasks": every[start : start + PAGE], **more}

    def one(self, method: str, request: Received) -> Answer:
        """Handle a request for a task or for a resource below a task."""
        # Every path segment is encoded.
        segments = urlsplit(request.target).path.removeprefix("/stage/v1/tasks/").split("/")
        task_id, action = unquote(segments[0]), "/".join(segments[1:])
        task = self.tasks.get(task_id)
        if task is None:
            return problem(404, "task_not_found", f"there is no task {task_id}")
        if action:
            return self.controlled(task, action, request)
        etag = f'"{task["version"]}"'
        if request.headers.get("If-Match", etag) != etag:
            return problem(412, "version_mismatch", "the task has changed")
        if method == "PATCH":
            task |= {**request.document, "version": task["version"] + 1}
        if method == "GET" and self.states:
            task["state"] = self.states.popleft()
        return Answer(200, task, {"ETag": f'"{task["version"]}"'})

    def controlled(self, task: dict[str, Any], action: str, request: Received) -> Answer:
        """Return the response to a task action, which is the task or the list of its attempts."""
        if action == "attempts":
            return Answer(200, {"attempts": [ATTEMPT, LOST]})
        if action == "query":
            return Answer(200, {"status": 200, "body": {"asked": [request.document["action"]]}})
        if action == "cancel":
            task["state"] = "cancelled"
        if request.body and request.document.get("fence") == STRANGE_FENCE:
            return problem(409, "fence_mismatch", "the task is running at fence 1")
        task["version"] += 1
        return Answer(200, task, {"ETag": f'"{task["version"]}"'})


class Handler(BaseHTTPRequestHandler):
    """Passes each request to the deployment and returns its response."""

    deployment: Deployment
    protocol_version = "HTTP/1.1"
    # Headers and body are sent in one packet, because a second packet on a kept-alive connection takes 40 ms more.
    wbufsize = -1

    def handle_any(self) -> None:
        """Respond to a request with any method."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        answer = self.deployment.answer(Received(self.command, self.path, self.headers, body))
        if answer.status is None:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Type": answer.content_type}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    # The standard library requires these method names.
    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 - see the line above

    def log_message(self, *_: object) -> None:
        """Log nothing, because tests read the requests from the deployment."""


D = TypeVar("D", bound=Deployment)


@contextmanager
def served(deployment: D) -> Iterator[D]:
    """Serve a deployment on a free port of the loopback interface while the context is open."""
    handler = type("DeploymentHandler", (Handler,), {"deployment": deployment})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    deployment.url = f"http://127.0.0.1:{server.server_port}/stage"
    # The poll interval is short because shutting down waits for the next poll.
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield deployment
    server.shutdown()
    server.server_close()
    thread.join()
