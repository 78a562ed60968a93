"""Validates the declared media type of a body. Imported for all declarations except the plain one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from duetime.contract.http.operation import JSON, MERGE_PATCH
from duetime.contract.http.request_errors import MediaTypeUnsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

_JSON_PATCH = "application/json-patch+json"
_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)
_UTF_8 = re.compile(r"charset\s*=\s*(\"utf-?8\"|utf-?8)", re.ASCII | re.IGNORECASE)
_MOST_SHOWN = 64


def reject_unless_json(declared: str, accepted: Sequence[str]) -> None:
    """Rejects a `Content-Type` that is not JSON in UTF-8.

    Args:
        declared: the header.
        accepted: media types that the operation accepts.

    Raises:
        MediaTypeUnsupported: names the invalid part.
    """
    media_type, *parameters = (part.strip() for part in declared.split(";"))
    if media_type.lower() not in (JSON, MERGE_PATCH) or media_type.lower() not in accepted:
        raise MediaTypeUnsupported(_why_not(media_type), accepted)
    for parameter in parameters:
        if parameter and _UTF_8.fullmatch(parameter) is None:
            raise MediaTypeUnsupported(f"the parameter {_shown(parameter)} is not supported: JSON is UTF-8", accepted)


def _why_not(media_type: str) -> str:
    if media_type.lower() == _JSON_PATCH:
        return "JSON Patch (RFC 6902) is not supported"
    return f"{_shown(media_type)} is not supported" if _TYPE.fullmatch(media_type) else "is not a media type"


def _shown(text: str) -> str:
    return repr(text[:_MOST_SHOWN])
