"""Compares designs for sparse traffic by the price table: `python -m bench.thin_traffic_designs`.

The load is a million tasks a month, each of which is posted alone, due alone and sent by the trigger. Usage that a
design does not change is counted by `bench.thin_traffic`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime_common.cost_estimate import TICKS
from duetime_common.prices import DEFAULT_REGION, MILLION, PRICES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_common.prices import Prices

TABLE_WRITES, TABLE_READS = 4, 0.5
API_GIGABYTE_SECONDS = 0.005
RUN = 0.016
"""Seconds of a worker without holding the task, which are those of its AWS calls in virtual time."""
SENT_ALONE, SENT_TOGETHER = 0.37, 0.12
"""Requests per message for sending, with each message at its own time, or in batches of up to ten."""
DELIVERY = 3
"""Requests per message for receiving, hiding and deleting it."""
ALIGNED_WAIT = 0.92
"""Seconds that a tick waits for the best moments of 23 tasks."""
MINUTE_OF_TRIGGER = 60.0


@dataclass(frozen=True, slots=True)
class Design:
    """A design for starting tasks on time.

    Attributes:
        name: description.
        early: average seconds by which a message arrives before its due time.
        holder, worker: memory in GB of the function that holds tasks and of the function that runs them.
        queue_requests: number of queue requests per message.
        invocations: number of invocations per task, without the API's.
        tick_seconds: additional seconds of a trigger tick (1 GB).
        lateness: the design's effect on lateness, as text.
    """

    name: str
    early: float
    holder: float
    worker: float
    queue_requests: float = SENT_TOGETHER + DELIVERY
    invocations: int = 1
    tick_seconds: float = 0.0
    lateness: str = "as before"

    def dollars(self, prices: Prices) -> float:
        """Dollars per million tasks."""
        held = self.early * self.holder + RUN * self.worker
        waited = self.tick_seconds * TICKS / MILLION
        each = (
            TABLE_WRITES * prices.write_unit
            + TABLE_READS * prices.read_unit
            + self.queue_requests * prices.queue_request
            + prices.api_request
            + (1 + self.invocations) * prices.function_request
            + (held + waited + API_GIGABYTE_SECONDS) * prices.gigabyte_second
        )
        return each * MILLION


ALONE = SENT_ALONE + DELIVERY
DESIGNS = (
    Design("original: a worker of 1 GB holds tasks for 0.35 to 1.35 s", 0.85, 1.0, 1.0),
    Design("a worker of 512 MB", 0.85, 0.5, 0.5, lateness="as before; half the processor for a full batch"),
    Design("a worker of 256 MB", 0.85, 0.25, 0.25, lateness="a full batch begins about 0.1 s late; slow imports"),
    Design(
        "a function of 128 MB holds, and invokes the worker", 0.85, 0.125, 1.0, invocations=2,
        lateness="an asynchronous invocation later",
    ),
    Design(
        "the trigger runs all the time, holds, and invokes the worker", 0.0, 1.0, 1.0, queue_requests=0,
        tick_seconds=MINUTE_OF_TRIGGER, lateness="an invocation later; a lost worker leaves no message",
    ),
    Design("the trigger sends at the best moment, 0.35 s early", 0.40, 1.0, 1.0, ALONE, tick_seconds=ALIGNED_WAIT),
    Design("the same, 0.15 s early", 0.19, 1.0, 1.0, ALONE, tick_seconds=ALIGNED_WAIT),
    Design("the same, with a worker of 512 MB", 0.19, 0.5, 0.5, ALONE, tick_seconds=ALIGNED_WAIT),
    Design(
        "**built**: the same, 0.06 s early", 0.10, 0.5, 0.5, ALONE, tick_seconds=ALIGNED_WAIT,
        lateness="45 ms late if the delivery takes 105 ms, the 99th percentile",
    ),
    Design("`relaxed`, with a worker of 512 MB", 0.0, 0.5, 0.5, lateness="up to a second, half of one on average"),
)  # fmt: skip
"""The designs, in the order in which the page shows them."""


def table() -> Iterator[str]:
    """Yield the comparison as lines of Markdown."""
    prices = PRICES[DEFAULT_REGION]
    yield "| design | dollars per million | lateness |"
    yield "|---|---|---|"
    for design in DESIGNS:
        yield f"| {design.name} | {design.dollars(prices):.2f} | {design.lateness} |"


if __name__ == "__main__":
    print("\n".join(table()))
