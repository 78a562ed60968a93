"""Checks a request's API key for API Gateway, which passes the key's owner and roles on to the API function.

The API function itself never receives a key (Source: API Gateway Developer Guide, "Control access to HTTP APIs with AWS
Lambda authorizers", payload format 2.0 with simple responses).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.api import ApiKeyServices
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from duetime.domain.api_keys import ApiKey

SCHEME = "bearer "


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Tell API Gateway whether a request is authorized."""
    header = str((event.get("headers") or {}).get("authorization", ""))
    found = None
    if header[: len(SCHEME)].lower() == SCHEME:
        # In a standby Region, recording the key's use could overwrite a revocation that is not yet replicated.
        notes_use = not composed().is_standby
        found = composed(ApiKeyServices).check.check(header[len(SCHEME) :].strip(), notes_use=notes_use)
    return {"isAuthorized": False} if found is None else {"isAuthorized": True, "context": _context(found)}


def _context(key: ApiKey) -> dict[str, str]:
    """The context for the API function. All values are strings, so that the access log can also show them."""
    expires = "" if key.expires_at is None else str(key.expires_at // SECOND)
    return {"key": key.id, "owner": key.owner, "roles": " ".join(key.roles), "expires": expires}


prepare(lambda: composed(ApiKeyServices).check)
