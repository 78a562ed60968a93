"""Counts tasks from the table's stream, counting each write once, and reads the counts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING

from duetime.domain.errors import SummaryOff, Unavailable
from duetime.domain.operating_parameters import SUMMARY_KNOWN, SUMMARY_OWNERS_AT_ONCE, SUMMARY_TYPES_AT_ONCE
from duetime.domain.summary import Generation, Summary, added, are_old, first_of_types, steps_of
from duetime.domain.times import MINUTE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.change_events import ChangeBatch
    from duetime.domain.summary import Group, Step, StepSet
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import SummaryRecounts, SummaryStore


_TRIES = 20
"""How often a set of steps is tried again if another process counts at the same time."""
_OWNERS_KNOWN = 10_000
"""Number of owners that a process remembers as already listed."""


class SummaryCounter:
    """`duetime.ports.change_consumers.ChangeConsumer` that keeps the counts up to date.

    Args:
        store: store of the counts.
        runtime: counts several sets in parallel.
        spread: number of parts that each owner's counts are split into.
        generations: provides the current generation of the counts.
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
        """Count changes that are not counted yet.

        Raises:
            Unavailable: some changes are not counted; a repeat of the batch counts the rest.
        """
        # Sets of the same part are written one after another, because their transactions would conflict.
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
        raise Unavailable(f"the steps of {of.owner} could not be counted: too many concurrent writes")


class SummaryRecounter:
    """Recounts older tasks, and begins a new generation of counts when changes may have been lost.

    Args:
        store: store of generations and recounts.
        counts: store of the counts.
        spread: number of parts that each owner's counts are split into.
        generations: begins new generations.
        runtime: clock; writes counts in parallel.
        pages: maximum megabytes of the table that one run reads; 0 means no recounts.
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
        """Begin a new generation at an operator's request."""
        self._generations.begin_next("an operator requested it")

    def run(self) -> None:
        """Count one part of the table, if a part is due.

        Raises:
            Unavailable: the store did not answer; the part is counted again later.
        """
        stored = self._store.generation() if self._pages else None
        if stored is None:
            return
        now = self._runtime.now()
        if stored.was_unread(now):
            self._generations.begin_next("changes were not read for a long time")
            return
        begun = stored.advanced(now)
        has_part = begun is not None and begun.recounting is not None and begun.recounting.busy_since == now
        if not has_part and stored.lets_counts_expire(now):
            self._expire_counts(begun or stored, now)
        # If two runs are concurrent, only one of the runs stores its start.
        elif begun is not None and self._store.save(begun, self._runtime.nonce()) and has_part:
            self._count_part()

    def _expire_counts(self, present: Generation, now: Millis) -> None:
        """Set an expiry for some owners' counts of ended generations; repeating the call is safe."""
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
        assert generation.recounting is not None  # noqa: S101 - checked by `_count_part`
        self._store.add_older(generation, generation.recounting, *key, numbers)


_GENERATION_TRIES = 20
"""How often the generation is read again after a concurrent write."""
_FIRST_CHANGES = MINUTE
"""A task that was created at least this long before the first change was not counted through its changes."""


class Generations:
    """Caches the generation of the counts for a minute, and begins the next generation.

    Args:
        store: store of the generations.
        runtime: clock.
        is_recounting: whether older tasks are recounted; if not, tasks are counted only by their changes.
    """

    def __init__(self, store: SummaryRecounts, runtime: Runtime, *, is_recounting: bool) -> None:
        self._store = store
        self._runtime = runtime
        self._is_recounting = is_recounting
        self._known: tuple[Millis, Generation] | None = None

    def present(self, first_change: Millis) -> Generation:
        """The generation in which changes are counted now.

        Args:
            first_change: time of the earliest change.
        """
        now = self._runtime.now()
        if self._known is None or now - self._known[0] >= SUMMARY_KNOWN:
            self._known = now, self._store.generation() or self._first(first_change)
        return self._known[1]

    def begin_next(self, why: str) -> Generation:
        """Begin a new generation, unless the current generation has only just begun.

        Raises:
            Unavailable: too many concurrent writes.
        """
        for _ in range(_GENERATION_TRIES):
            now = self._runtime.now()
            stored = self._store.generation() or Generation(0, 0, now)
            if stored.since > now or not self._is_recounting:
                return stored
            if self._store.save(stored.next(now), self._runtime.nonce()):
                self._runtime.telemetry.note("the counts of tasks restart", reason=why)
                self._known = None
        raise Unavailable("the generation of the counts could not be stored: too many concurrent writes")

    def _first(self, first_change: Millis) -> Generation:
        """The first generation, which counts all tasks if no task existed before the changes that are read."""
        now = self._runtime.now()
        fresh = Generation(0, 0, now)
        if self._is_recounting and not self._store.is_fresh(first_change - _FIRST_CHANGES):
            fresh = fresh.next(now)
        self._store.save(fresh, self._runtime.nonce())
        stored = self._store.generation()
        if stored is None:
            raise Unavailable("the generation of the counts was not stored")
        return stored


class SummaryReader:
    """Reads the parts of an owner's counts in parallel.

    Args:
        store: store of the counts.
        recounts: recounts of older tasks.
        runtime: clock; reads parts in parallel.
        spread: number of parts that each owner's counts are split into; 0 if counting is off.
    """

    def __init__(self, store: SummaryStore, recounts: SummaryRecounts, runtime: Runtime, spread: int) -> None:
        self._store = store
        self._recounts = recounts
        self._runtime = runtime
        self._spread = spread

    def read(self, owner: str) -> Summary:
        """An owner's counts.

        Raises:
            SummaryOff: counting is off in the settings.
        """
        return self._read(owner, self._generation())

    def read_owners(self, after: str, limit: int) -> tuple[Sequence[tuple[str, Summary]], str | None]:
        """The counts of the owners whose names follow the given owner, in order of name.

        Returns:
            The counts, and the last owner if another page may follow.

        Raises:
            SummaryOff: counting is off in the settings.
        """
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
