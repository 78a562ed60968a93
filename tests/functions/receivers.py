"""An HTTP server on the loopback address that records the requests which the functions send."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@dataclass(frozen=True)
class Received:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON
        """The body, parsed as JSON."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """A running HTTP server's recorded requests and prepared responses.

    Attributes:
        answers: the status and body of responses, by method and path; other requests are answered with 200 and `{}`.
        headers: the headers of every response.
        judge: a function that overrides the response to a request if it returns a status and a body.
        seconds: how long the server waits before each response.
    """

    url: str = ""
    answers: dict[tuple[str, str], tuple[int, bytes]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    judge: Callable[[Received], tuple[int, bytes] | None] = lambda _received: None
    seconds: float = 0
    requests: list[Received] = field(default_factory=list)

    def of(self, method: str) -> list[Received]:
        """The received requests with this method."""
        return [one for one in self.requests if one.method == method]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver until the context ends."""
    kept = Receiver()
    over = threading.Event()

    class Answering(BaseHTTPRequestHandler):
        def _response(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            received = Received(self.command, self.path, dict(self.headers), body)
            kept.requests.append(received)
            over.wait(kept.seconds)
            status, text = kept.judge(received) or kept.answers.get((self.command, self.path), (200, b"{}"))
            if "Date" in kept.headers:
                self.send_response_only(status)
            else:
                self.send_response(status)
            for name, value in kept.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        # `BaseHTTPRequestHandler` prescribes these method names.
        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _response  # noqa: N815 - see the line above

        def log_message(self, *_args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    kept.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield kept
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()
