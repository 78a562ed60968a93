"""Removes task contents from responses to read-only callers, as the settings require."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.contract.http.etags import content_etag, version_wanted

if TYPE_CHECKING:
    from .responses import Response

_JSON = "application/json"


def redacted(response: Response) -> Response:
    """The response with markers in place of redacted values.

    The ETag of the redacted response differs from the full response's ETag, because a cache may still have the full
    response from before the caller became read-only.
    """
    if response.headers.get("Content-Type") != _JSON:
        return response
    document = composed().settings.redaction.removed_from(json.loads(response.text))
    text = json.dumps(document, separators=(",", ":"))
    version = version_wanted(response.headers.get("ETag"))
    headers = response.headers if version is None else {**response.headers, "ETag": content_etag(version, text)}
    return replace(response, text=text, headers=headers)
