"""Creates requests to the API function in API Gateway's format."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_REQUESTS = count(1)


def event_of(
    method: str,
    path: str,
    body: str | None,
    headers: Mapping[str, str],
    query: str,
    authorizer: Mapping[str, Any] | None,
    *,
    is_base64: bool,
) -> dict[str, Any]:
    """Create an event in payload format 2.0 (Source: API Gateway Developer Guide, "Lambda proxy integrations")."""
    context: dict[str, Any] = {
        "accountId": "123456789012",
        "apiId": "api",
        "domainName": "api.example.org",
        "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "test"},
        "requestId": f"request-{next(_REQUESTS)}=",
        "routeKey": "ANY /v1/{proxy+}",
        "stage": "$default",
        "time": "21/Nov/2026:02:33:07 +0000",
        "timeEpoch": 1_795_228_387_250,
    }
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /v1/{proxy+}",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {name.lower(): value for name, value in headers.items()},
        "requestContext": context | ({"authorizer": dict(authorizer)} if authorizer else {}),
        "isBase64Encoded": is_base64,
    }
    return event if body is None else event | {"body": body}
