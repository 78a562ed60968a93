"""A receiver's side of Standard Webhooks, written from the specification alone, without our code or the library."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_signed_by(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether one of a request's signatures is that of a secret, `whsec_` before it or not."""
    told = {name.lower(): value for name, value in headers.items()}
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{told['webhook-id']}.{told['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, one) for one in told["webhook-signature"].split(" "))


def secret_for(owner: str, secret: str) -> str:
    """The secret of an owner, derived from that of the deployment as `docs/decisions/http-targets.md` says."""
    digest = hmac.new(base64.b64decode(secret), b"duetime webhook\0" + owner.encode(), hashlib.sha256).digest()
    return "whsec_" + base64.b64encode(digest).decode()
