"""Measures the delay of live updates on a local stack, from the request that creates a task to the update's arrival.

Usage: `python -m bench.live_update_delay [changes]`

The first change is not counted, because it includes cold starts of functions. No test checks the printed figures.
"""

from __future__ import annotations

import sys
import time
from statistics import quantiles
from threading import Thread

from rich.console import Console

from duetime_client import Client
from duetime_client.live_connection import WebSocketConnection
from duetime_local import stack
from duetime_local.terminal import Display

CHANGES = 200
_PACE = 0.1
_PATIENCE = 20.0


def main(changes: int) -> None:
    """Create tasks one after another, and print percentiles of the delays."""
    with stack.running(Display(Console(quiet=True)), port=0) as running, Client(running.ready.api_url) as client:
        ticket = client.watch_tickets.create()
        with WebSocketConnection(ticket.address) as connection:
            connection.send({"do": "subscribe", "ref": "1", "topic": "mine"})
            arrived: dict[str, float] = {}
            sent: dict[str, float] = {}
            first = client.tasks.create("duetime.probe", delay_seconds=7200).id
            _listen(connection, arrived, 1)
            listener = Thread(target=_listen, args=(connection, arrived, changes + 1), daemon=True)
            listener.start()
            for _ in range(changes):
                began = time.monotonic()
                sent[client.tasks.create("duetime.probe", delay_seconds=7200).id] = began
                time.sleep(_PACE)
            listener.join(_PATIENCE)
    arrived.pop(first, None)
    waits = sorted(1000 * (arrived[id_] - sent[id_]) for id_ in sent.keys() & arrived.keys())
    cuts = quantiles(waits, n=100)
    sys.stdout.write(
        f"{len(waits)} of {changes} changes arrived; p50 {cuts[49]:.0f} ms, p99 {cuts[98]:.0f} ms,"
        f" most {waits[-1]:.0f} ms\n"
    )


def _listen(connection: WebSocketConnection, arrived: dict[str, float], changes: int) -> None:
    end = time.monotonic() + changes * (_PACE + 0.2) + _PATIENCE
    while len(arrived) < changes and time.monotonic() < end:
        frame = connection.receive(timeout=1.0) or {}
        for change in frame.get("changes", ()):
            arrived.setdefault(change["id"], time.monotonic())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else CHANGES)
