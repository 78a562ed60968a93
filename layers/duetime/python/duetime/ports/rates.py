"""The store of rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetime.domain.rates import RateName, RateState, RateUpdate
    from duetime.domain.times import Millis


class RateStore(Protocol):
    """How far rates are used up."""

    def apply(self, name: RateName, update: RateUpdate, expires_at: Millis) -> tuple[bool, RateState]:
        """Make an update, if what it requires holds. One that is sent twice may be made twice: a start is lost then.

        Args:
            name: the part.
            update: what it sets, adds and requires.
            expires_at: when the part may be forgotten.

        Returns:
            Whether it was made; and the state after it, or the one that has rejected it.

        Raises:
            Unavailable: the store throttles or fails after its own retries.
        """
        ...
