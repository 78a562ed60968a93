"""The request that creates a task."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from duetime_client.responses import task_of
from duetime_client.session import IDEMPOTENCY_KEY
from duetime_client.steps import Request
from duetime_client.task_actions import TASKS
from duetime_client.task_fields import body_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_client.task import Task


def create_task(
    task_type: str,
    fields: Mapping[str, object],
    idempotency_key: str | None = None,
    traceparent: str | None = None,
    wait_seconds: int = 0,
) -> Request[Task]:
    """Creates a task once, however often the request is sent."""
    return Request(
        "POST",
        TASKS,
        task_of,
        query=wait_query(wait_seconds),
        body={"type": task_type, **body_of(fields)},
        headers={IDEMPOTENCY_KEY: idempotency_key or str(uuid4()), **trace_headers(traceparent)},
    )


def wait_query(wait_seconds: int) -> list[tuple[str, str]]:
    """The parameter of a request that waits for the outcome."""
    return [("wait_seconds", str(wait_seconds))] if wait_seconds else []


def trace_headers(traceparent: str | None) -> dict[str, str]:
    """The header that names the caller's trace."""
    return {} if traceparent is None else {"traceparent": traceparent}
