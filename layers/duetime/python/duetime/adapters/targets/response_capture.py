"""Selects the parts of an HTTP endpoint's response to keep."""

from __future__ import annotations

import json
from codecs import lookup
from datetime import UTC
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from duetime.adapters.targets.http_messages import HttpResponse
from duetime.domain.times import DAY, SECOND, to_datetime

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from urllib3.response import HTTPResponse

    from duetime.adapters.targets.http_messages import Call
    from duetime.domain.times import Millis

_CHUNK = 16_384
_MOST_HEADER_BYTES = 8_192
_REDACTED = "[secret]"
_DAY_SECONDS = DAY // SECOND
_NO_CHARSETS = frozenset({"utf-8", "idna", "punycode", "unicode-escape", "raw-unicode-escape"})
"""Charsets that need no decoding, or that no media type can mean."""
_NOT_KEPT = frozenset({"set-cookie", "authorization", "proxy-authorization"})


class ResponseTooLarge(ValueError):
    """The endpoint's response is larger than its limit."""


def kept_response(response: HTTPResponse, call: Call, secrets: Collection[str], now: Millis) -> HttpResponse:
    """The requested parts of a response, its text in UTF-8, without secrets that the endpoint may echo.

    Args:
        response: the endpoint's response.
        call: the call.
        secrets: secrets of the call, which must not be kept.
        now: the time.

    Raises:
        ResponseTooLarge: it exceeds its limit.
    """
    longest = max((len(secret) for secret in secrets), default=0)
    body = _read(response, call, longest) if call.most else b""
    is_cut = len(body) > call.most + longest
    body = in_utf_8(body, response.headers.get("Content-Type", ""))
    for form in _forms(secrets):
        body = body.replace(form.encode(), _REDACTED.encode())
    if is_cut:
        # The rest of a secret at the end of the body.
        body = body[: max(0, len(body) - longest)]
    headers = _headers(response.headers, secrets) if call.wants_headers else {}
    return HttpResponse(response.status, retry_after_of(response.headers, now), body[: call.most], headers)


def retry_after_of(headers: Mapping[str, str], now: Millis) -> str:
    """The seconds of `Retry-After`, at most a day; empty if it is neither a number nor a date.

    A date is compared with the response's own date, or with this clock if it has none (Source: RFC 9110, 10.2.3 and
    6.6.1).
    """
    asked = headers.get("Retry-After", "").strip()
    if asked.isascii() and asked.isdigit():
        # The header's digits are unlimited; those accepted by `int` are not.
        digits = asked.lstrip("0") or "0"
        return digits if len(digits) <= len(str(_DAY_SECONDS)) else str(_DAY_SECONDS)
    at = _instant(asked)
    if at is None:
        return ""
    answered_at = _instant(headers.get("Date", "")) or to_datetime(now)
    return str(min(_DAY_SECONDS, max(0, round((at - answered_at).total_seconds()))))


def in_utf_8(body: bytes, content_type: str) -> bytes:
    """The text of a body in UTF-8, if its media type declares another known charset; else the body.

    JSON is in UTF-8 whatever its media type declares (Source: RFC 8259, 8.1 and 11), unless its bytes are not valid
    UTF-8.
    """
    message = Message()
    message["Content-Type"] = content_type
    charset = message.get_content_charset("utf-8")
    if message.get_content_subtype().endswith("json") and _is_utf_8(body):
        return body
    try:
        if lookup(charset).name in _NO_CHARSETS:
            return body
        return body.decode(charset, "replace").encode("utf-8", "replace")
    except (LookupError, ValueError):
        return body


def _is_utf_8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _instant(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    # A date in the zone "-0000" has none; HTTP dates are in UTC.
    return at.replace(tzinfo=at.tzinfo or UTC)


def _read(response: HTTPResponse, call: Call, longest: int) -> bytes:
    """The decompressed body, at most the wanted bytes plus those that a secret at its end may take."""
    data = bytearray()
    for chunk in response.stream(_CHUNK):
        data += chunk
        if len(data) > call.most and not call.truncates:
            raise ResponseTooLarge(f"the response has more than {call.most} bytes")
        if len(data) > call.most + longest:
            break
    return bytes(data)


def _headers(headers: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """The headers by lower-case name, without cookies, up to the limit of a result."""
    found: dict[str, str] = {}
    size = 0
    for name in headers:
        text = headers[name]
        size += len(name) + len(text)
        if name.lower() in _NOT_KEPT or size > _MOST_HEADER_BYTES:
            continue
        for form in _forms(secrets):
            text = text.replace(form, _REDACTED)
        found[name.lower()] = text
    return found


def _forms(secrets: Collection[str]) -> list[str]:
    """Each secret as it is, and as JSON would contain it; the longest first, as one may be a part of another."""
    forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1]) if form}
    return sorted(forms, key=len, reverse=True)
