"""The requests that create tasks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from duetime_client.io_operations import Request
from duetime_client.request_estimates import estimate_query
from duetime_client.responses import batch_results, task_of
from duetime_client.session import IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_SECONDS, RandomKey, key_or_random
from duetime_client.task_actions import TASKS
from duetime_client.task_request_fields import body_of
from duetime_common.limits import MAX_BATCH, MAX_PAYLOAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime_client.errors import ApiError
    from duetime_client.io_operations import Steps
    from duetime_client.session import Session
    from duetime_client.task import Task
    from duetime_client.task_request_fields import NewTask

Results: TypeAlias = "list[Task | ApiError]"


def create_task(
    session: Session,
    task_type: str,
    fields: Mapping[str, object],
    headers: Mapping[str, str],
    wait_seconds: int = 0,
    *,
    estimate: bool = False,
) -> Request[Task] | Steps[Task]:
    """Creates a task once, however often the request is sent; a large binary payload is uploaded before."""
    request = Request(
        "POST",
        TASKS,
        task_of,
        query=[*wait_query(wait_seconds), *estimate_query(is_wanted=estimate)],
        body={"type": task_type, **body_of(fields)},
        headers=headers,
    )
    payload = fields.get("payload")
    if not isinstance(payload, bytes) or len(payload) <= MAX_PAYLOAD_BYTES:
        return request
    return _created_with_upload(session, request, {"type": task_type, **fields}, payload)


def _created_with_upload(
    session: Session, request: Request[Task], fields: Mapping[str, object], payload: bytes
) -> Steps[Task]:
    """Uploads the payload of a task, and creates the task."""
    from duetime_client.uploads import uploaded  # noqa: PLC0415 - for large payloads only

    upload = yield from uploaded(session, payload, request.headers[IDEMPOTENCY_KEY])
    return (yield from session.send(replace(request, body=body_of({**fields, "payload": upload}))))


def creation_headers(
    idempotency_key: str | None = None, traceparent: str | None = None, seconds: int | None = None
) -> dict[str, str]:
    """The headers of a creation: the idempotency key, by default random, and its lifetime."""
    life = {} if seconds is None else {IDEMPOTENCY_KEY_SECONDS: str(seconds)}
    return {IDEMPOTENCY_KEY: key_or_random(idempotency_key), **life, **trace_headers(traceparent)}


def create_tasks(
    session: Session, tasks: Iterable[NewTask], idempotency_key: str | None = None, traceparent: str | None = None
) -> Steps[Results]:
    """Creates tasks in requests as large as the API accepts; each has its own result, in the given order."""
    key, kind = key_or_random(idempotency_key), str if idempotency_key else RandomKey
    remaining = iter(tasks)
    results: Results = []
    while chunk := list(islice(remaining, MAX_BATCH)):
        request = Request(
            "POST",
            f"{TASKS}/batch",
            partial(batch_results, expected=len(chunk)),
            body={"tasks": [body_of(task) for task in chunk]},
            headers={IDEMPOTENCY_KEY: kind(f"{key}-{len(results)}"), **trace_headers(traceparent)},
        )
        results.extend((yield from session.send(request)))
    return results


def wait_query(wait_seconds: int) -> list[tuple[str, str]]:
    """The query parameter that makes a request wait for the outcome."""
    return [("wait_seconds", str(wait_seconds))] if wait_seconds else []


def trace_headers(traceparent: str | None) -> dict[str, str]:
    """The header with the caller's trace."""
    return {} if traceparent is None else {"traceparent": traceparent}
