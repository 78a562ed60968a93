"""Tells apart resources that were deleted and created again under the same name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Incarnation:
    """What is under a name, as it was read: a write names it, and is rejected if that is no longer so.

    Attributes:
        number: grows with every write, deletions included; 0 for a name that nothing has had lately.
        created: the number of the write that created what is there; 0 if the name is vacant.
    """

    number: int = 0
    created: int = 0

    @property
    def next(self) -> Incarnation:
        """After a write that leaves something under the name."""
        return Incarnation(self.number + 1, self.created or self.number + 1)
