"""Shards in groups: one invocation of the trigger reads one group, and a group's cursors move together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.limits import PATROL_DELAYS
from duetime.domain.times import MINUTE, Millis, minute_of

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUP_SIZE = 16
"""Shards in a group."""
GROUP = "group"
"""Name of the field of an event that asks the trigger for one group of shards."""
_DEPLOY_TIME = 10 * MINUTE
"""How long before the trigger other functions may have known of a group of shards."""
DISPATCH = 0
"""Index of the first reading's cursor; the patrols' cursors follow it."""


def groups_of(shards: int) -> range:
    """Numbers of the groups that so many shards make."""
    return range(-(-shards // GROUP_SIZE))


def shards_in(group: int, shards: int) -> range:
    """Numbers of the shards in a group."""
    return range(group * GROUP_SIZE, min((group + 1) * GROUP_SIZE, shards))


@dataclass(frozen=True, slots=True)
class Cursors:
    """How far a group of shards has been read: the last minute that is wholly done, by kind of reading.

    Attributes:
        minutes: the first reading's minute, then each patrol's, as in `PATROL_DELAYS`.
        epoch: grows each time somebody takes the group; only the newest epoch moves cursors.
    """

    minutes: tuple[int, ...]
    epoch: int = 0

    def moved(self, reading: int, minute: int) -> Cursors:
        """The cursors after a reading of one more minute; a cursor never moves back."""
        minutes = list(self.minutes)
        minutes[reading] = max(minutes[reading], minute)
        return replace(self, minutes=tuple(minutes))


def first_cursors(now: Millis) -> Cursors:
    """Cursors of a group that nobody has read yet.

    The first reading begins a while back and each patrol at its own delay before that, so that tasks written
    while a deploy was raising the number of shards are met.
    """
    start = now - _DEPLOY_TIME
    return Cursors((minute_of(start), *(minute_of(start - delay) for delay in PATROL_DELAYS)))


def horizons(now: Millis, look_ahead: Millis) -> Sequence[int]:
    """The last minute that each reading may read now: ahead for the first, past its delay for a patrol."""
    return (minute_of(now + look_ahead), *(minute_of(now - delay) - 1 for delay in PATROL_DELAYS))
