"""Creates, lists and revokes API keys, and checks the keys that requests carry."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.api_keys import ID_RANDOM_BITS, SECRET_BITS, ApiKey, digest_of, id_in, is_id, key_text, new_id
from duetime.domain.errors import ApiKeyNotFound, ApiKeysOff
from duetime.domain.operating_parameters import API_KEY_USE_PRECISION
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.api_keys import NewApiKey
    from duetime.domain.callers import Caller
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import ApiKeyStore


@frozen
class ApiKeyAdmin:
    """Creates, lists and revokes keys.

    Attributes:
        is_on: whether the deployment accepts keys.
    """

    store: ApiKeyStore
    runtime: Runtime
    is_on: bool

    def create(self, caller: Caller, wanted: NewApiKey) -> tuple[ApiKey, str]:
        """Create a key.

        Returns:
            The key and its text. The text is not stored and cannot be read again.

        Raises:
            ApiKeysOff: the deployment accepts no keys.
        """
        if not self.is_on:
            raise ApiKeysOff
        now, random = self.runtime.now(), self.runtime.random_source
        id_ = new_id(now, random.bits(ID_RANDOM_BITS))
        text = key_text(id_, random.bits(SECRET_BITS))
        key = ApiKey(
            id=id_,
            name=wanted.name,
            owner=wanted.owner or caller.owner,
            roles=tuple(wanted.roles),
            digest=digest_of(text),
            created_at=now,
            created_by=caller.actor or caller.owner,
            expires_at=wanted.expires_at,
        )
        self.store.put(key)
        return key, text

    def list(self, after: str, limit: int) -> tuple[Sequence[ApiKey], str | None]:
        """Return all owners' keys after a given id, in order of creation, and the last id if more keys may follow."""
        return self.store.list(after, limit)

    def revoke(self, id_: str) -> ApiKey:
        """Revoke a key; revoking a revoked key changes nothing.

        Raises:
            ApiKeyNotFound: no key has that id.
        """
        key = self.store.read(id_) if is_id(id_) else None
        if key is None:
            raise ApiKeyNotFound(id_)
        if key.revoked_at is not None:
            return key
        revoked = replace(key, revoked_at=self.runtime.now())
        if not self.store.revoke(revoked):
            raise ApiKeyNotFound(id_)
        return revoked


@frozen
class ApiKeyCheck:
    """Checks the keys of requests."""

    store: ApiKeyStore
    runtime: Runtime

    def check(self, text: str, *, notes_use: bool = True) -> ApiKey | None:
        """Return a request's key after noting its use, or `None` if the key is unknown, expired or revoked."""
        id_ = id_in(text)
        key = None if id_ is None else self.store.read(id_)
        now = self.runtime.now()
        if key is None or not key.accepts(text, now):
            return None
        if notes_use and not key.is_use_noted(now):
            self.store.note_use(key.id, now, now - API_KEY_USE_PRECISION)
        return key
