"""Shards in groups: one invocation of the trigger reads one group, and a group's cursors move together."""

from __future__ import annotations

from duetime.domain.times import MINUTE

GROUP_SIZE = 16
"""Shards in a group."""
GROUP = "group"
"""Name of the field of an event that asks the trigger for one group of shards."""
DEPLOY_TIME = 10 * MINUTE
"""How long before the trigger other functions may have known of a group of shards."""


def groups_of(shards: int) -> range:
    """Numbers of the groups that so many shards make."""
    return range(-(-shards // GROUP_SIZE))


def shards_in(group: int, shards: int) -> range:
    """Numbers of the shards in a group."""
    return range(group * GROUP_SIZE, min((group + 1) * GROUP_SIZE, shards))
