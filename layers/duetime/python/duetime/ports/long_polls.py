"""The store of requests that wait for an outcome.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetime.domain.times import Millis


class LongPollStore(Protocol):
    """The places in which requests of the API wait: each is held by one at a time, until an instant."""

    def take(self, place: int, nonce: str, now: Millis, until: Millis) -> bool:
        """Take a place, unless another holds it. Safe to resend.

        Args:
            place: its number.
            nonce: of whoever takes it.
            now: a holder whose time was over by then has it no more.
            until: when this holder's time is over, should it not give the place back.
        """
        ...

    def give_back(self, place: int, nonce: str) -> None:
        """Let others have a place; it does nothing if another holds it by now."""
        ...
