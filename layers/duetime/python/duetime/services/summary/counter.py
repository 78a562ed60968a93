"""Counts tasks by what the table's stream tells, each write once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import SUMMARY_TYPES_AT_ONCE
from duetime.domain.summary.counts import first_of_types, steps_of

if TYPE_CHECKING:
    from duetime.domain.changes.changes import ChangeBatch
    from duetime.domain.summary.counts import Step, StepSet
    from duetime.ports.runtime import Runtime
    from duetime.ports.summary import SummaryStore

_TRIES = 20
"""How often a set of steps is read again because somebody else has counted."""


class SummaryCounter:
    """`duetime.ports.changes.ChangeConsumer` that keeps the counts right.

    Args:
        store: of the counts.
        runtime: counts several sets at once.
        spread: into how many parts each owner's counts are split.
    """

    name = "summary"

    def __init__(self, store: SummaryStore, runtime: Runtime, spread: int) -> None:
        self._store = store
        self._runtime = runtime
        self._spread = spread

    def consume(self, changes: ChangeBatch) -> None:
        """Count what is not counted yet.

        Raises:
            Unavailable: some of it is not counted; whoever repeats the batch counts the rest.
        """
        # Sets of the same part are written one after the other: they would refuse each other's transactions.
        parts: dict[tuple[str, int], list[tuple[StepSet, list[Step]]]] = {}
        for of, steps in steps_of(changes.tasks, self._spread).items():
            parts.setdefault((of.owner, of.part), []).append((of, steps))
        self._runtime.executor.map(self._count_part, parts.values())

    def _count_part(self, sets: list[tuple[StepSet, list[Step]]]) -> None:
        for of, steps in sets:
            self._count(of, steps)

    def _count(self, of: StepSet, steps: list[Step]) -> None:
        for _ in range(_TRIES):
            counted = self._store.counted(of)
            while missing := counted.missing(steps):
                first = first_of_types(missing, SUMMARY_TYPES_AT_ONCE)
                if not self._store.count(of, counted, first, self._runtime.nonce()):
                    break
                counted = counted.followed_by(first)
            else:
                return
        raise Unavailable(f"the steps of {of.owner} could not be counted: others count all the time")
