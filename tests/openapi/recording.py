"""Records the examples of the OpenAPI document from the API itself: `python -m tests.openapi.recording`.

A simulated account in virtual time handles `tests.openapi.example_requests`, so that ids and times are always the same.
With `--check`, nothing is written, and the exit code is 1 if the stored examples differ.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from duetime.contract.health_and_openapi import OPENAPI
from duetime.contract.http.operation import operation_at
from duetime.contract.http.problems import problem_of
from duetime.contract.http.request_errors import MethodUnsupported, PathNotFound
from duetime.contract.openapi.document import FILE
from tests.openapi.example_problems import RARE
from tests.scenarios.tasks import Tasks
from tests.simulation import works
from tests.simulation.endpoints import BATCH_URL, CALLBACK_URL

if TYPE_CHECKING:
    from duetime.adapters.targets.http_messages import Call
    from tests.simulation.users import Reply

SEED = 7
_JSON = "application/json"
_REFUSED = 400
_NAMES = {works.PLAIN: "report", works.UNDONE: "transfer", works.PHASED: "migrate", "simulation-pulled": "render"}
"""The names in examples for the simulation's task types."""


class Recorder(Tasks):
    """An account that records requests and responses; the first request and response of each kind are the examples.

    Attributes:
        operations: each operation's examples (the request by media type, and the responses by status).
        problems: a problem for each code.
        webhooks: the requests that the account itself makes.
    """

    def __init__(self) -> None:
        super().__init__(SEED)
        self.operations: dict[str, dict[str, Any]] = {}
        self.problems: dict[str, Any] = {}
        self.webhooks: dict[str, dict[str, Any]] = {}
        self.heard = self._hear

    @property
    def violations(self) -> list[Any]:
        """Report no violation, because an operator's forced release of a lock is an example, too."""
        return []

    def ask(self, method: str, path: str, body: object = None, **more: Any) -> Reply:  # noqa: ANN401 - of `Users.ask`
        """Send a request, and record it with its response."""
        reply = super().ask(method, path, body, **more)
        if isinstance(reply.body, dict) and "code" in reply.body:
            self.problems.setdefault(reply.body["code"], reply.body)
        try:
            operation, _ = operation_at(method, path)
        except (PathNotFound, MethodUnsupported):
            return reply
        if reply.status < _REFUSED:
            kept = self.operations.setdefault(operation.id, {"responses": {}})
            kept["responses"].setdefault(str(reply.status), reply.body)
            if operation.body is not None:
                text = body.decode() if isinstance(body, bytes) else body or {}
                media_type = more.get("headers", {}).get("content-type", _JSON)
                kept.setdefault("request", {}).setdefault(media_type, text)
        return reply

    def _hear(self, call: Call) -> None:
        name = {"POST": "taskEnded", "PUT": "targetBatch" if call.url.startswith(BATCH_URL) else "targetWork"}.get(
            call.method
        )
        if name is not None and (call.method == "PUT" or call.url.startswith(CALLBACK_URL)):
            self.webhooks.setdefault(name, {"request": {_JSON: json.loads(call.body)}})


def recorded() -> str:
    """Return the expected text of the examples file."""
    from tests.openapi import example_requests  # noqa: PLC0415 - it needs the recorder

    with Recorder() as recorder:
        example_requests.ask_for_everything(recorder)
        found = {"operations": recorder.operations, "problems": recorder.problems, "webhooks": recorder.webhooks}
    # The document does not contain itself as an example.
    found["operations"].pop(OPENAPI.id, None)
    for error in RARE:
        problem = problem_of(error, "urn:duetime:request:request")
        found["problems"].setdefault(problem["code"], problem)
    text = json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False)
    for name, shown in _NAMES.items():
        text = text.replace(f'"{name}"', f'"{shown}"')
    return text + "\n"


def main() -> int:
    """Write the examples, or check them."""
    text = recorded()
    if "--check" in sys.argv:
        return int(text != FILE.read_text(encoding="utf-8"))
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
