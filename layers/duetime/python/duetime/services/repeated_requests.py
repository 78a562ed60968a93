"""Recognizes repeated requests by their idempotency keys."""

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
    """Stores which object each idempotency key stands for."""

    keys: KeyStore

    def known(self, owner: str, key: IdempotencyKey | None, now: Millis) -> RememberedKey | None:
        """The object that a key stands for; `None` for the first request, or without a key.

        Raises:
            KeyReused: it was used with a different request.
        """
        return None if key is None else _same(self.keys.find(owner, key.text, now), key)

    def remember(
        self, owner: str, key: IdempotencyKey, made: TaskId, now: Millis, edition: int = 0
    ) -> RememberedKey | None:
        """Record what a key stands for before it is created.

        Args:
            owner: owner of the key.
            key: key of the request.
            made: id of the object that the request creates.
            now: time of the request.
            edition: edition of the object's name.

        Returns:
            The object that the key stands for if a concurrent request was first, else `None`.

        Raises:
            KeyReused: it was used with a different request.
        """
        wanted = RememberedKey(made, now, now, key.body_hash, expires_at=now + key.life, edition=edition)
        known = self.keys.remember(owner, key.text, wanted, now)
        return None if known.task_id == made else _same(known, key)


def _same(known: RememberedKey | None, key: IdempotencyKey) -> RememberedKey | None:
    if known is not None and known.body_hash != key.body_hash:
        raise KeyReused
    return known
