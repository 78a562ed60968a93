"""The store of task counts.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.summary.counts import CountedSteps, Step, StepSet, Summary


class SummaryStore(Protocol):
    """The counts of each owner's tasks, in parts, and which steps are in them."""

    def counted(self, of: StepSet) -> CountedSteps:
        """Read which steps of a set are counted, consistently."""
        ...

    def count(self, of: StepSet, counted: CountedSteps, steps: Sequence[Step], nonce: str) -> bool:
        """Add steps to the counts and remember them, both or neither, if the set is still as it was read.

        Args:
            of: the set.
            counted: as it was read; none of the steps is in it.
            steps: about no more than `MOST_TYPES` types.
            nonce: of this write.

        Returns:
            Whether they are counted. If not, somebody else has counted, or counts at the same time: read again.
        """
        ...

    def read(self, owner: str, part: int) -> Summary:
        """Read one part of an owner's counts, eventually consistently."""
        ...
