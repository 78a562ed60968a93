"""Requests of a user's own: what is sent to an endpoint that knows nothing of duetime."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from duetime.adapters.targets.envelope import compact
from duetime.domain.tasks.http_requests import PAYLOAD_METHODS, BodyKind, form_fields
from duetime.domain.tasks.placeholders import filled_payload, filled_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.http_requests import HttpRequest, RequestBody
    from duetime.domain.tasks.task import Task

_JSON = "application/json"
_TYPES = {
    BodyKind.JSON: _JSON,
    BodyKind.FORM: "application/x-www-form-urlencoded",
    BodyKind.TEXT: "text/plain; charset=utf-8",
    BodyKind.BASE64: "application/octet-stream",
}


def with_query(url: str, request: HttpRequest, task: Task) -> str:
    """A URL with the parameters of a request, their placeholders replaced."""
    if not request.query:
        return url
    added = urlencode([(name, filled_text(text, task)) for name, text in request.query])
    url = url.partition("#")[0]
    return f"{url}{'&' if '?' in url else '?'}{added}"


def with_headers(ours: Mapping[str, str], request: HttpRequest, task: Task) -> dict[str, str]:
    """Headers with those of a request, which replace ours of the same name."""
    given = {name.lower() for name, _ in request.headers}
    kept = {name: text for name, text in ours.items() if name.lower() not in given}
    return kept | {name: filled_text(text, task) for name, text in request.headers}


def content_of(request: HttpRequest, task: Task, payload: bytes) -> tuple[dict[str, str], bytes]:
    """The header that says the type of a request's body, and the body; neither if it has none.

    Args:
        request: one that replaces duetime's own.
        task: the record as it was claimed.
        payload: JSON text with its placeholders replaced.
    """
    if request.body is not None:
        return {"Content-Type": _TYPES[request.body.kind]}, _body(request.body, task)
    if request.sent_method in PAYLOAD_METHODS and payload != b"null":
        return {"Content-Type": _JSON}, payload
    return {}, b""


def whole_response(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """A result of all of a response: JSON of its status, headers and body."""
    return compact({"status": status, "headers": dict(headers), "body": json.loads(body)})


def _body(body: RequestBody, task: Task) -> bytes:
    match body.kind:
        case BodyKind.JSON:
            return filled_payload(body.text.encode(), task)
        case BodyKind.FORM:
            return urlencode([(name, filled_text(text, task)) for name, text in form_fields(body)]).encode()
        case BodyKind.TEXT:
            return filled_text(body.text, task).encode()
        case BodyKind.BASE64:
            return base64.b64decode(body.text)
