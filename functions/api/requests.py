"""What a route reads of an event of API Gateway's HTTP API (payload format 2.0)."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from duetime.contract.http import safe_json
from duetime.contract.http.request_errors import BodyUnreadable, MediaTypeUnsupported, ParametersInvalid
from duetime.contract.tasks.attempt_decoding import reject_fields
from duetime.domain.errors import TaskNotFound
from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.limits import MAX_IDEMPOTENCY_KEY_LENGTH, MAX_JSON_DEPTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.safe_json import Document

IDEMPOTENCY_KEY = "Idempotency-Key"
ICALENDAR = "text/calendar"
_KEY = re.compile(rf"[!-~]{{1,{MAX_IDEMPOTENCY_KEY_LENGTH}}}")
_JSON = re.compile(r'application/([\w.-]+\+)?json\s*(;\s*charset="?utf-8"?\s*)?', re.ASCII | re.IGNORECASE)


def instance(event: Mapping[str, Any]) -> str:
    """The name of this very request, by which its lines are found in the log of the gateway."""
    return f"urn:duetime:request:{event.get('requestContext', {}).get('requestId', 'unnamed')}"


def header(event: Mapping[str, Any], name: str) -> str | None:
    """A header of the request; the gateway hands on names in lower case."""
    value = (event.get("headers") or {}).get(name.lower())
    return value if isinstance(value, str) else None


def query(event: Mapping[str, Any]) -> str:
    """The query of the request, as it was sent."""
    return event.get("rawQueryString") or ""


def body(event: Mapping[str, Any], *, wrapped: int = 0) -> Document:
    """The body of the request, made safe.

    Args:
        event: the request.
        wrapped: levels of nesting that the route itself puts around a task.
    """
    media_type = header(event, "Content-Type")
    if media_type is not None and _JSON.fullmatch(media_type.strip()) is None:
        raise MediaTypeUnsupported
    is_base64 = bool(event.get("isBase64Encoded"))
    return safe_json.read(event.get("body"), is_base64=is_base64, depth=MAX_JSON_DEPTH + wrapped)


def text(event: Mapping[str, Any]) -> bytes:
    """The body of a request that has been read already, in UTF-8."""
    return safe_json.text_of(event.get("body") or "", is_base64=bool(event.get("isBase64Encoded"))).encode()


def is_icalendar(event: Mapping[str, Any]) -> bool:
    """Whether the body is declared to be an iCalendar file."""
    return (header(event, "Content-Type") or "").partition(";")[0].strip().lower() == ICALENDAR


def bytes_body(event: Mapping[str, Any]) -> bytes:
    """The body of a request that is not JSON, which is text all the same.

    Raises:
        BodyUnreadable: it is no UTF-8.
    """
    text = safe_json.text_of(event.get("body") or "", is_base64=bool(event.get("isBase64Encoded")))
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BodyUnreadable(f"contains a lone surrogate at character {error.start}") from None


def idempotency_key(event: Mapping[str, Any]) -> str | None:
    """The key by which a repeated request is known.

    Raises:
        ParametersInvalid: it is too long, or not visible ASCII.
    """
    key = header(event, IDEMPOTENCY_KEY)
    if key is not None and _KEY.fullmatch(key) is None:
        reason = f"should be 1 to {MAX_IDEMPOTENCY_KEY_LENGTH} visible ASCII characters"
        raise ParametersInvalid.of(IDEMPOTENCY_KEY, reason)
    return key


def body_hash(value: object) -> str:
    """A hash of a body's meaning: the order of its fields and its spaces do not count."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def no_body(event: Mapping[str, Any]) -> None:
    """Refuse a body that says anything; none at all and an empty object are the same."""
    if has_body(event):
        reject_fields(body(event))


def has_body(event: Mapping[str, Any]) -> bool:
    """Whether the request says anything in its body."""
    return bool((event.get("body") or "").strip())


def pattern(route: str) -> str:
    """A path of the contract as the resolver writes it."""
    return route.replace("{", "<").replace("}", ">")


def task_id(text: str) -> TaskId:
    """The id in a path.

    Raises:
        TaskNotFound: no task can have it.
    """
    try:
        return TaskId.parse(text)
    except InvalidTaskId:
        raise TaskNotFound(TaskId(text)) from None
