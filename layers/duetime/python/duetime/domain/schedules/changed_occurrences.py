"""Single occurrences that their user skips or moves.

An occurrence that is moved becomes one at its new time: it is placed, paused, missed and caught up like any other. So a
move to an earlier time needs no mechanism of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class ChangedOccurrence:
    """What a user wants of one occurrence.

    Attributes:
        nominal: the instant that the timing means; nothing runs there.
        at: when it runs instead; `None` if it does not.
    """

    nominal: Millis
    at: Millis | None = None


def changed_of(changes: Iterable[ChangedOccurrence], nominal: Millis) -> ChangedOccurrence | None:
    """The change of the occurrence of an instant."""
    return next((each for each in changes if each.nominal == nominal), None)


def moved_to(changes: Iterable[ChangedOccurrence], at: Millis) -> ChangedOccurrence | None:
    """The change that moved an occurrence to an instant."""
    return next((each for each in changes if each.at == at), None)
