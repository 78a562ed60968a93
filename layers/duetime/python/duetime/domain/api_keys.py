"""API keys, which are secrets for programs. Only digests of keys are stored."""

from __future__ import annotations

import re
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import API_KEY_KEPT, API_KEY_USE_PRECISION
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.callers import Role
    from duetime.domain.times import Millis

PREFIX = "dtk"
"""Prefix of every key, which lets secret scanners find keys."""
SECRET_BITS = 256
ID_RANDOM_BITS = 32
_ID = re.compile(r"[0-9a-f]{20}")
_TEXT = re.compile(rf"{PREFIX}_(?P<id>[0-9a-f]{{20}})_[0-9a-f]{{64}}")


class ApiKeyState(StrEnum):
    """Whether a key can be used.

    Attributes:
        ACTIVE: requests with the key are accepted.
        EXPIRED: the key's expiry time has passed.
        REVOKED: the key was revoked.
    """

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@frozen
class NewApiKey:
    """The properties of a new key.

    Attributes:
        owner: the owner that requests with the key act for; `None` for its creator's owner.
        expires_at: when the key expires; `None` if it does not expire.
    """

    name: str
    roles: Sequence[Role]
    owner: str | None = None
    expires_at: Millis | None = None


@frozen
class ApiKey:
    """A key, without its secret.

    Attributes:
        id: public part of the key; ids sort by creation.
        name: human-readable purpose of the key.
        owner: the owner that requests with the key act for.
        roles: the roles of requests with the key.
        digest: SHA-256 of the entire key, in hexadecimal. The secret has 256 random bits, so no slow hash is needed.
        created_by: who created the key.
        expires_at: when the key expires; `None` if it does not expire.
        revoked_at: when the key was revoked.
        used_at: when the key was last used, or up to `API_KEY_USE_PRECISION` earlier; `None` if the key was never used.
    """

    id: str
    name: str
    owner: str
    roles: Sequence[Role]
    digest: str
    created_at: Millis
    created_by: str
    expires_at: Millis | None = None
    revoked_at: Millis | None = None
    used_at: Millis | None = None

    def state(self, now: Millis) -> ApiKeyState:
        """The key's state at a given time."""
        if self.revoked_at is not None:
            return ApiKeyState.REVOKED
        return ApiKeyState.EXPIRED if self.expires_at is not None and self.expires_at <= now else ApiKeyState.ACTIVE

    def accepts(self, text: str, now: Millis) -> bool:
        """Whether a string matches this key, and the key can be used."""
        return compare_digest(self.digest, digest_of(text)) and self.state(now) is ApiKeyState.ACTIVE

    def is_use_noted(self, now: Millis) -> bool:
        """Whether the stored time of the key's last use is recent enough."""
        return self.used_at is not None and now - self.used_at < API_KEY_USE_PRECISION

    @property
    def removable_at(self) -> Millis | None:
        """When the key may be removed; `None` if it never ends.

        Ended keys are kept for some time so that people can still see them.
        """
        ends = [at for at in (self.revoked_at, self.expires_at) if at is not None]
        return min(ends) + API_KEY_KEPT if ends else None


def is_id(text: str) -> bool:
    """Whether a string has the form of a key's id."""
    return _ID.fullmatch(text) is not None


def new_id(now: Millis, random_bits: int) -> str:
    """The id of a new key."""
    return f"{now:012x}{random_bits:0{ID_RANDOM_BITS // 4}x}"


def key_text(id_: str, secret: int) -> str:
    """The key as its user sends it: `dtk_ID_SECRET`."""
    return f"{PREFIX}_{id_}_{secret:0{SECRET_BITS // 4}x}"


def id_in(text: str) -> str | None:
    """The id in a key; `None` if the string cannot be a key."""
    found = _TEXT.fullmatch(text)
    return None if found is None else found["id"]


def digest_of(text: str) -> str:
    """The digest under which a key is stored."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
