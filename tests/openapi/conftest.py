"""Fixtures for the document as a file, and for the API behind HTTP for generated clients."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from duetime import composition
from duetime.contract.openapi.document import document
from duetime.domain.tasks.task_options import Priority
from duetime.handlers import REGISTRY, Registered
from tests.client.api_server import ApiServer, Door
from tests.functions.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STRANGER = "stranger"
"""An owner that the gateway refuses."""


@pytest.fixture(scope="session")
def openapi_json(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the document that a deployment without authentication serves."""
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_text(json.dumps(document("none")), encoding="utf-8")
    return path


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the API's address; due tasks are processed before each response."""
    monkeypatch.setitem(REGISTRY, "echo", Registered({"run": lambda _context, payload: payload}))
    stack = Stack.faked()

    class Gateway(Door):
        def answer(self) -> None:
            if self.headers.get("X-Duetime-Owner") == STRANGER:
                self._forbid()
                return
            stack.work(Priority.NORMAL)
            super().answer()

        def _forbid(self) -> None:
            """Refuse a request as API Gateway does, without calling the function and in a different form."""
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            text = b'{"message":"Forbidden"}'
            self.send_response(403)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - the base class's names

    server = ApiServer(Gateway)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.url
    server.shutdown()
    server.server_close()
    thread.join()
    composition.use(None)
