"""Output of cost estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from duetime_client.commands.output_streams import console, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime_client.request_estimates import RequestEstimate

_CENT = 0.01


def cost_table(lines: Iterable[tuple[str, str, float]], use: str) -> Table:
    """A table of a bill: part, quantity and dollars."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("part")
    table.add_column(use)
    table.add_column("dollars", justify="right")
    for part, used, dollars in lines:
        table.add_row(printable(part), printable(used), shown_dollars(dollars))
    return table


def shown_dollars(amount: float) -> str:
    """An amount in dollars; below a cent with eight decimals, because a task costs millionths of a dollar."""
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
        f"By the list prices of {found.region} as assumed on {found.prices_as_of}, if each succeeds at its first"
        f" attempt and takes no time.{missing}",
        style="dim",
    )
