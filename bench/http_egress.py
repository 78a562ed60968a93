"""Compares HTTP calls that are made through the egress function on the embedded engine with direct calls."""

from __future__ import annotations

import os
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from bench.engine_functions import create_function
from bench.paired_timing import Comparison, compare
from duetime.adapters.aws_clients import Clients
from duetime.adapters.runtime.process import SystemClock
from duetime.adapters.targets.egress import EgressCaller, LambdaInvocation
from duetime.adapters.targets.http_client import DirectCaller
from duetime.adapters.targets.http_messages import Call, Caller, NoResponse
from duetime.environment_variables import Variable
from duetime_local import emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime_local.emulator import Emulator

_ROOT = Path(__file__).resolve().parents[1]
_BATCH = 10
_HOST = "127.0.0.1"
_NAME = "bench-egress"
_BARE = "bench-bare"


class CallFailed(RuntimeError):
    """A timed call got no response."""


def comparisons() -> Iterator[Comparison]:
    """Measure ten concurrent calls to a fast endpoint in one shared invocation, in ten invocations, and directly.

    The engine needs time for each invocation, whatever the function does. Therefore, the shared invocation is also
    compared with an empty invocation followed by direct calls.
    """
    with emulator.running(port=0) as engine, _endpoint() as url:
        _create_functions(engine)
        os.environ.update(engine.environ)
        client = Clients().calling_lambdas()
        egress, bare = EgressCaller(LambdaInvocation(client, _NAME)), LambdaInvocation(client, _BARE)
        direct = _ten(DirectCaller(frozenset({_HOST}), None, SystemClock()), url, owners=1)
        against = "ten direct calls, in threads"
        yield compare("ten calls through one egress invocation", _ten(egress, url, owners=1), against, direct)
        yield compare("ten calls through ten egress invocations", _ten(egress, url, owners=10), against, direct)
        yield compare(
            "ten calls by one invocation",
            _ten(egress, url, owners=1),
            "an empty function's invocation, then ten direct calls",
            lambda: (bare(b"{}"), direct()),
        )


class _Endpoint(ThreadingHTTPServer):
    """A server with a listen queue that is long enough for all concurrent connections."""

    request_queue_size = 128


def _ten(caller: Caller, url: str, owners: int) -> Callable[[], None]:
    pool = ThreadPoolExecutor(_BATCH)

    def make(number: int) -> None:
        reply = caller.call(Call(f"id-{number}", "PUT", url, body=b"{}", most=100, owner=str(number % owners)))
        if isinstance(reply, NoResponse):
            raise CallFailed(reply.message)

    return lambda: list(pool.map(make, range(_BATCH))).clear()


def _create_functions(engine: Emulator) -> None:
    """Create the egress function and a function that does nothing.

    The egress function has its deployed code and this environment's packages.
    """
    own = {
        str(path.relative_to(folder)): path.read_text()
        for folder, part in (
            (_ROOT / "functions", "egress"),
            (_ROOT / "layers/duetime/python", "duetime"),
            (_ROOT / "common", "duetime_common"),
        )
        for path in (folder / part).rglob("*.py")
    }
    environ = {Variable.HTTP_ALLOW: _HOST, "PYTHONPATH": sysconfig.get_path("purelib")}
    create_function(engine, _NAME, "egress.handler.handler", own, environ)
    create_function(engine, _BARE, "bare.handler", {"bare.py": "def handler(event, context):\n    return event\n"}, {})


@contextmanager
def _endpoint() -> Iterator[str]:
    """Run an endpoint that responds immediately."""

    class Answering(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Write no log."""

    server = _Endpoint((_HOST, 0), Answering)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://{_HOST}:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()
