"""Tells an owner how many tasks there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import SummaryOff
from duetime.domain.summary.counts import Summary, added

if TYPE_CHECKING:
    from duetime.ports.runtime import Executor
    from duetime.ports.summary import SummaryStore


class SummaryReader:
    """Reads the parts of an owner's counts at once.

    Args:
        store: of the counts.
        executor: reads several parts at once.
        spread: into how many parts each owner's counts are split; 0 if nothing is counted.
    """

    def __init__(self, store: SummaryStore, executor: Executor, spread: int) -> None:
        self._store = store
        self._executor = executor
        self._spread = spread

    def read(self, owner: str) -> Summary:
        """An owner's counts.

        Raises:
            SummaryOff: the settings have nothing counted.
        """
        if not self._spread:
            raise SummaryOff
        return added(self._executor.map(lambda part: self._store.read(owner, part), range(self._spread)))
