"""Shards: how many a minute is split into, and since when. The trigger reads them in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import SHARDS_SETTLE

if TYPE_CHECKING:
    from duetime.domain.times import Millis

GROUP_SIZE = 16
"""Shards in a group."""
GROUP = "group"
"""Name of the field of an event that asks the trigger for one group of shards."""


def groups_of(shards: int) -> range:
    """Numbers of the groups that so many shards make."""
    return range(-(-shards // GROUP_SIZE))


def shards_in(group: int, shards: int) -> range:
    """Numbers of the shards in a group."""
    return range(group * GROUP_SIZE, min((group + 1) * GROUP_SIZE, shards))


@dataclass(frozen=True, slots=True)
class Growth:
    """From an instant on there may be tasks in so many shards."""

    shards: int
    at: Millis


@dataclass(frozen=True, slots=True)
class ShardHistory:
    """How the number of shards has grown: whoever makes ids announces his number here, before the first id.

    So the trigger reads every shard that may hold a task, whatever the order in which functions are deployed, and
    whether or not the number is lowered again.

    Attributes:
        steps: in order; each is larger than the one before.
    """

    steps: tuple[Growth, ...] = ()

    @property
    def number(self) -> int:
        """The most shards that were ever announced."""
        return self.steps[-1].shards if self.steps else 0

    def grown(self, shards: int, now: Millis) -> ShardHistory:
        """With so many shards, if there were not as many before."""
        return self if shards <= self.number else ShardHistory((*self.steps, Growth(shards, now)))

    def since(self, group: int) -> Millis:
        """Since when there may be tasks in a group of shards, which must have been announced."""
        return next(step.at for step in self.steps if step.shards > group * GROUP_SIZE)

    def at(self, instant: Millis) -> int:
        """How many shards a thing of that instant is spread over: the same number, whenever it is requested.

        A new number counts a while after it was announced, when everybody knows of it.
        """
        settled = [step.shards for step in self.steps if step.at + SHARDS_SETTLE <= instant]
        return settled[-1] if settled else self.steps[0].shards
