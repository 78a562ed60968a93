"""Puts a proxy, which can count or throttle requests, in front of the embedded AWS."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


class ProxyServer(ThreadingHTTPServer):
    """Forwards requests to the embedded AWS; a subclass can respond to some requests itself.

    Attributes:
        port: the embedded AWS's port.
    """

    port: int
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Ignore errors from connections that callers have closed."""

    def answer(self, _operation: str) -> tuple[int, dict[str, str], bytes] | None:
        """Return a response to send without asking the embedded AWS, or `None` to forward the request."""
        return None


S = TypeVar("S", bound=ProxyServer)


@contextmanager
def proxied(kind: type[S], port: int) -> Iterator[S]:
    """Run a proxy in front of the embedded AWS, whose port is `port`."""
    server = kind(("127.0.0.1", 0), _Handler)
    server.port = port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: ProxyServer
    protocol_version = "HTTP/1.1"
    timeout = 60
    # Without this buffer, header and body are sent in two packets, and the body waits until the header is acknowledged.
    wbufsize = -1
    disable_nagle_algorithm = True

    def setup(self) -> None:
        """Open a connection to the emulator for each incoming connection."""
        super().setup()
        self._behind = HTTPConnection("127.0.0.1", self.server.port, timeout=30)

    def finish(self) -> None:
        """Close the connection to the emulator when the incoming connection closes."""
        self._behind.close()
        super().finish()

    def do_POST(self) -> None:
        """Forward a request, or send the server's own response."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        own = self.server.answer(self.headers.get("X-Amz-Target", "").rpartition(".")[2])
        if own is not None:
            self._response(*own)
            return
        self._behind.request(self.command, self.path, body, dict(self.headers))
        answer = self._behind.getresponse()
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP}
        content = answer.read()
        if "QueueUrl" in (text := content[:200].decode(errors="replace")) and str(self.server.port) in text:
            # The caller sends later requests for the queue to the address in this response.
            content = content.replace(str(self.server.port).encode(), str(self.server.server_port).encode())
        self._response(answer.status, headers, content)

    def do_PUT(self) -> None:
        """Handle PUT like POST."""
        self.do_POST()

    def log_message(self, *_: object) -> None:
        """Write no log."""

    def _response(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
