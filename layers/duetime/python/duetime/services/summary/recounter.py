"""Counts the tasks that are not counted by their changes, some pages of the table at a time."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import SUMMARY_OWNERS_AT_ONCE

if TYPE_CHECKING:
    from duetime.domain.summary.counts import Group
    from duetime.domain.summary.recount import Generation
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.summary import SummaryRecounts, SummaryStore
    from duetime.services.summary.generations import Generations


class SummaryRecounter:
    """Recounts older tasks, and begins a new generation of counts when changes may have been lost.

    Args:
        store: of generations and recounts.
        counts: of what changes tell of.
        spread: into how many parts each owner's counts are split.
        generations: begins new ones.
        runtime: the time; writes several counts at once.
        pages: the most megabytes of the table that one run reads; 0: nothing is recounted.
    """

    def __init__(
        self,
        store: SummaryRecounts,
        counts: SummaryStore,
        spread: int,
        generations: Generations,
        runtime: Runtime,
        pages: int,
    ) -> None:
        self._store = store
        self._counts = counts
        self._spread = spread
        self._generations = generations
        self._runtime = runtime
        self._pages = pages

    def begin_anew(self) -> None:
        """Begin a new generation: whoever runs duetime has asked for it."""
        self._generations.begin_next("it was asked for")

    def run(self) -> None:
        """Count one part of the table, if that is due.

        Raises:
            Unavailable: the store fails. What was begun is begun anew later.
        """
        stored = self._store.generation() if self._pages else None
        if stored is None:
            return
        now = self._runtime.now()
        if stored.was_unread(now):
            self._generations.begin_next("changes were not read for long")
            return
        begun = stored.advanced(now)
        has_part = begun is not None and begun.recounting is not None and begun.recounting.busy_since == now
        if not has_part and stored.lets_counts_expire(now):
            self._expire_counts(begun or stored, now)
        # Of two at once, one stores what it begins.
        elif begun is not None and self._store.save(begun, self._runtime.nonce()) and has_part:
            self._count_part()

    def _expire_counts(self, present: Generation, now: Millis) -> None:
        """Let the counts of ended generations expire, of some owners; done twice, it is done once."""
        owners = self._store.owners(present.ended_counts.owner, SUMMARY_OWNERS_AT_ONCE)
        parts = product(owners, range(self._spread))
        self._runtime.executor.map(lambda each: self._counts.expire_counts(*each, present.number, now), parts)
        last = owners[-1] if len(owners) == SUMMARY_OWNERS_AT_ONCE else ""
        self._store.save(present.after_ended_counts(last), self._runtime.nonce())

    def _count_part(self) -> None:
        present = self._store.generation()
        if present is None or present.recounting is None:
            return
        read = self._store.older_tasks(present.recounting.cursor, present.since, self._pages)
        by_type: dict[tuple[str, str], dict[Group, int]] = defaultdict(dict)
        for (owner, group), number in read.counts.items():
            by_type[owner, group.type][group] = number
        self._runtime.executor.map(self._store.list_owner, sorted({owner for owner, _ in by_type}))
        self._runtime.executor.map(lambda each: self._add(present, *each), by_type.items())
        self._store.save(present.after_part(read), self._runtime.nonce())

    def _add(self, generation: Generation, key: tuple[str, str], numbers: dict[Group, int]) -> None:
        assert generation.recounting is not None  # noqa: S101 - `_count_part` has checked it
        self._store.add_older(generation, generation.recounting, *key, numbers)
