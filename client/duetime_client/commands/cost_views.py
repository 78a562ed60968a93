"""Prints cost estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime_client.commands.output_streams import console
from duetime_client.commands.tables import Column, table_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from duetime_client.request_estimates import RequestEstimate

_CENT = 0.01


def cost_table(lines: Iterable[tuple[str, str, float]], use: str) -> Table:
    """A table of a bill: part, quantity and dollars."""
    columns: list[Column[tuple[str, str, float]]] = [
        Column("part", lambda line: line[0], wraps=True),
        Column(use, lambda line: line[1], wraps=True),
        Column("dollars", lambda line: shown_dollars(line[2]), right=True),
    ]
    return table_of(lines, columns)


def shown_dollars(amount: float) -> str:
    """An amount in dollars; amounts below a cent get eight decimals, because a task costs millionths of a dollar."""
    return f"{amount:,.2f}" if amount >= _CENT or not amount else f"{amount:.8f}"


def show_estimate(found: RequestEstimate) -> None:
    """Print what the tasks of a request will cost."""
    lines = [(line.part, f"{line.quantity:,.6g} {line.unit}", line.dollars) for line in found.lines]
    table = cost_table(lines, "use")
    period = "" if found.days is None else f" in {found.days} days"
    table.add_row(f"{found.tasks:,} tasks{period}", "", shown_dollars(found.dollars), style="bold")
    console().print(table)
    missing = f" Left out: {'; '.join(found.left_out)}." if found.left_out else ""
    console().print(
        f"By the list prices of {found.region} as assumed on {found.prices_as_of}, if each task succeeds at its first"
        f" attempt and takes no time.{missing}",
        style="dim",
    )
