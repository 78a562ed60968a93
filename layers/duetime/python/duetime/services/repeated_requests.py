"""Requests that are known again by their idempotency keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import KeyReused
from duetime.domain.tasks.idempotency_keys import RememberedKey

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.idempotency_keys import IdempotencyKey
    from duetime.domain.times import Millis
    from duetime.ports.tasks import KeyStore


@dataclass(frozen=True, slots=True)
class RepeatedRequests:
    """Remembers what the idempotency keys of requests stand for."""

    keys: KeyStore

    def known(self, owner: str, key: IdempotencyKey | None, now: Millis) -> RememberedKey | None:
        """What a key stands for already; `None` if this is its first request, or there is no key.

        Raises:
            KeyReused: it came with another request before.
        """
        return None if key is None else _same(self.keys.find(owner, key.text, now), key)

    def remember(
        self, owner: str, key: IdempotencyKey, made: TaskId, now: Millis, edition: int = 0
    ) -> RememberedKey | None:
        """Have a key stand for what is about to be made.

        Args:
            owner: whose key it is.
            key: that came with the request.
            made: the id of what the request makes.
            now: when the request came.
            edition: of the name under which it is made.

        Returns:
            What the key stands for if another request with it came first, else `None`.

        Raises:
            KeyReused: it came with another request before.
        """
        wanted = RememberedKey(made, now, now, key.body_hash, expires_at=now + key.life, edition=edition)
        known = self.keys.remember(owner, key.text, wanted, now)
        return None if known.task_id == made else _same(known, key)


def _same(known: RememberedKey | None, key: IdempotencyKey) -> RememberedKey | None:
    if known is not None and known.body_hash != key.body_hash:
        raise KeyReused
    return known
