"""Measures the API function's CPU time per request by calling its handler in this process.

The embedded AWS provides DynamoDB.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from http import HTTPStatus
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bench.task_path import create_table
from duetime import composition
from duetime.composition import Platform
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from duetime.settings import Authentication
from duetime_local import emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WARM = 50
_BODY = json.dumps({"type": "echo", "payload": {"load": 1}, "delay_seconds": 3600})
_CONTEXT: Any = SimpleNamespace(
    function_name="api", memory_limit_in_mb=512, invoked_function_arn="arn:aws:lambda:x", aws_request_id="bench"
)


class RequestFailed(RuntimeError):
    """A timed request was rejected; the error message contains the response."""


@dataclass(frozen=True, slots=True)
class Served:
    """The cost of one request of a kind.

    Attributes:
        cpu_ms: this process's CPU time per request, without DynamoDB's.
        whole_ms: wall time per request, including DynamoDB.
    """

    what: str
    cpu_ms: float
    whole_ms: float

    @property
    def per_core(self) -> float:
        """The number of requests that one core could serve per second if the handler never waited."""
        return 1000 / self.cpu_ms


def served(count: int) -> list[Served]:
    """Time requests that are sent one after another: creations, polls with status 200, and polls with status 304."""
    with emulator.running(port=0) as engine:
        os.environ.update(engine.environ)
        urls: dict[str, str] = {
            variable: engine.client("sqs").create_queue(QueueName=priority.value)["QueueUrl"]
            for priority, variable in QUEUE_VARIABLES.items()
        }
        environ = {Variable.TABLE: create_table(engine.client("dynamodb")), Variable.BUCKET: "unused", **urls}
        outside = Platform(environ={**environ, Variable.AUTHENTICATION: Authentication.NONE})
        composition.use(outside)
        try:
            ids = [_sent("POST", "/v1/tasks", HTTPStatus.CREATED)["id"] for _ in range(WARM)]
            return [
                _timed("creates", count, lambda _: _sent("POST", "/v1/tasks", HTTPStatus.CREATED)),
                _timed("polls", count, lambda index: _sent("GET", f"/v1/tasks/{ids[index % WARM]}", HTTPStatus.OK)),
                _timed("polls of unchanged tasks", count, lambda index: _unchanged(ids[index % WARM])),
            ]
        finally:
            composition.use(None)


def _timed(what: str, count: int, send: Callable[[int], object]) -> Served:
    for index in range(WARM):
        send(index)
    whole, cpu = time.perf_counter(), time.process_time()
    for index in range(count):
        send(index)
    return Served(what, (time.process_time() - cpu) * 1000 / count, (time.perf_counter() - whole) * 1000 / count)


def _unchanged(task: str) -> None:
    """Poll a task that has not changed since its creation."""
    _sent("GET", f"/v1/tasks/{task}", HTTPStatus.NOT_MODIFIED, {"if-none-match": '"1"'})


def _sent(method: str, path: str, status: HTTPStatus, headers: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401 - any JSON
    # The function is imported late, because it reads environment variables when it is imported, as in Lambda.
    from functions.api.handler import handler  # noqa: PLC0415 - see the line above

    event = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", **(headers or {})},
        "requestContext": {"http": {"method": method, "path": path}, "requestId": "bench", "stage": "$default"},
        "isBase64Encoded": False,
        **({"body": _BODY} if method == "POST" else {}),
    }
    answer = handler(event, _CONTEXT)
    if answer["statusCode"] != status:
        raise RequestFailed(answer["body"])
    return json.loads(answer["body"] or "null")
