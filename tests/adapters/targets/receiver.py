"""A Standard Webhooks receiver, written only from the specification, without duetime's code or the official library."""

from __future__ import annotations

import base64
import hashlib
import hmac
from contextlib import suppress
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_signed_by(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether one of a request's signatures was made with a secret (with or without the prefix `whsec_`)."""
    told = {name.lower(): value for name, value in headers.items()}
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{told['webhook-id']}.{told['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, one) for one in told["webhook-signature"].split(" "))


def is_signed_by_key(public_key: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether one of a request's asymmetric signatures verifies with a public key."""
    told = {name.lower(): value for name, value in headers.items()}
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key.removeprefix("whpk_")))
    signed = f"{told['webhook-id']}.{told['webhook-timestamp']}.".encode() + body
    for one in told["webhook-signature"].split(" "):
        if one.startswith("v1a,"):
            with suppress(InvalidSignature):
                key.verify(base64.b64decode(one.removeprefix("v1a,")), signed)
                return True
    return False


def derived(purpose: str, owner: str, secret: str, turn: int = 0, period: int = 0) -> bytes:
    """Derive 32 bytes for an owner from the deployment's secret, as `docs/decisions/targets.md` describes."""
    text = f"{purpose}\0{owner}\0{turn}\0{period}"
    return hmac.new(base64.b64decode(secret), text.encode(), hashlib.sha256).digest()


def secret_for(owner: str, secret: str, turn: int = 0, period: int = 0) -> str:
    """Return the owner's secret."""
    return "whsec_" + base64.b64encode(derived("duetime webhook", owner, secret, turn, period)).decode()


def public_key_for(owner: str, secret: str, turn: int = 0, period: int = 0) -> str:
    """Return the owner's public key."""
    seed = derived("duetime webhook ed25519", owner, secret, turn, period)
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    return "whpk_" + base64.b64encode(public).decode()
