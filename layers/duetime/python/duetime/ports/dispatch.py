"""The stores of cursors and of the number of shards.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetime.domain.dispatch.cursors import Cursors, ShardHistory
    from duetime.domain.times import Millis


class CursorStore(Protocol):
    """How far each group of shards has been read, and by whom it is being read."""

    def take(self, group: int, holder: str, now: Millis, until: Millis, first: Cursors) -> Cursors | None:
        """Take a group for reading until the given instant, if nobody else holds it.

        Args:
            group: number of the group.
            holder: who takes it; unique to an invocation.
            now: the time by the taker's clock.
            until: when the hold ends by itself.
            first: the cursors of a group that has none yet.

        Returns:
            Its cursors, at a new epoch; `None` if somebody else holds it.

        Raises:
            ClockWrong: the store's own clock differs too much from `now`; the group is not taken.
        """
        ...

    def advance(self, group: int, cursors: Cursors, until: Millis) -> bool:
        """Store how far a group has been read, and keep the hold until `until` (0: let it go).

        Returns:
            Whether it is stored: not if the epoch is no longer the group's.
        """
        ...

    def join(self, group: int, cursors: Cursors) -> Cursors | None:
        """Add what was done to what is stored by now, whoever holds the group; the hold stays as it is.

        Returns:
            The cursors that are stored now, at a new epoch; `None` if somebody else holds the group.
        """
        ...

    def read(self, group: int) -> Cursors | None:
        """Read how far a group has been read, eventually consistently; `None` if nobody has read it yet."""
        ...


class ShardStore(Protocol):
    """How the number of shards has grown."""

    def read(self) -> ShardHistory:
        """Read every number that was announced, consistently."""
        ...

    def announce(self, shards: int, now: Millis) -> ShardHistory:
        """Make it known that there may be tasks in so many shards from now on. Safe to resend.

        Returns:
            Every number that was announced by now.
        """
        ...
