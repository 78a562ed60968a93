"""Measures one machine's capacity, and checks that no task is lost under overload: `make load`.

The program starts its own stack on the loopback interface, and takes a few minutes.
"""

from __future__ import annotations

import argparse
import sys
from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from bench.load.api_cpu_time import served
from bench.load.load_step import Offer, StepResult, made
from bench.load.lost_task_check import DurabilityCheck, kept
from bench.load.throttled_stack import narrow_gateway, table_of_any_width
from duetime_client import Client
from duetime_local import stack
from duetime_local.terminal import Display

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bench.load.api_cpu_time import Served
    from duetime_local.stack import Stack

STEPS = (25, 50, 75, 100, 125, 150, 200, 250, 300, 400)
"""Request rates per second, which are tried in this order until a rate exceeds the capacity."""
CARRIED = 0.9
"""The share of offered requests that must be served for a rate to count as within capacity."""
CARRIED_MS = 1000.0
"""The maximum 99th-percentile response time, in milliseconds, for a rate to count as within capacity."""
OVERLOAD = 3
"""Offered rate under overload, as a multiple of the throttled rate."""
SOON_SECONDS = 30
ALONE = 2_000
"""Number of requests of each kind for measuring the handler alone."""
TOO_MANY, UNAVAILABLE = HTTPStatus.TOO_MANY_REQUESTS.value, HTTPStatus.SERVICE_UNAVAILABLE.value


def main() -> int:
    """Run the load tests, show tables, and return 1 if a task was lost or a response was unexpected."""
    parser = argparse.ArgumentParser(prog="load", description="Load a local stack, and overload it.")
    parser.add_argument("--seconds", type=int, default=12, help="seconds per step")
    parser.add_argument("--most", type=int, default=STEPS[-1], help="highest rate to try, in requests a second")
    asked = parser.parse_args()
    console = Console()
    console.print(_handled(served(ALONE)))
    with stack.running(Display(console), port=0) as over:
        url = over.ready.api_url
        ids = _warmed_up(url)
        steps = [step for step in STEPS if step <= asked.most]
        creates = list(_climbed(url, steps, Offer("Creator", 0, asked.seconds)))
        polls = list(_climbed(url, [2 * step for step in steps], Offer("Poller", 0, asked.seconds, ids=ids)))
        console.print(_table("Capacity", chain(creates, polls)))
        let_through = max(5.0, 0.5 * max((came.per_second for came in creates if _is_carried(came)), default=0))
        squeezed = list(_squeezed(over, let_through, asked.seconds))
    console.print(_table("Load of three times the throttled rate", (came for came, _ in squeezed)))
    for came, found in squeezed:
        console.print(f"of {len(came.accepted)} accepted tasks {found.ended} ended, {found.lost} are lost")
    return int(any(_is_broken(came, found) for came, found in squeezed))


def _warmed_up(url: str) -> Sequence[str]:
    """Warm up the API's processes, so that results include no cold starts, and return the created ids."""
    return made(url, Offer("Creator", 32, 8)).accepted


def _climbed(url: str, steps: list[int], offer: Offer) -> Iterator[StepResult]:
    """Yield the results of increasing request rates until a rate exceeds the capacity."""
    for step in steps:
        came = made(url, Offer(offer.kind, step, offer.seconds, ids=offer.ids))
        yield came
        if not _is_carried(came):
            return


def _is_carried(came: StepResult) -> bool:
    return came.per_second >= CARRIED * came.offer.per_second and came.done.p99_ms <= CARRIED_MS


def _squeezed(over: Stack, rate: float, seconds: int) -> Iterator[tuple[StepResult, DurabilityCheck]]:
    """Overload a throttled gateway, then a throttled table, and check whether the accepted tasks have ended."""
    url = over.ready.api_url
    offer = Offer("Creator", OVERLOAD * rate, seconds, delay_seconds=SOON_SECONDS)
    with Client(url) as client:
        with narrow_gateway(over, rate, int(rate)):
            came = made(url, offer)
        yield came, kept(client, came.accepted)
        with table_of_any_width(over) as narrow:
            _warmed_up(url)
            narrow(rate)
            came = made(url, offer)
        yield came, kept(client, came.accepted)


def _is_broken(came: StepResult, found: DurabilityCheck) -> bool:
    """Return whether an accepted task has not ended, no request was throttled, or an unexpected response occurred."""
    promised = {HTTPStatus.CREATED.value, TOO_MANY, UNAVAILABLE}
    turned_away = came.counted(TOO_MANY, UNAVAILABLE)
    return found.ended < len(came.accepted) or not turned_away or not set(came.answers) <= promised


def _handled(rows: Iterable[Served]) -> Table:
    table = Table("what", "CPU ms", "with DynamoDB ms", "a second and core", title="The api function's handler alone")
    for one in rows:
        table.add_row(one.what, f"{one.cpu_ms:.1f}", f"{one.whole_ms:.1f}", f"{one.per_core:.0f}")
    return table


def _table(title: str, rows: Iterable[StepResult]) -> Table:
    table = Table(
        "what", "asked/s", "done/s", "p50 ms", "p99 ms", "429", "503", "with Retry-After", "other", title=title
    )
    for came in rows:
        done = came.done
        usual = {came.wanted, TOO_MANY, UNAVAILABLE}
        others = ", ".join(f"{one.count} x {status}" for status, one in came.answers.items() if status not in usual)
        cells = (
            came.offer.per_second,
            came.per_second,
            done.p50_ms,
            done.p99_ms,
            came.counted(TOO_MANY),
            came.counted(UNAVAILABLE),
            sum(count.coming_back for count in came.answers.values()),
        )
        what = "creates" if came.offer.kind == "Creator" else "polls"
        table.add_row(what, *(f"{cell:.0f}" for cell in cells), others or "none")
    return table


if __name__ == "__main__":
    sys.exit(main())
