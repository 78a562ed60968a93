"""Converts between the fields of an HTTP target and its request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.domain.tasks.http_requests import (
    Auth,
    AuthScheme,
    BodyKind,
    HttpRequest,
    Keep,
    RequestBody,
    ResponseOptions,
)

if TYPE_CHECKING:
    from duetime.contract.tasks import http_request_fields as fields
    from duetime.contract.tasks.target_bodies import HttpTarget

_STRUCTURED = frozenset({BodyKind.JSON, BodyKind.FORM})


def request_of(body: HttpTarget) -> HttpRequest:
    """The request described by the fields of a target."""
    auth, response = body.auth, body.response
    return HttpRequest(
        method=body.method or "",
        headers=tuple(body.headers.items()),
        query=tuple(body.query.items()),
        body=None if body.body is None else _body(body.body),
        success=tuple(sorted(set(body.success or ()))),
        auth=None if auth is None else Auth(auth.secret, AuthScheme(auth.scheme), auth.header or ""),
        response=ResponseOptions()
        if response is None
        else ResponseOptions(Keep(response.keep), response.max_bytes, response.when_larger == "truncate"),
    )


def _body(body: fields.RequestBody) -> RequestBody:
    (name,) = body.model_fields_set
    kind, value = BodyKind(name.rstrip("_")), getattr(body, name)
    is_text = kind not in _STRUCTURED
    return RequestBody(
        kind, value if is_text else json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    )


def fields_of(request: HttpRequest) -> dict[str, Any]:
    """The fields of a target for a request; fields with default values are omitted."""
    auth, response = request.auth, request.response
    found: dict[str, Any] = {
        "method": request.method,
        "headers": dict(request.headers),
        "query": dict(request.query),
        "body": None if request.body is None else {request.body.kind.value: _written(request.body)},
        "success": list(request.success),
        "auth": auth and {"secret": auth.secret, "scheme": auth.scheme.value, "header": auth.header or None},
        "response": response != ResponseOptions()
        and {
            "keep": response.keep.value,
            "max_bytes": response.max_bytes,
            "when_larger": "truncate" if response.truncates else "fail",
        },
    }
    return {name: value for name, value in found.items() if value}


def _written(body: RequestBody) -> object:
    return json.loads(body.text) if body.kind in _STRUCTURED else body.text
