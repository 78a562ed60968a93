"""Tells apart resources that were deleted and created again under the same name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Incarnation:
    """The resource under a name, as it was read. Writes name it, and are rejected if it has changed.

    Attributes:
        number: incremented by every write, including deletions; 0 if nothing is stored under the name.
        created: the number of the write that created the resource; 0 if there is none.
    """

    number: int = 0
    created: int = 0

    @property
    def next(self) -> Incarnation:
        """The value after a write that leaves a resource under the name."""
        return Incarnation(self.number + 1, self.created or self.number + 1)
