"""The requests that create tasks."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from duetime_client.io_operations import Request
from duetime_client.request_estimates import estimate_query
from duetime_client.responses import batch_results, task_of
from duetime_client.session import IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_SECONDS, RandomKey, key_or_random
from duetime_client.task_actions import TASKS
from duetime_client.task_request_fields import body_of
from duetime_common.limits import MAX_BATCH, MAX_PAYLOAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
    """Creates a task once, however often the request is sent; a large binary or encrypted payload is uploaded first."""

    def creation(fields: Mapping[str, object]) -> Request[Task]:
        query = [*wait_query(wait_seconds), *estimate_query(is_wanted=estimate)]
        body = {"type": task_type, **body_of(fields)}
        return Request("POST", TASKS, task_of, query=query, body=body, headers=headers)

    if (upload := upload_of(session, fields, headers[IDEMPOTENCY_KEY])) is None:
        return creation(fields)
    return _uploaded_before(session, upload, lambda payload: creation({**fields, "payload": payload}))


def _uploaded_before(session: Session, upload: Steps[Any], creation: Callable[[Any], Request[Task]]) -> Steps[Task]:
    """Uploads a payload, and creates its task."""
    payload = yield from upload
    return (yield from session.send(creation(payload)))


def upload_of(session: Session, fields: Mapping[str, object], key: str) -> Steps[Any] | None:
    """The upload of a binary or encrypted payload that is too large for a request; `None` for other payloads."""
    payload = fields.get("payload")
    is_large = isinstance(payload, bytes) and len(payload) > MAX_PAYLOAD_BYTES
    if not is_large and session.codec is None:
        return None
    from duetime_client.uploads import sent_payload, uploaded  # noqa: PLC0415 - only a few payloads need it

    sent = sent_payload(session.codec, fields)
    if not isinstance(sent, bytes) or len(sent) <= MAX_PAYLOAD_BYTES:
        return None
    return uploaded(session, sent, payload, key)


def creation_headers(
    idempotency_key: str | None = None, traceparent: str | None = None, seconds: int | None = None
) -> dict[str, str]:
    """The headers of a creation: the idempotency key (random by default), its lifetime, and the trace context."""
    life = {} if seconds is None else {IDEMPOTENCY_KEY_SECONDS: str(seconds)}
    return {IDEMPOTENCY_KEY: key_or_random(idempotency_key), **life, **trace_headers(traceparent)}


def create_tasks(
    session: Session, tasks: Iterable[NewTask], idempotency_key: str | None = None, traceparent: str | None = None
) -> Steps[Results]:
    """Creates tasks in requests as large as the API accepts; returns a result for each task, in order."""
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
    """The header with the caller's trace context."""
    return {} if traceparent is None else {"traceparent": traceparent}
