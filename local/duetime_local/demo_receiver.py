"""A small HTTP service that the demo's tasks call and that records executions independently of the scheduler.

The demo's figures are computed from these records: when and how often each task was executed, whether two executions of
a task overlapped, and whether a task ran again after a success.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a task, with times from this machine's clock."""

    task_id: str
    attempt: int
    fence: int
    started_at_ms: int
    ended_at_ms: int
    succeeded: bool


class Receiver:
    """Records executions; an instance can be used from several threads."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._lock = threading.Lock()
        self._executions: list[Execution] = []

    @property
    def run_url(self) -> str:
        """The URL for tasks with an HTTP target."""
        return f"http://127.0.0.1:{self._port}/run"

    @property
    def report_url(self) -> str:
        """The URL for reports from Python handlers."""
        return f"http://127.0.0.1:{self._port}/report"

    @property
    def executions(self) -> list[Execution]:
        """A copy of all executions that have been recorded so far."""
        with self._lock:
            return list(self._executions)

    def record(self, execution: Execution) -> None:
        """Record one execution."""
        with self._lock:
            self._executions.append(execution)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run the service on a free port of 127.0.0.1 within the context."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.receiver = Receiver(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    receiver: Receiver
    daemon_threads = True
    request_queue_size = 128  # a hundred tasks can be due at once


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"  # keeps the workers' connections alive
    timeout = 60

    def do_PUT(self) -> None:
        """Execute an attempt of an HTTP task: take the task's duration, then respond with success or failure."""
        started_at_ms = _now_ms()
        body = self._body()
        work = body.get("payload") or {}
        attempt = int(self.headers["Duetime-Attempt"])
        time.sleep(work.get("work_ms", 0) / 1000)
        succeeded = attempt > work.get("fail_times", 0)
        self.server.receiver.record(
            Execution(
                task_id=self.headers["Idempotency-Key"],
                attempt=attempt,
                fence=int(self.headers["Duetime-Fence"]),
                started_at_ms=started_at_ms,
                ended_at_ms=_now_ms(),
                succeeded=succeeded,
            )
        )
        self._response(HTTPStatus.OK if succeeded else HTTPStatus.SERVICE_UNAVAILABLE, {"job": work.get("job")})

    def do_POST(self) -> None:
        """Receive a Python handler's report about an attempt."""
        body = self._body()
        self.server.receiver.record(
            Execution(
                task_id=body["task_id"],
                attempt=body["attempt"],
                fence=body["fence"],
                started_at_ms=body["started_at_ms"],
                ended_at_ms=body["ended_at_ms"],
                succeeded=body["succeeded"],
            )
        )
        self._response(HTTPStatus.OK, {})

    def log_message(self, *_arguments: object) -> None:
        """Log nothing, because log lines would break the progress bar."""

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return body

    def _response(self, status: HTTPStatus, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
