"""What an attempt costs, estimated: by assumed prices, for a worker that does nothing else meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class Prices:
    """What a cloud asks for what an attempt uses.

    Attributes:
        write_unit: dollars for one write unit of the table.
        gigabyte_second: dollars for a second of a worker with one gigabyte of memory.
        as_of: the day they are of.
        source: where they come from.
    """

    write_unit: float
    gigabyte_second: float
    as_of: str
    source: str


ASSUMED = Prices(
    write_unit=0.625 / 1_000_000,
    gigabyte_second=0.0000133334,
    as_of="2026-11-21",
    source="AWS public on-demand list prices for us-east-1 (DynamoDB; Lambda on arm64), as assumed: check yours",
)
"""Free tiers, savings plans and taxes are left out."""
ATTEMPT_WRITE_UNITS = 2
"""Its claim and its end; heartbeats, a `prepare` and a deferral are one each, and are not counted."""
WORKER_GIGABYTES = 1.0
"""Memory of a worker: the cloud gives it as much."""
_DECIMALS = 12


def dollars_of(took: Millis, prices: Prices = ASSUMED) -> float:
    """What one attempt of so many milliseconds costs at the most: other tasks of its batch share its worker."""
    time = took / SECOND * WORKER_GIGABYTES * prices.gigabyte_second
    return round(ATTEMPT_WRITE_UNITS * prices.write_unit + time, _DECIMALS)
