"""What was decided when a clock was changed, in words."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import TYPE_CHECKING

from duetime.domain.schedules.wall_times import Wall, clock_text, datetime_of, day_of
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.time_zones import Zone
    from duetime.domain.times import Millis


def written(wall: Wall, offset: Millis) -> str:
    """A wall time that need not exist, with an offset, as an occurrence's key is written."""
    moment = datetime_of(wall).replace(tzinfo=timezone(timedelta(milliseconds=offset)))
    return moment.isoformat(timespec="milliseconds" if wall % SECOND else "seconds")


def gap_note(walls: Sequence[Wall], count: int, zone: Zone, decision: str) -> str:
    """What happened to wall times that a clock jumped over.

    Args:
        walls: the first of them.
        count: how many there are.
        zone: whose clock it is.
        decision: what happens to them.
    """
    named = ", ".join(clock_text(wall) for wall in walls)
    more = f" and {count - len(walls)} more" if count > len(walls) else ""
    verb = "does" if count == 1 else "do"
    return f"{named}{more} {verb} not exist on {day_of(walls[0])} in {zone.name}: {decision}"


def twice(wall: Wall, zone: Zone) -> str:
    """That a clock shows a wall time twice."""
    return f"{clock_text(wall)} comes twice on {day_of(wall)} in {zone.name}"
