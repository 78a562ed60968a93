"""Lists all pairs of operations, divides the pairs into parts, and runs them in parallel."""

from __future__ import annotations

import gc
import logging
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from tests.pairs.exploring import Exploration, Found, Memory
from tests.pairs.interleaving import CallFault, Interleaving, Pair
from tests.pairs.interleaving_report import told
from tests.pairs.subject_list import SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.parts import Part

_BETWEEN_COLLECTIONS = 5
"""The number of pairs between two garbage collections."""
_NO_CALL = "-"


@dataclass(frozen=True)
class Explored:
    """The outcome of a pair.

    Attributes:
        told: a description of each interleaving that violated an invariant.
    """

    pair: str
    runs: int
    known: int
    calls: int
    told: list[str]


@dataclass
class Summary:
    """The outcomes of all pairs, added up."""

    pairs: int = 0
    runs: int = 0
    known: int = 0
    calls: int = 0
    broken: int = 0
    broken_pairs: int = 0
    subjects: set[str] = field(default_factory=set)

    def add(self, explored: Explored) -> None:
        """Count one more pair."""
        self.pairs += 1
        self.runs += explored.runs
        self.known += explored.known
        self.calls += explored.calls
        self.broken += len(explored.told)
        self.broken_pairs += bool(explored.told)
        self.subjects.add(explored.pair.partition(" ")[0])


@cache
def every_pair() -> dict[str, Pair]:
    """All pairs by name; each operation of a subject is first in some pairs and second in other pairs."""
    # The two pairs with the same operations follow each other, because they share the results of their orders.
    pairs = [
        Pair(each, *operations)
        for each in SUBJECTS
        for both in combinations_with_replacement(each.operations, 2)
        if both[0].not_beside != both[1].name and both[1].not_beside != both[0].name
        for operations in (both, both[::-1])
    ]
    return {str(pair): pair for pair in pairs}


def chosen(part: Part, only: str = "") -> list[str]:
    """The names of the pairs in one part; a pair's part depends only on its subject and its operations."""
    return [name for name in every_pair() if part.has(_in_any_order(name)) and re.search(only, name)]


def _in_any_order(name: str) -> str:
    subject, *operations = name.split()
    return " ".join([subject, *sorted(operations)])


def spread(names: Sequence[str], jobs: int, *, with_faults: bool) -> Iterator[Explored]:
    """Explore pairs in this many processes, and return the results in the order of the pairs."""
    explore = partial(explored, with_faults=with_faults)
    if jobs == 1:
        make_ready()
        yield from map(explore, names)
        return
    processes = ProcessPoolExecutor(jobs, initializer=make_ready)
    try:
        yield from processes.map(explore, names, chunksize=4)
    finally:
        # Wait for running processes, so that their pipes are closed before the interpreter ends.
        processes.shutdown(cancel_futures=True)


def make_ready() -> None:
    """Disable logs, and collect garbage rarely, because most objects in a run are used until its end."""
    logging.disable(logging.CRITICAL)
    gc.collect()
    gc.freeze()
    gc.disable()


_MEMORIES: dict[str, Memory] = {}
_EXPLORED: list[str] = []


def explored(name: str, *, with_faults: bool = True) -> Explored:
    """Explore one pair."""
    pair = every_pair()[name]
    memory = _MEMORIES.setdefault(pair.subject.name, Memory())
    exploration = Exploration(pair, tuple(CallFault) if with_faults else (), memory)
    found = [told(each) for each in exploration.found()]
    _EXPLORED.append(name)
    if len(_EXPLORED) % _BETWEEN_COLLECTIONS == 0:
        gc.collect()
    return Explored(name, exploration.runs, exploration.known, exploration.calls, found)


def interleaving_named(name: str) -> Found:
    """Run the interleaving named in a violation, and the orders with which it is compared."""
    subject, first, second, k, m, fault = name.split()
    pair = every_pair()[f"{subject} {first} {second}"]
    made = None if fault == _NO_CALL else CallFault(fault)
    return Exploration(pair).alone(Interleaving(pair, _call(k), _call(m), made))


def _call(text: str) -> int | None:
    return None if text == _NO_CALL else int(text)
