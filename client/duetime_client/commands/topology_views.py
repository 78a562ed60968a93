"""Draws a topology as a picture of its progress, with a line for each level of its graph."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from duetime_client.commands.formatting import shown_error
from duetime_client.commands.output_streams import printable
from duetime_client.commands.topology_levels import CRITICAL, SIGNS, level_lines, levels
from duetime_client.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rich.console import Console, ConsoleOptions, RenderResult

    from duetime_client.topologies import Topology

_BAR = 40
_SHORTEST_BAR = 10
_BESIDE_BAR = 8
_OWN_LINES = 3
"""Number of lines besides the levels: two header lines of the topology, and one line for the prompt."""
_MOST_FAILED = 3
_MOST_BY_THE_CLOCK = 0.95
"""Upper bound of a running node's share, so that the node never counts as done before it has ended."""
_ON_PAPER = 60
"""Height of a picture in lines when the output is not a terminal."""
_ASCII = str.maketrans("●◐○✗↺‖█▒░·▸…", "*>ox<=#+-.^~")


class Picture:
    """A topology's progress bar, levels and node counts by state, sized to the terminal."""

    def __init__(self, topology: Topology, now: datetime) -> None:
        self.topology = topology
        self.now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it."""
        height = console.height if console.is_terminal else _ON_PAPER
        yield Group(*(_shown(line, console) for line in self.lines(options.max_width, height)))

    def lines(self, width: int, height: int) -> list[Text]:
        """The lines of the picture, each of at most this width."""
        topology = self.topology
        critical = frozenset(topology.critical_path.nodes)
        below = [_counts(topology), self._critical_path(), *self._failures()]
        height_of_levels = max(1, height - _OWN_LINES - len(below))
        grouped = levels(topology.nodes)
        return [
            self._headline(),
            self._bar(width),
            *level_lines(grouped, topology.nodes, critical, width=width, height=height_of_levels),
            *below,
        ]

    def _headline(self) -> Text:
        topology, outer = self.topology, self.topology.topology
        took = self._took()
        return Text.assemble(
            printable(topology.name or topology.id, "bold"),
            "  ",
            printable(topology.state, _style(topology.state)),
            f"  run {topology.run}" if topology.run > 1 else "",
            f"  {took:.1f} s" if took is not None else "",
            printable(f"  {topology.requested_action} requested", "yellow") if topology.requested_action else "",
            printable(f"  {topology.id}", "dim") if topology.name else "",
            printable(f"  node {outer.node} of {outer.id}", "dim") if outer else "",
        )

    def _bar(self, width: int) -> Text:
        topology = self.topology
        width_of_bar = max(_SHORTEST_BAR, min(_BAR, width - _BESIDE_BAR))
        percent = max(0, min(100, topology.percent))
        full = width_of_bar * percent // 100
        likely = min(width_of_bar - full, round(width_of_bar * likely_share(topology, self.now)))
        style = "green" if topology.state in {"running", "succeeded"} else _style(topology.state)
        rest = "░" * (width_of_bar - full - likely)
        return Text.assemble(("█" * full, style), ("▒" * likely, style), (rest, "dim"), f" {percent:3}%")

    def _critical_path(self) -> Text:
        path = self.topology.critical_path
        line = Text.assemble(
            ("critical path ", "dim"), f"{path.seconds:.1f} s, {counted(len(path.nodes), 'node')} ({CRITICAL})"
        )
        took = self._took()
        if self.topology.state == "succeeded" and took is not None and path.seconds > 0:
            line.append(f"; the run took {took / path.seconds:.2f} times as long", "dim")
        return line

    def _failures(self) -> Iterator[Text]:
        """The error, and the commands that show the failed nodes."""
        if self.topology.error is not None:
            yield printable(shown_error(self.topology.error), "red")
        failed = ((key, node) for key, node in self.topology.nodes.items() if node.state == "failed")
        for key, node in islice(failed, _MOST_FAILED):
            command = "topologies show" if node.is_topology else "tasks get"
            yield printable(f"{key}: duetime {command} {node.task_id}", "red")

    def _took(self) -> float | None:
        """Seconds from the start of the topology to its end, or until now."""
        began = self.topology.started_at
        return ((self.topology.finished_at or self.now) - began).total_seconds() if began else None


def likely_share(topology: Topology, now: datetime) -> float:
    """The share of the topology, 0 to 1, that running nodes have probably completed beyond their reported progress."""
    expected = {key: node.expected_seconds for key, node in topology.nodes.items() if node.expected_seconds is not None}
    usual = sum(expected.values()) / len(expected) if expected else 1.0
    done = 0.0
    for key, seconds in expected.items():
        node = topology.nodes[key]
        if seconds and node.state == "running" and node.started_at is not None:
            by_clock = min((now - node.started_at).total_seconds() / seconds, _MOST_BY_THE_CLOCK)
            done += seconds * max(0.0, by_clock - node.percent / 100)
    return done / sum(expected.get(key, usual) for key in topology.nodes) if done else 0.0


def progress_line(topology: Topology, now: datetime) -> Text:
    """The progress in one line."""
    began = topology.started_at
    counted = ", ".join(f"{count} {state}" for state, count in topology.counts.items())
    took = f"{((topology.finished_at or now) - began).total_seconds():7.1f} s" if began else " " * 9
    return Text.assemble(took, f"  {topology.percent:3}%  ", printable(topology.state), "  ", printable(counted))


def _counts(topology: Topology) -> Text:
    counts = Counter((node.state, node.reason or node.state) for node in topology.nodes.values())
    line = Text("    ")
    for (state, word), count in counts.most_common():
        sign, style = SIGNS.get(state, ("?", ""))
        line.append_text(printable(f"  {sign} {count} {word}", style))
    return line


def _style(state: str) -> str:
    return SIGNS.get(state, ("", ""))[1]


def _shown(line: Text, console: Console) -> Text:
    """A line that is cut rather than wrapped, in characters that the terminal supports."""
    if not console.encoding.lower().startswith("utf"):
        line.plain = line.plain.translate(_ASCII)
    line.no_wrap, line.overflow = True, "ellipsis" if console.encoding.lower().startswith("utf") else "crop"
    return line
