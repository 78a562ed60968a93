"""Invariants of bulk operations under all faults: each operation has one holder at a time, and ends permanently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime_testing.simulation.machines import SKEW, Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.fault_simulation import FaultSimulation

_STATE, _EPOCH, _LEASED_UNTIL, _COUNTS = "Z", "q", "l", "n"
_RUNNING = "running"


class BulkWatching:
    """Watches bulk operations.

    Attributes:
        ended: the number of operations that have ended.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self._holders: dict[tuple[str, int], object] = {}
        self._running: set[str] = set()
        self.ended = 0

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check a write to the table; writes of other items are ignored."""
        if new is None or not new[schema.PARTITION_KEY]["S"].startswith(schema.BULK_PREFIX):
            return
        if _EPOCH not in new:
            return  # This item belongs to an operation, but is not the operation itself.
        name, check = new[schema.SORT_KEY]["S"], self._account.watching.check
        if new[_STATE]["S"] == _RUNNING:
            self._running.add(name)
        elif name in self._running:
            self._running.discard(name)
            self.ended += 1
        if old is None:
            return
        is_over = old[_STATE]["S"] != _RUNNING
        stays = not is_over or new[_STATE] == old[_STATE]
        check(stays, f"the bulk operation {name} was {old[_STATE]['S']}, and is {new[_STATE]['S']} again")
        for before, after in zip(_counts(old), _counts(new), strict=True):
            check(before <= after, f"the bulk operation {name} counts {_counts(new)} after {_counts(old)}")
        self._check_holder(name, old, new)

    def _check_holder(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Check that only an operation's holder writes its steps, after waiting for the previous lease to end."""
        check, writer = self._account.watching.check, self._writer()
        before, after = int(old[_EPOCH]["N"]), int(new[_EPOCH]["N"])
        check(before <= after <= before + 1, f"the bulk operation {name} went from epoch {before} to {after}")
        if not isinstance(writer, Machine) or writer.function != "bulk":
            return
        if after > before:
            left = int(old[_LEASED_UNTIL]["N"]) - self._account.time.now()
            check(left <= SKEW, f"the bulk operation {name} was taken {left} ms before the end of its lease")
            self._holders[name, after] = writer
            return
        holder = self._holders.setdefault((name, after), writer)
        check(holder is writer, f"the bulk operation {name} is held by {holder}, and was written by {writer}")

    def _writer(self) -> object:
        """The machine that makes the current call; `None` in tests of pairs of operations, which have no machines."""
        try:
            return self._account.time.author().home
        except RuntimeError:
            return None

    @property
    def are_running(self) -> bool:
        """Whether an operation has not ended yet."""
        return bool(self._running)

    def check_end(self) -> None:
        """Check that every operation has ended."""
        self._account.watching.check(not self._running, f"the bulk operations {sorted(self._running)} go on for ever")


def _counts(item: Mapping[str, Any]) -> list[int]:
    return [int(number) for number in item[_COUNTS]["S"].split()]
