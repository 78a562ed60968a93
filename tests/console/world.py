"""The console's environment in tests (an account in virtual time behind real HTTP and a real WebSocket).

One thread runs the account and executes requests, messages and the test's actions in order. Time advances only for a
request, or when a test requests it.
"""

from __future__ import annotations

import base64
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from duetime.environment_variables import Variable
from duetime_testing.simulation.gateway import event_of
from functions.console.handler import handler as console
from tests.functions.api.gateway import Context
from tests.scenarios.live import Live
from tests.scenarios.scenario import HOUR, PLAIN, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from websockets.http11 import Request, Response

T = TypeVar("T")


class World:
    """An account, and its addresses for a browser.

    Attributes:
        requests: the method and path of each API request, in order.
        down: if set, API requests are disconnected without a response.
        accepted: the only bearer token that the API accepts, or empty for no authentication.
    """

    def __init__(self, monkeypatched: dict[str, str]) -> None:
        self.requests: list[tuple[str, str]] = []
        self.down = False
        self.accepted = ""
        self._ended = False
        self._wishes: SimpleQueue[tuple[Callable[[Live], Any], Future[Any]] | None] = SimpleQueue()
        self._connections: dict[str, ServerConnection] = {}
        self._sent: dict[str, int] = {}
        self._thread = Thread(target=self._live, daemon=True)
        self._thread.start()
        self._http = _HttpServer(self)
        Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self._socket = self._watch_server()
        Thread(target=self._socket.serve_forever, daemon=True).start()
        self.watch_url = f"ws://127.0.0.1:{self._socket.socket.getsockname()[1]}"
        monkeypatched[Variable.WATCH_URL] = self.watch_url
        self.do(lambda live: live.environ.__setitem__(Variable.WATCH_URL, self.watch_url))
        # Otherwise, the first responses would depend on whether the trigger has already run.
        self.run(10 * SECOND)

    @property
    def url(self) -> str:
        """The console's address."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/console/index.html"

    def do(self, wish: Callable[[Live], T]) -> T:
        """Run a function in the account's thread, and notify watchers about changes."""
        done: Future[T] = Future()
        self._wishes.put((wish, done))
        if self._ended:
            done.cancel()
        return done.result()

    def run(self, duration: int) -> None:
        """Advance the virtual time."""
        self.do(lambda live: live.run(duration))

    def create(self, **body: Any) -> str:  # noqa: ANN401 - any JSON
        """Create a task, by default of a type that has a handler, and return its id."""
        answer = self.do(lambda live: live.ask("POST", "/v1/tasks", {"type": PLAIN, **body}))
        assert answer.status == 201, answer
        return str(answer.body["id"])

    def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - any JSON
        """Send a request and return the response's JSON."""
        answer = self.do(lambda live: live.ask(method, path, body))
        assert answer.status < 300, answer
        return answer.body

    def keep_lists(self) -> None:
        """Advance the time and make changes until the stored lists of the account's many tasks are complete."""
        while self._list("state=running")["applied"]["last_change_at"] is None:
            # The first change starts the stored lists, and each change adds some of the older tasks.
            task_id = self.create(delay_seconds=HOUR // SECOND)
            self.ask("DELETE", f"/v1/tasks/{task_id}")
            self.run(40 * SECOND)

    def _list(self, query: str) -> Any:  # noqa: ANN401 - any JSON
        return self.do(lambda live: live.ask("GET", "/v1/tasks", query=query)).body

    def cut_off(self) -> None:
        """Close every watcher's connection, as a network failure does."""
        for connection in list(self._connections.values()):
            connection.close()

    def close(self) -> None:
        """Close all connections and stop the servers."""
        self.cut_off()
        self._wishes.put(None)
        self._thread.join()
        self._socket.shutdown()
        self._http.shutdown()
        self._http.server_close()

    def _live(self) -> None:
        with Live() as live:
            while (wished := self._wishes.get()) is not None:
                wish, done = wished
                try:
                    done.set_result(wish(live))
                    self._tell(live)
                except BaseException as error:  # noqa: BLE001 - it is raised in the caller
                    done.set_exception(error)
            self._ended = True
            while not self._wishes.empty():
                if (late := self._wishes.get()) is not None:
                    late[1].cancel()

    def _tell(self, live: Live) -> None:
        """Broadcast changes, and send each connection its messages."""
        live.broadcast()
        for connection_id, connection in list(self._connections.items()):
            texts = live.connections.received.get(connection_id, [])
            for text in texts[self._sent[connection_id] :]:
                try:
                    connection.send(text)
                except ConnectionClosed:
                    break
            self._sent[connection_id] = len(texts)

    def _watch_server(self) -> Server:
        return serve(self._watch, "127.0.0.1", 0, process_request=self._admit)

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Open a connection if the connect function accepts it."""
        ticket = parse_qs(urlsplit(request.path).query).get("ticket", [""])[0]
        status = self.do(lambda live: live.event(str(connection.id), "CONNECT", ticket=ticket))
        return None if status == 200 else connection.respond(401, "refused")

    def _watch(self, connection: ServerConnection) -> None:
        connection_id = str(connection.id)
        self._sent[connection_id] = 0
        self._connections[connection_id] = connection
        try:
            for text in connection:
                self.do(partial(Live.event, connection_id=connection_id, kind="MESSAGE", body=str(text)))
        except ConnectionClosed:
            pass
        finally:
            del self._connections[connection_id]
            with suppress(CancelledError):
                self.do(lambda live: live.connections.received.pop(connection_id, None))

    def answer(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> dict[str, Any]:
        """Return the response of the console's or the API's function to a request."""
        parts = urlsplit(target)
        text = base64.b64encode(body).decode() if body else None
        event = event_of(method, parts.path, text, headers, parts.query, None, is_base64=True)
        if parts.path.startswith("/console"):
            return console(event, Context())  # type: ignore[arg-type] # a stand-in for Lambda's own context
        self.requests.append((method, target))
        if self.accepted and headers.get("Authorization") != f"Bearer {self.accepted}":
            # API Gateway's own authorizer responds like this.
            said = {"Content-Type": "application/json"}
            return {"statusCode": 401, "headers": said, "body": '{"message":"Unauthorized"}', "isBase64Encoded": False}

        def invoke(live: Live) -> dict[str, Any]:
            invocation = live.invoke("api", event)
            assert live.run_until(lambda: invocation.strand is not None and invocation.strand.done, step=1)
            answer: dict[str, Any] = invocation.answer
            answer["headers"]["Date"] = formatdate(live.now / SECOND, usegmt=True)
            return answer

        return self.do(invoke)


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, world: World) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.world = world


class _Handler(BaseHTTPRequestHandler):
    """Passes each request to its function, as API Gateway does."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log nothing."""

    def date_time_string(self, timestamp: float | None = None) -> str:  # noqa: ARG002 - the base class's name
        """Return no time, because each response already has the account's time in its `Date` header."""
        return ""

    def answer(self) -> None:
        """Answer a request."""
        server = self.server
        assert isinstance(server, _HttpServer)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if server.world.down and self.path.startswith("/v1"):
            self.close_connection = True
            return
        answer = server.world.answer(self.command, self.path, body, dict(self.headers))
        content = (answer["body"] or "").encode()
        content = base64.b64decode(content) if answer["isBase64Encoded"] else content
        self.send_response_only(answer["statusCode"])
        for name, value in answer["headers"].items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - the base class's names
