"""Making a stack carry less than it is asked for, at the two places where AWS does it: the gateway and the table."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

from duetime_local.emulator.http_throttle import Bucket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime_local.stack import Stack

_THROTTLED = json.dumps(
    {
        "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
        "message": "The level of configured provisioned throughput for the table was exceeded.",
    }
).encode()
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@contextmanager
def narrow_gateway(over: Stack, rate: float, burst: int) -> Iterator[None]:
    """A stage that lets through so many requests a second, and so many at once."""
    # The emulator's client is typed for the services that others call.
    gateway: Any = cast("Any", over.emulator).client("apigatewayv2")
    place = {"ApiId": over.deployment.outputs["ApiId"], "StageName": "$default"}
    before = gateway.get_stage(**place)["DefaultRouteSettings"]
    narrow = {"ThrottlingRateLimit": rate, "ThrottlingBurstLimit": burst}
    gateway.update_stage(**place, DefaultRouteSettings=narrow)
    try:
        yield
    finally:
        gateway.update_stage(**place, DefaultRouteSettings=before)


@contextmanager
def table_of_any_width(over: Stack) -> Iterator[Callable[[float], None]]:
    """A table that, once it is told so, takes so many calls of the api function a second and throttles the others.

    The function starts anew, for it is told where its table is: it is to be warmed up before that.
    """
    functions = over.emulator.client("lambda")
    name = over.deployment.outputs["ApiFunctionName"]
    variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    with _throttling(over.emulator.port) as server:
        narrow = {**variables, "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{server.server_port}"}
        functions.update_function_configuration(FunctionName=name, Environment={"Variables": narrow})
        try:
            yield server.narrow
        finally:
            functions.update_function_configuration(FunctionName=name, Environment={"Variables": variables})


@contextmanager
def _throttling(port: int) -> Iterator[_Server]:
    """DynamoDB of the emulator at that port, which can be given a limit."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.port = port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    port: int
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 - the base class's own
        super().__init__(*given)
        self._lock = threading.Lock()
        self._bucket = Bucket()
        self._rate = float("inf")

    def narrow(self, rate: float) -> None:
        """Take so many calls a second from now on."""
        with self._lock:
            self._bucket, self._rate = Bucket(), rate

    def handle_error(self, *_: object) -> None:
        """Say nothing of callers that have gone."""

    def admits(self) -> bool:
        """Whether the limit leaves room for one more call."""
        with self._lock:
            is_free = self._rate == float("inf")
            return is_free or self._bucket.admits(self._rate, self._rate, time.monotonic())


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 60

    def setup(self) -> None:
        """Keep a connection to the emulator for each one that comes."""
        super().setup()
        self._behind = HTTPConnection("127.0.0.1", self.server.port, timeout=30)

    def finish(self) -> None:
        """Close it with that one."""
        self._behind.close()
        super().finish()

    def do_POST(self) -> None:
        """Hand a call on, or throttle it."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.server.admits():
            self._response(HTTPStatus.BAD_REQUEST, {"Content-Type": "application/x-amz-json-1.0"}, _THROTTLED)
            return
        self._behind.request("POST", self.path, body, dict(self.headers))
        answer = self._behind.getresponse()
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP}
        self._response(answer.status, headers, answer.read())

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _response(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
