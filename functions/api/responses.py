"""Encodes responses as text with headers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.contract.http import problems
from duetime.contract.http.etags import etag_of, is_known_tag
from duetime.contract.http.operation import MERGE_PATCH, ON_CONFLICT, REPLAYED, reference_to
from duetime.contract.http.request_errors import EncodingUnsupported, MediaTypeUnsupported, MethodUnsupported
from duetime.contract.tasks.encoding import task_text
from duetime.domain.errors import QuotaExceeded
from duetime.domain.tasks.poll_interval import poll_interval
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

from .requests import header_of, request_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from duetime.domain.cost_estimates import RequestWorkload, TaskWorkloads
    from duetime.domain.tasks.creation import Accepted
    from duetime.domain.tasks.task import Task

_NO_STORE = {"Cache-Control": "no-store"}
# An outcome changes if the task is retried, so caches must check the ETag each time.
_CACHEABLE = {"Cache-Control": "private, no-cache"}
_RETRY_AFTER: Mapping[int, str] = {
    HTTPStatus.ACCEPTED: "2",
    HTTPStatus.TOO_MANY_REQUESTS: "1",
    HTTPStatus.SERVICE_UNAVAILABLE: "1",
}
"""Seconds until the client should send another request, by the response's status."""
_LEAST_PACKED = 1_024
"""Larger bodies are compressed for clients that accept gzip. For smaller bodies, the extra headers outweigh the
saving."""
_GZIP = r"(?i)(?:^|,)\s*(?:gzip|x-gzip|\*)\s*(?:;\s*q=(?P<q>[0-9.]+))?\s*(?:,|$)"
_TRACE = r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
"""Source: W3C Trace Context, "traceparent"."""
_ETAG_BYTES = 12
_KEPT_UNMODIFIED = ("Cache-Control", "ETag", "Retry-After")
"""Headers that a 304 response also has (RFC 9110, 15.4.5). Other headers describe a body."""


@frozen
class Response:
    """The response to a request."""

    status: int
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def delivered(response: Response, event: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a response to the gateway's format, and add the headers that every response has.

    Args:
        response: the response.
        event: the request.
    """
    headers = {**response.headers, "Request-Id": request_id(event)}
    if "Location" in headers:
        headers["Location"] = reference_to(headers["Location"], event["rawPath"])
    if response.status in _RETRY_AFTER:
        headers.setdefault("Retry-After", _RETRY_AFTER[response.status])
    if rate := composed().settings.requests_per_second:
        headers["RateLimit-Policy"] = f'"stage";q={rate};w=1'
    trace = header_of(event, "traceparent")
    if trace is not None and re.fullmatch(_TRACE, trace):
        headers["traceparent"] = trace
    body, is_base64 = response.text, False
    if len(body) > _LEAST_PACKED:
        headers["Vary"] = "Accept-Encoding"
        if _accepts_gzip(header_of(event, "Accept-Encoding") or ""):
            headers["Content-Encoding"] = "gzip"
            body, is_base64 = _packed(body), True
    if _method(event) == "HEAD":
        body, is_base64 = "", False
    return {"statusCode": response.status, "headers": headers, "body": body, "isBase64Encoded": is_base64}


def replayed(headers: Mapping[str, str], *, is_replay: bool) -> dict[str, str]:
    """Headers that show whether a request with an idempotency key was answered before."""
    return {**headers, REPLAYED: "true"} if is_replay else {**headers}


def creation_status(creation: Accepted[Task], *, is_waiting: bool = False) -> HTTPStatus:
    """The status for a creation, which says whether the task was created and whether its outcome is still pending."""
    if is_waiting:
        return HTTPStatus.ACCEPTED
    return HTTPStatus.CREATED if creation.on_conflict is None else HTTPStatus.OK


def creation_headers(creation: Accepted[Task], location: str) -> dict[str, str]:
    """The headers for a creation, which contain the task's location and say whether this request created the task."""
    headers = replayed({"Location": location}, is_replay=creation.is_replay)
    return headers if creation.on_conflict is None else {**headers, ON_CONFLICT: creation.on_conflict.value}


def answer(text: str, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    """A response with JSON text."""
    return Response(int(status), text, {**_NO_STORE, "Content-Type": "application/json", **(headers or {})})


def no_content() -> Response:
    """A success without content."""
    return Response(HTTPStatus.NO_CONTENT.value, headers=_NO_STORE)


def task_response(task: Task, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    """The response with a complete task and its ETag."""
    return answer(task_text(task), status, {"ETag": etag_of(task.version), **(headers or {})})


def with_estimate(response: Response, owner: str, find: Callable[[TaskWorkloads], RequestWorkload | None]) -> Response:
    """Add the estimated cost of created tasks to a response.

    Args:
        response: response whose body is a JSON object.
        owner: owner of the tasks.
        find: returns the workload of the tasks; `None` if the number of tasks is unknown.
    """
    # Few requests ask for an estimate, so the modules are imported only for them.
    from duetime.composition.tasks import TaskServices  # noqa: PLC0415 - see the line above
    from duetime.contract.cost_estimates import estimate_response  # noqa: PLC0415 - same

    workload = find(composed(TaskServices).workloads_of(owner))
    return with_field(response, "estimate", None if workload is None else estimate_response(workload))


def with_field(response: Response, name: str, value: object) -> Response:
    """Add a field to a response whose body is a JSON object."""
    text = json.dumps(value, separators=(",", ":"))
    return replace(response, text=f'{response.text[:-1]},"{name}":{text}}}')


def not_modified(headers: Mapping[str, str]) -> Response:
    """The 304 response to a client that already has the response with these headers."""
    kept = {name: value for name, value in headers.items() if name in _KEPT_UNMODIFIED}
    return Response(HTTPStatus.NOT_MODIFIED.value, headers=kept)


def problem_response(error: Exception, instance: str) -> Response:
    """The problem document for an error."""
    problem = problems.problem_of(error, instance)
    headers = {**_NO_STORE, "Content-Type": problems.MEDIA_TYPE}
    if isinstance(error, QuotaExceeded):
        headers["Retry-After"] = str(-(-error.retry_after // SECOND))
    if isinstance(error, MethodUnsupported):
        headers["Allow"] = ", ".join(error.allowed)
    if isinstance(error, MediaTypeUnsupported) and MERGE_PATCH in error.accepted:
        headers["Accept-Patch"] = ", ".join(error.accepted)
    if isinstance(error, EncodingUnsupported):
        headers["Accept-Encoding"] = "gzip"
    return Response(problem["status"], json.dumps(problem), headers)


def caching(task: Task) -> dict[str, str]:
    """The header that says how a response about a task may be cached."""
    return _CACHEABLE if task.is_terminal and task.finished_at is not None else _NO_STORE


def polling(tasks: Iterable[Task]) -> dict[str, str]:
    """The header that says when one of these tasks may have changed; empty if all tasks have ended."""
    now = composed().runtime.clock.now()
    intervals = [wait for task in tasks if (wait := poll_interval(task, now)) is not None]
    return {"Retry-After": str(-(-min(intervals) // SECOND))} if intervals else {}


def unless_known(response: Response, event: Mapping[str, Any]) -> Response:
    """Add an ETag for the text to a response without one, or return a 304 response if the client has this response.

    Raises:
        ParametersInvalid: `If-None-Match` is malformed.
    """
    if _method(event) not in ("GET", "HEAD") or response.status != HTTPStatus.OK:
        return response
    if "ETag" not in response.headers:
        tag = hashlib.blake2b(response.text.encode(), digest_size=_ETAG_BYTES).hexdigest()
        response = replace(response, headers={**response.headers, "ETag": f'"{tag}"'})
    if not is_known_tag(header_of(event, "If-None-Match"), response.headers["ETag"]):
        return response
    return not_modified(response.headers)


def _method(event: Mapping[str, Any]) -> str:
    return str(event.get("requestContext", {}).get("http", {}).get("method", "")).upper()


def _accepts_gzip(accepted: str) -> bool:
    """Whether `Accept-Encoding` lists gzip or `*` with a weight above 0."""
    found = re.search(_GZIP, accepted)
    return found is not None and (found["q"] is None or found["q"].strip("0.") != "")


def _packed(text: str) -> str:
    # The module is imported only for clients that accept compression.
    from duetime.contract.http.compression import pack  # noqa: PLC0415 - see the line above

    return base64.b64encode(pack(text.encode())).decode()
