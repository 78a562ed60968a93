"""The parts of the document that depend on the deployment: authentication and servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]
ANY = "any"
"""Independent of a deployment: includes all ways to authenticate."""
_SCHEMES: Mapping[str, Schema] = {
    "sigv4": {
        "type": "apiKey",
        "name": "Authorization",
        "in": "header",
        "description": "AWS Signature Version 4; the owner is the IAM user, or the role for all of its sessions.",
        "x-amazon-apigateway-authtype": "awsSigv4",
    },
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A JWT of the deployment's issuer; the owner is its `sub` claim.",
    },
}
_ACCEPTED: Mapping[str, tuple[str, ...]] = {ANY: tuple(_SCHEMES), "iam": ("sigv4",), "jwt": ("bearer",), "none": ()}
# The document is at /v1/openapi.json behind any prefix, and its paths start with /v1.
SERVERS: list[Schema] = [{"url": "..", "description": "The deployment that serves this document."}]


def names_owner(authentication: str) -> bool:
    """Whether requests name their owner in a header, because there is no authentication."""
    return authentication in (ANY, "none")


def security(authentication: str) -> list[Schema]:
    """The alternatives of authentication for a request; empty without authentication."""
    return [{scheme: []} for scheme in _ACCEPTED[authentication]]


def security_schemes(authentication: str) -> dict[str, Schema]:
    """The ways to authenticate."""
    return {scheme: _SCHEMES[scheme] for scheme in _ACCEPTED[authentication]}
