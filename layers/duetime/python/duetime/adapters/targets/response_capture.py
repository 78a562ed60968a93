"""What is kept of the response of an HTTP endpoint."""

from __future__ import annotations

import json
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from duetime.adapters.targets.http_messages import HttpResponse

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from urllib3.response import HTTPResponse

    from duetime.adapters.targets.http_messages import Call

_CHUNK = 16_384
_MOST_HEADER_BYTES = 8_192
_REDACTED = "[secret]"
_NOT_KEPT = frozenset({"set-cookie", "authorization", "proxy-authorization"})


class ResponseTooLarge(ValueError):
    """The endpoint's answer is larger than anybody wants it."""


def kept_response(response: HTTPResponse, call: Call, secrets: Collection[str]) -> HttpResponse:
    """What is wanted of a response, without what an endpoint may repeat of the secrets that it was sent.

    Raises:
        ResponseTooLarge: it is larger than it may be.
    """
    longest = max((len(secret) for secret in secrets), default=0)
    body = _read(response, call, longest) if call.most else b""
    for form in _forms(secrets):
        body = body.replace(form.encode(), _REDACTED.encode())
    headers = _headers(response.headers, secrets) if call.wants_headers else {}
    return HttpResponse(response.status, retry_after_of(response.headers), body[: call.most], headers)


def retry_after_of(headers: Mapping[str, str]) -> str:
    """The seconds of `Retry-After`; of a date, those since the response's own date (Source: RFC 9110, 10.2.3)."""
    asked = headers.get("Retry-After", "").strip()
    if not asked or asked.isdigit():
        return asked
    try:
        seconds = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("Date", ""))
    except (ValueError, TypeError):
        return ""
    return str(max(0, round(seconds.total_seconds())))


def _read(response: HTTPResponse, call: Call, longest: int) -> bytes:
    """The body, decompressed: no more than is wanted, and what a secret at its end may take."""
    data = bytearray()
    for chunk in response.stream(_CHUNK):
        data += chunk
        if len(data) > call.most and not call.truncates:
            raise ResponseTooLarge(f"the answer has more than {call.most} bytes")
        if len(data) > call.most + longest:
            break
    return bytes(data)


def _headers(headers: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """The headers by their names in lower case, without cookies, and no more of them than a result should hold."""
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
    """Each secret as it is, and as JSON would hold it; the longest first, for one may be a part of another."""
    forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1]) if form}
    return sorted(forms, key=len, reverse=True)
