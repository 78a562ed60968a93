"""A topology as a picture: a line for each level of its graph, with a letter for each node."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from duetime_client.commands.console import printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from duetime_client.topology import Topology, TopologyNode

_SIGNS = {
    "blocked": ("·", "dim"),
    "scheduled": ("○", "cyan"),
    "postponed": ("○", "yellow"),
    "paused": ("‖", "yellow"),
    "preparing": ("◐", "blue"),
    "running": ("◐", "bold blue"),
    "succeeded": ("●", "green"),
    "failed": ("✗", "bold red"),
    "rolling_back": ("↺", "magenta"),
    "rolled_back": ("↺", "dim magenta"),
    "cancelled": ("-", "dim"),
}
_BAR = 30
_SIGNS_A_LINE = 60
_NAMES_A_LINE = 3


def picture(topology: Topology, now: datetime) -> Group:
    """The whole with its bar, its levels, and how many nodes stand where."""
    lines = [_headline(topology, now)]
    for number, keys in enumerate(levels(topology.nodes), 1):
        lines.append(_level(number, keys, topology.nodes))
    lines.append(_counts(topology))
    path = topology.critical_path
    shown = " → ".join(path.nodes[:4]) + (f" … ({len(path.nodes)} nodes)" if len(path.nodes) > 4 else "")  # noqa: PLR2004 - what fits
    lines.append(Text.assemble(("critical path ", "dim"), printable(shown), f"  {path.seconds:.1f} s"))
    if topology.error is not None:
        lines.append(printable(f"{topology.error.kind}: {topology.error.message}", "red"))
    return Group(*lines)


def levels(nodes: Mapping[str, TopologyNode]) -> list[list[str]]:
    """The nodes by how long the longest way to them is."""
    level: dict[str, int] = {}
    missing = {key: len(node.depends_on) for key, node in nodes.items()}
    children: dict[str, list[str]] = {key: [] for key in nodes}
    for key, node in nodes.items():
        for parent in node.depends_on:
            children[parent].append(key)
    ready = [key for key, count in missing.items() if not count]
    for key in ready:
        level[key] = max((level[parent] + 1 for parent in nodes[key].depends_on), default=0)
        for child in children[key]:
            missing[child] -= 1
            if not missing[child]:
                ready.append(child)
    grouped: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for key, number in level.items():
        grouped[number].append(key)
    return grouped


def _headline(topology: Topology, now: datetime) -> Text:
    full = _BAR * topology.percent // 100
    took = (topology.finished_at or now) - topology.started_at if topology.started_at else None
    style = _SIGNS.get(topology.state, ("", ""))[1]
    return Text.assemble(
        printable(topology.name or topology.id, "bold"),
        "  ",
        ("█" * full, style or "green"),
        ("░" * (_BAR - full), "dim"),
        f" {topology.percent:3} %  ",
        (topology.state, style),
        f"  run {topology.run}" if topology.run > 1 else "",
        f"  {took.total_seconds():.1f} s" if took else "",
        (f"  asked to {topology.asked}", "yellow") if topology.asked else "",
    )


def _level(number: int, keys: list[str], nodes: Mapping[str, TopologyNode]) -> Text:
    """A level: its nodes' signs, and the names of those that run or failed, else of the first."""
    line = Text(f"{number:4}  ", "dim")
    for key in keys[:_SIGNS_A_LINE]:
        line.append(*_SIGNS.get(nodes[key].state, ("?", "")))
    if len(keys) > _SIGNS_A_LINE:
        line.append(f"+{len(keys) - _SIGNS_A_LINE}", "dim")
    named = [key for key in keys if nodes[key].state in {"running", "failed", "rolling_back"}] or keys
    line.append("  ")
    line.append_text(printable(", ".join(named[:_NAMES_A_LINE]), "dim"))
    if len(named) > _NAMES_A_LINE:
        line.append(f" and {len(named) - _NAMES_A_LINE} more", "dim")
    return line


def _counts(topology: Topology) -> Text:
    counts = Counter(node.state for node in topology.nodes.values())
    line = Text("      ")
    for state, count in counts.most_common():
        sign, style = _SIGNS.get(state, ("?", ""))
        line.append(f"{sign} {count} {state}  ", style)
    return line
