"""What AWS is assumed to charge, as far as the dashboard calculates with it.

The price table is the client's (`duetime_client.prices`), which this distribution does not need: a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass

from duetime.domain.tasks.costs import ASSUMED


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for one of each: public on-demand list prices for us-east-1, without free tiers, plans and taxes."""

    write_unit: float = ASSUMED.write_unit
    read_unit: float = 0.125 / 1_000_000
    queue_request: float = 0.40 / 1_000_000
    function_request: float = 0.20 / 1_000_000
    gigabyte_second: float = ASSUMED.gigabyte_second


PRICES = Prices()
