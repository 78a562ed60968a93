"""What the document says of one deployment: who may call it, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]
ANY = "any"
"""Of no deployment in particular: all ways to authenticate that there are."""
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
# The document lies at /v1/openapi.json behind whatever prefix there is, and the paths begin with /v1.
SERVERS: list[Schema] = [{"url": "..", "description": "The deployment that serves this document."}]


def names_owner(authentication: str) -> bool:
    """Whether requests name their owner by a header, because nobody is authenticated."""
    return authentication in (ANY, "none")


def security(authentication: str) -> list[Schema]:
    """What a request needs, one of several; nothing where nobody is authenticated."""
    return [{scheme: []} for scheme in _ACCEPTED[authentication]]


def security_schemes(authentication: str) -> dict[str, Schema]:
    """The ways to authenticate."""
    return {scheme: _SCHEMES[scheme] for scheme in _ACCEPTED[authentication]}
