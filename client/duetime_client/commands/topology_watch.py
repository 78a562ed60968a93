"""Watches a topology until it has ended, with a live picture on a terminal and with lines elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from duetime_client.commands.output_streams import console, printable
from duetime_client.commands.topology_views import Picture, progress_line

if TYPE_CHECKING:
    from rich.console import Console

    from duetime_client.client import Client
    from duetime_client.commands.clock import Clock
    from duetime_client.topologies import Topology

_DRAWN_A_SECOND = 4


def watched(client: Client, topology_id: str, clock: Clock) -> Topology:
    """Show a topology until it has ended, and then its final picture."""
    out = console()
    try:
        if out.is_terminal:
            return _drawn(client, topology_id, clock, out)
        return _logged(client, topology_id, clock, out)
    except KeyboardInterrupt:
        line = f"the topology is still running; to follow it: duetime topologies show {topology_id} --watch"
        console(stderr=True).print(printable(line), soft_wrap=True)
        raise


def waited_for(client: Client, topology_id: str) -> Topology:
    """Follow a topology until it has ended, with a spinner on the error stream."""
    with console(stderr=True).status("") as status:
        for topology in client.topologies.follow(topology_id):
            status.update(Text.assemble(topology.id, f" {topology.percent}% ", printable(topology.state)))
    return topology


def _drawn(client: Client, topology_id: str, clock: Clock, out: Console) -> Topology:
    readings = client.topologies.follow(topology_id)
    topology = next(readings)
    # The picture is redrawn between two readings.
    with Live(
        get_renderable=lambda: Picture(topology, clock.now()), console=out, refresh_per_second=_DRAWN_A_SECOND
    ) as live:
        for reading in readings:
            topology = reading
            live.refresh()
    return topology


def _logged(client: Client, topology_id: str, clock: Clock, out: Console) -> Topology:
    last: object = None
    failed: set[str] = set()
    for topology in client.topologies.follow(topology_id):
        here = (topology.state, topology.percent, topology.counts)
        if here != last:
            out.print(progress_line(topology, clock.now()), soft_wrap=True)
            last = here
        for key, node in topology.nodes.items():
            if node.state == "failed" and key not in failed:
                failed.add(key)
                out.print(Text.assemble(" " * 11, "failed: ", printable(key)), soft_wrap=True)
    out.print(Picture(topology, clock.now()))
    return topology
