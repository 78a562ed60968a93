"""Reads the counts of tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.errors import SummaryOff
from duetime.domain.summary import Summary, added

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.admins import Admins
    from duetime.domain.summary import Generation
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import SummaryRecounts, SummaryStore


class SummaryReader:
    """Reads the parts of an owner's counts in parallel.

    Args:
        store: store of the counts.
        recounts: recounts of older tasks.
        runtime: clock; reads parts in parallel.
        spread: number of parts that each owner's counts are split into; 0 if counting is off.
        operators: who may see the counts of all owners.
    """

    def __init__(
        self, store: SummaryStore, recounts: SummaryRecounts, runtime: Runtime, spread: int, operators: Admins
    ) -> None:
        self._store = store
        self._recounts = recounts
        self._runtime = runtime
        self._spread = spread
        self._operators = operators

    def read(self, owner: str) -> Summary:
        """An owner's counts.

        Raises:
            SummaryOff: counting is off in the settings.
        """
        return self._read(owner, self._generation())

    def read_owners(self, caller: str, after: str, limit: int) -> tuple[Sequence[tuple[str, Summary]], str | None]:
        """The counts of the owners after the given one, in order of name.

        Returns:
            The counts, and the last owner if there may be another page.

        Raises:
            SummaryOff: counting is off in the settings.
            OperatorRequired: the caller may not see them.
        """
        self._operators.require(caller)
        generation = self._generation()
        owners = self._recounts.owners(after, limit)
        found = [(owner, self._read(owner, generation)) for owner in owners]
        return found, owners[-1] if len(owners) == limit else None

    def _generation(self) -> Generation | None:
        if not self._spread:
            raise SummaryOff
        return self._recounts.generation()

    def _read(self, owner: str, generation: Generation | None) -> Summary:
        number = generation.number if generation else 0
        parts = self._runtime.executor.map(lambda part: self._store.read(owner, part, number), range(self._spread))
        if generation is None or not generation.since:
            return added(parts)
        recount = generation.recounted
        if recount is not None and recount.found:
            parts.append(self._recounts.read_older(generation, recount, owner))
        return replace(
            (found := added(parts)),
            is_complete=found.is_complete and generation.is_complete(self._runtime.now()),
            counted_since=generation.since,
            recounted_at=None if recount is None else recount.started_at,
        )
