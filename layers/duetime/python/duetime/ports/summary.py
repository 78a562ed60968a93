"""The store of task counts.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.summary import CountedSteps, Generation, Group, OlderTasks, Recount, Step, StepSet, Summary
    from duetime.domain.times import Millis


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

    def read(self, owner: str, part: int, generation: int = 0) -> Summary:
        """Read one part of an owner's counts, eventually consistently."""
        ...

    def expire_counts(self, owner: str, part: int, generation: int, expires_at: Millis) -> None:
        """Give one part of an owner's counts of all generations before this one a time to live. Safe to resend."""
        ...


class SummaryRecounts(Protocol):
    """The generations of the counts, and what recounts of the table find."""

    def generation(self) -> Generation | None:
        """Read the generation of the counts, consistently; `None` if nothing was ever counted."""
        ...

    def save(self, generation: Generation, nonce: str) -> bool:
        """Store the generation's next version, if it is still as it was read.

        Returns:
            Whether it is stored.
        """
        ...

    def is_fresh(self, at: Millis) -> bool:
        """Whether the table is small, and has no task that was created before a time."""
        ...

    def older_tasks(self, cursor: str, since: Millis, pages: int) -> OlderTasks:
        """Read a part of the table, for tasks that were created before a time, eventually consistently.

        Args:
            cursor: where the part begins; empty for the beginning of the table.
            since: the time.
            pages: the most megabytes to read.
        """
        ...

    def add_older(
        self, generation: Generation, recount: Recount, owner: str, type_: str, numbers: Mapping[Group, int]
    ) -> None:
        """Add what the part of a recount that is being counted found. Safe to resend."""
        ...

    def read_older(self, generation: Generation, recount: Recount, owner: str) -> Summary:
        """What a recount found of an owner's tasks, eventually consistently."""
        ...

    def list_owner(self, owner: str) -> None:
        """Have an owner in the list of those that have tasks."""
        ...

    def owners(self, after: str, limit: int) -> Sequence[str]:
        """The owners that have, or had, tasks: those behind one, in their order."""
        ...
