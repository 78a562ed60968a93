"""The owner of a request: as verified by the gateway, never from a body."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from duetime.contract.http.request_errors import CallerForbidden, CallerUnknown, FaultCode, ParametersInvalid
from duetime.contract.tasks.fields import OWNER_PATTERN, OWNER_RULE
from duetime.settings import Authentication

if TYPE_CHECKING:
    from collections.abc import Mapping

OWNER_HEADER = "x-duetime-owner"
"""Header with the owner if nobody is authenticated: on the local stack."""
LOCAL_OWNER = "local"
_OWNER = re.compile(OWNER_PATTERN)
_ARN_PARTS = 6


def owner_of(event: Mapping[str, Any], authentication: Authentication) -> str:
    """The owner that a request acts for.

    Raises:
        CallerUnknown: the gateway passed no identity.
        CallerForbidden: the identity is no valid owner.
        ParametersInvalid: the header of an unauthenticated deployment is no valid owner.
    """
    if authentication is Authentication.NONE:
        return _named_by_header(event)
    authorizer = event.get("requestContext", {}).get("authorizer") or {}
    if authentication is Authentication.IAM:
        owner = _owner_of_arn((authorizer.get("iam") or {}).get("userArn"))
    else:
        owner = ((authorizer.get("jwt") or {}).get("claims") or {}).get("sub")
    if not owner:
        raise CallerUnknown
    if _OWNER.fullmatch(owner) is None:
        raise CallerForbidden(OWNER_RULE)
    return owner


def caller_of(event: Mapping[str, Any], authentication: Authentication) -> str:
    """The caller for the owner: for a role, the session, which distinguishes its users; else the owner."""
    owner = owner_of(event, authentication)
    if authentication is not Authentication.IAM:
        return owner
    arn: str = event["requestContext"]["authorizer"]["iam"]["userArn"]
    _, _, session = arn.partition(":assumed-role/")[2].partition("/")
    return f"{owner}/{session}" if session else owner


def _named_by_header(event: Mapping[str, Any]) -> str:
    owner: str = (event.get("headers") or {}).get(OWNER_HEADER, LOCAL_OWNER)
    if _OWNER.fullmatch(owner) is None:
        raise ParametersInvalid.of("X-Duetime-Owner", OWNER_RULE, FaultCode.PATTERN)
    return owner


def _owner_of_arn(arn: str | None) -> str | None:
    """Account and user or role: every session of a role is the same owner.

    `arn:aws:sts::123456789012:assumed-role/Reports/i-0abc` becomes `123456789012:role/Reports`. Partition and service
    are left out, as the owner is part of every record and index key.
    """
    parts = (arn or "").split(":", 5)
    if len(parts) != _ARN_PARTS:
        return None
    *_, account, resource = parts
    kind, _, rest = resource.partition("/")
    if kind == "assumed-role":
        return f"{account}:role/{rest.partition('/')[0]}"
    return f"{account}:{resource}"
