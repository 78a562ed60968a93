"""Serves the real API function over HTTP, with AWS fakes, so that clients can be tested without a deployment."""

from __future__ import annotations

import base64
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import urlsplit

from duetime_testing.simulation.gateway import event_of
from functions.api.handler import handler
from tests.functions.api.gateway import Context


class ApiServer(ThreadingHTTPServer):
    """Serves the API function on the loopback interface.

    Attributes:
        dead: whether the server closes every connection without a response.
    """

    # Otherwise, tests that wait until a connection ends would wait for the connection's keep-alive timeout.
    daemon_threads = True

    def __init__(self, door: type[Door] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), door or Door)
        self.dead = False
        # One composition serves all requests, as in a Lambda environment, which handles one request at a time.
        self.one_at_a_time = Lock()

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Door(BaseHTTPRequestHandler):
    """Passes each request to the function, as API Gateway does."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log nothing."""

    def answer(self) -> None:
        """Answer a request."""
        server = self.server
        assert isinstance(server, ApiServer)
        length = int(self.headers.get("Content-Length") or 0)
        # Bodies are base64-encoded because they may be compressed.
        body = base64.b64encode(self.rfile.read(length)).decode() if length else None
        if server.dead:
            self.close_connection = True
            return
        parts = urlsplit(self.path)
        event = event_of(self.command, parts.path, body, dict(self.headers), parts.query, None, is_base64=True)
        with server.one_at_a_time:
            answer = handler(event, Context())  # type: ignore[arg-type] # a stand-in for Lambda's own context
        text = (answer["body"] or "").encode()
        text = base64.b64decode(text) if answer["isBase64Encoded"] else text
        self.send_response(answer["statusCode"])
        for name, value in answer["headers"].items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - the base class's names
