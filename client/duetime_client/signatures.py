"""Verifies HTTP calls from a deployment: the receiver's side of Standard Webhooks.

Source: Standard Webhooks, specification: `v1` (HMAC-SHA256, keys `whsec_`) and `v1a` (Ed25519, keys `whpk_`).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime_client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOLERANCE_SECONDS = 300
"""Largest allowed difference between the time of a call and the receiver's time."""
KEY_BYTES = 32
"""Length of an Ed25519 public key."""
MOST_SIGNATURES = 20
"""Maximum number of signatures of a call that are examined; duetime sends four."""
_SECRET, _PUBLIC = "whsec_", "whpk_"
_TIME = re.compile("[0-9]{1,12}")


class SignatureInvalid(ClientError):
    """A call was not made by the deployment for this owner and URL, or was changed, or is too old."""


class KeyInvalid(ClientError):
    """A key is neither a secret (`whsec_`) nor a public key (`whpk_`) of Standard Webhooks."""


@dataclass(frozen=True, slots=True)
class CallVerifier:
    """Verifies calls with one or more keys, of which one must match.

    Attributes:
        keys: secrets (`whsec_`) or public keys (`whpk_`). With public keys only, the receiver cannot forge calls
            itself; public keys need the extra `signatures`.
        owner: the owner for whom calls must be made; `None` for any owner of the keys.
        audience: the URL, without its query, to which calls must be addressed; `None` for any URL.
        now: returns the current time, in seconds since the epoch.
    """

    keys: tuple[str, ...]
    owner: str | None = None
    audience: str | None = None
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        """Check the keys.

        Raises:
            KeyInvalid: no key is given, or a key is not a Standard Webhooks key.
        """
        if not self.keys or isinstance(self.keys, str):
            raise KeyInvalid("give the keys as a tuple: (key,)")
        for key in self.keys:
            size = len(_key_bytes(key))
            if not size or (key.startswith(_PUBLIC) and size != KEY_BYTES):
                raise KeyInvalid("a key begins with whsec_ or whpk_ and is base64")

    def verify(self, headers: Mapping[str, str], body: bytes) -> Any:  # noqa: ANN401 - JSON
        """The verified body, parsed from JSON; `None` if the body is empty, as in status queries.

        Args:
            headers: the headers of the call; case does not matter.
            body: the body exactly as it was received.

        Raises:
            SignatureInvalid: the signature, the time, the owner or the audience is not as expected.
        """
        given = {name.lower(): value for name, value in headers.items()}
        try:
            id_, sent_at, signatures = (given[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
        except KeyError:
            raise SignatureInvalid("the call is not signed") from None
        if _TIME.fullmatch(sent_at) is None or abs(self.now() - int(sent_at)) > TOLERANCE_SECONDS:
            raise SignatureInvalid("the call was not signed within the last five minutes")
        signed = f"{id_}.{sent_at}.".encode() + body
        found = [each.partition(",") for each in signatures.split(" ")[:MOST_SIGNATURES]]
        if not any(_is_signed(key, version, signature, signed) for key in self.keys for version, _, signature in found):
            raise SignatureInvalid("no signature of the call is valid")
        return self._content(body)

    def _content(self, body: bytes) -> Any:  # noqa: ANN401 - JSON
        """The signed body, if it is for this owner and audience."""
        content = json.loads(body) if body else None
        for name, wanted in (("owner", self.owner), ("audience", self.audience)):
            if wanted is not None and body and (not isinstance(content, dict) or content.get(name) != wanted):
                raise SignatureInvalid(f"the call is for another {name}")
        return content


def _is_signed(key: str, version: str, signature: str, signed: bytes) -> bool:
    try:
        given = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    if key.startswith(_SECRET):
        return version == "v1" and hmac.compare_digest(hmac.digest(_key_bytes(key), signed, "sha256"), given)
    return version == "v1a" and _is_signed_by(_key_bytes(key), given, signed)


def _is_signed_by(public_key: bytes, signature: bytes, signed: bytes) -> bool:
    # The package is an optional extra that receivers with a shared secret do not need.
    from nacl.exceptions import BadSignatureError  # noqa: PLC0415 - see the line above
    from nacl.signing import VerifyKey  # noqa: PLC0415 - same

    try:
        VerifyKey(public_key).verify(signed, signature)
    except (BadSignatureError, ValueError):
        return False
    return True


def _key_bytes(key: str) -> bytes:
    """The bytes of a key; empty if it is not a key."""
    if not key.startswith((_SECRET, _PUBLIC)):
        return b""
    try:
        return base64.b64decode(key.partition("_")[2], validate=True)
    except (binascii.Error, ValueError):
        return b""
