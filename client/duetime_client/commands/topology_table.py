"""The table of topologies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from duetime_client.commands.formatting import STATE_STYLES, timed
from duetime_client.commands.output_streams import console, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.commands.clock import Clock
    from duetime_client.topologies import TopologySummary


def show_topologies(topologies: Sequence[TopologySummary], clock: Clock, *, more: bool) -> None:
    """Print topologies as a table."""
    out, now = console(), clock.now()
    if not topologies:
        out.print("no topologies", style="dim")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("id", "state", "created", "name"):
        table.add_column(heading, no_wrap=heading != "name")
    for topology in topologies:
        state = printable(topology.state, STATE_STYLES.get(topology.state, ""))
        created = timed(topology.created_at, clock, now, units=1)
        table.add_row(printable(topology.id), state, created, printable(topology.name or ""))
    out.print(table)
    if more:
        out.print(f"{len(topologies)} shown, there are more: --limit N", style="dim")
