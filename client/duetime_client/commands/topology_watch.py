"""Watching a topology until it has ended: drawn on a terminal, told line by line where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from duetime_client.commands.console import console, printable
from duetime_client.commands.topology_views import Picture, progress_line

if TYPE_CHECKING:
    from rich.console import Console

    from duetime_client.client import Client
    from duetime_client.commands.clock import Clock
    from duetime_client.topology_runs import Topology

_DRAWN_A_SECOND = 4


def watched(client: Client, topology_id: str, clock: Clock) -> Topology:
    """Show a topology until it has ended, and leave the picture of its end."""
    out = console()
    try:
        if out.is_terminal:
            return _drawn(client, topology_id, clock, out)
        return _told(client, topology_id, clock, out)
    except KeyboardInterrupt:
        line = f"the topology is still running; to follow it: duetime topologies show {topology_id} --watch"
        console(stderr=True).print(printable(line), soft_wrap=True)
        raise


def waited_for(client: Client, topology_id: str) -> Topology:
    """A topology when it has ended, with a spinner on the error stream until then."""
    with console(stderr=True).status("") as status:
        for topology in client.follow_topology(topology_id):
            status.update(Text.assemble(topology.id, f" {topology.percent} % ", printable(topology.state)))
    return topology


def _drawn(client: Client, topology_id: str, clock: Clock, out: Console) -> Topology:
    looks = client.follow_topology(topology_id)
    topology = next(looks)
    # The clock goes on between two looks, and the picture with it.
    with Live(
        get_renderable=lambda: Picture(topology, clock.now()), console=out, refresh_per_second=_DRAWN_A_SECOND
    ) as live:
        for seen in looks:
            topology = seen
            live.refresh()
    return topology


def _told(client: Client, topology_id: str, clock: Clock, out: Console) -> Topology:
    last: object = None
    failed: set[str] = set()
    for topology in client.follow_topology(topology_id):
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
