"""Counts tasks by what the table's stream tells, each write once."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import SUMMARY_TYPES_AT_ONCE
from duetime.domain.summary.counts import first_of_types, steps_of
from duetime.domain.summary.recount import are_old

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.changes.changes import ChangeBatch
    from duetime.domain.summary.counts import Step, StepSet
    from duetime.domain.summary.recount import Generation
    from duetime.ports.runtime import Runtime
    from duetime.ports.summary import SummaryRecounts, SummaryStore
    from duetime.services.summary.generations import Generations

_TRIES = 20
"""How often a set of steps is read again because somebody else has counted."""
_OWNERS_KNOWN = 10_000
"""How many owners a process remembers to be in the list."""


class SummaryCounter:
    """`duetime.ports.change_consumers.ChangeConsumer` that keeps the counts right.

    Args:
        store: of the counts.
        runtime: counts several sets at once.
        spread: into how many parts each owner's counts are split.
        generations: of the counts.
        recounts: keeps the list of owners.
    """

    name = "summary"

    def __init__(
        self,
        store: SummaryStore,
        runtime: Runtime,
        spread: int,
        generations: Generations,
        recounts: SummaryRecounts,
    ) -> None:
        self._store = store
        self._runtime = runtime
        self._spread = spread
        self._generations = generations
        self._recounts = recounts
        self._listed: set[str] = set()

    def consume(self, changes: ChangeBatch) -> None:
        """Count what is not counted yet.

        Raises:
            Unavailable: some of it is not counted; whoever repeats the batch counts the rest.
        """
        # Sets of the same part are written one after the other: they would refuse each other's transactions.
        parts: dict[tuple[str, int], list[tuple[StepSet, list[Step]]]] = {}
        for of, steps in self._steps(changes).items():
            parts.setdefault((of.owner, of.part), []).append((of, steps))
        self._list_owners({owner for owner, _ in parts})
        self._runtime.executor.map(self._count_part, parts.values())

    def _steps(self, changes: ChangeBatch) -> Mapping[StepSet, list[Step]]:
        if not steps_of(changes.tasks, self._spread):
            return {}
        first_change = min(change.at for change in changes.tasks)
        found = self._steps_in(self._generations.present(first_change), changes)
        if not are_old(chain.from_iterable(found.values()), self._runtime.now()):
            return found
        return self._steps_in(self._generations.begin_next("changes are read late"), changes)

    def _steps_in(self, generation: Generation, changes: ChangeBatch) -> Mapping[StepSet, list[Step]]:
        return steps_of(changes.tasks, self._spread, generation.number, generation.since)

    def _list_owners(self, owners: set[str]) -> None:
        if new := sorted(owners - self._listed):
            self._runtime.executor.map(self._recounts.list_owner, new)
            self._listed = owners if len(self._listed) > _OWNERS_KNOWN else self._listed | owners

    def _count_part(self, sets: list[tuple[StepSet, list[Step]]]) -> None:
        for of, steps in sets:
            self._count(of, steps)

    def _count(self, of: StepSet, steps: list[Step]) -> None:
        for _ in range(_TRIES):
            counted = self._store.counted(of)
            if counted.is_full and (narrower := of.narrowed(counted.missing(steps))):
                self._count_part(list(narrower.items()))
                return
            while missing := counted.missing(steps):
                first = first_of_types(missing, SUMMARY_TYPES_AT_ONCE)
                if not self._store.count(of, counted, first, self._runtime.nonce()):
                    break
                counted = counted.followed_by(first)
            else:
                return
        raise Unavailable(f"the steps of {of.owner} could not be counted: others count all the time")
