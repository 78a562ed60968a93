"""The levels of a topology's graph, each as a line that fits a screen."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.text import Text

from duetime_client.commands.output_streams import printable
from duetime_client.plurals import counted
from duetime_client.task import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duetime_client.topologies import TopologyNode

SIGNS = {
    "succeeded": ("●", "green"),
    "failed": ("✗", "bold red"),
    "rolling_back": ("↺", "magenta"),
    "rolled_back": ("↺", "dim magenta"),
    "running": ("◐", "bold blue"),
    "preparing": ("◐", "blue"),
    "waiting": ("○", "yellow"),
    "paused": ("‖", "yellow"),
    "scheduled": ("○", "cyan"),
    "blocked": ("·", "dim"),
    "cancelled": ("-", "dim"),
}
"""The symbol of each state, in the order within a level."""
CRITICAL = "▸"
_ACTIVE = frozenset({"running", "preparing", "failed", "waiting", "rolling_back"})
_UNKNOWN = ("?", "")
_MOST_CELLS = 48
_FEWEST_CELLS = 10
_SHARE_OF_CELLS = 3
_NAMES_A_LINE = 3
_BEFORE_THE_FIRST_OPEN = 2


def levels(nodes: Mapping[str, TopologyNode]) -> list[list[str]]:
    """The nodes, grouped by the length of the longest path to them."""
    level: dict[str, int] = {}
    missing = {key: len(node.depends_on) for key, node in nodes.items()}
    children: dict[str, list[str]] = {key: [] for key in nodes}
    for key, node in nodes.items():
        for parent in node.depends_on:
            children.setdefault(parent, []).append(key)
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


def level_lines(
    grouped: Sequence[Sequence[str]],
    nodes: Mapping[str, TopologyNode],
    critical: frozenset[str],
    *,
    width: int,
    height: int,
) -> Iterator[Text]:
    """The levels as lines; of a tall graph, only levels around the first open level, and summaries of the rest."""
    first, last = _window(grouped, nodes, height)
    longest = max((len(keys) for keys in grouped), default=0)
    cells = min(longest, _MOST_CELLS, max(_FEWEST_CELLS, width // _SHARE_OF_CELLS))
    digits = len(str(longest))
    if first:
        yield _left_out(grouped[:first], nodes)
    for number in range(first, last):
        yield _level(number + 1, [(key, nodes[key]) for key in grouped[number]], critical, cells, digits)
    if last < len(grouped):
        yield _left_out(grouped[last:], nodes)


def _window(grouped: Sequence[Sequence[str]], nodes: Mapping[str, TopologyNode], height: int) -> tuple[int, int]:
    """The range of levels shown; omitted levels need one summary line on each side."""
    if len(grouped) <= height:
        return 0, len(grouped)
    shown = max(1, height - 2)
    is_open = (any(nodes[key].state not in TERMINAL for key in keys) for keys in grouped)
    open_at = next((number for number, is_it in enumerate(is_open) if is_it), len(grouped))
    first = max(0, min(open_at - _BEFORE_THE_FIRST_OPEN, len(grouped) - shown))
    return first, first + shown


def _left_out(grouped: Sequence[Sequence[str]], nodes: Mapping[str, TopologyNode]) -> Text:
    counts = Counter(nodes[key].state for keys in grouped for key in keys)
    states = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    return printable(f"   …  {counted(len(grouped), 'level')}: {states}", "dim")


def _level(
    number: int, members: Sequence[tuple[str, TopologyNode]], critical: frozenset[str], cells: int, digits: int
) -> Text:
    """A level as a line: its nodes' symbols, how many have ended, and the most important names."""
    line = Text(f"{number:4}  ", "dim")
    drawn = signs([node.state for _, node in members], cells)
    for state, count in drawn:
        sign, style = SIGNS.get(state, _UNKNOWN)
        line.append(sign * count, style)
    line.append(" " * (cells - sum(count for _, count in drawn)))
    ended = sum(node.state in TERMINAL for _, node in members)
    line.append(f"  {ended:{digits}}/{len(members):<{digits}}  ", "dim")
    return line.append_text(_names(members, critical))


def signs(states: Sequence[str], cells: int) -> list[tuple[str, int]]:
    """The number of cells for each state: one per node or, if there are too many nodes, a proportional share."""
    counts = Counter(states)
    order = [*(state for state in SIGNS if state in counts), *(state for state in counts if state not in SIGNS)]
    if len(states) <= cells:
        return [(state, counts[state]) for state in order]
    shares = {state: max(1, counts[state] * cells // len(states)) for state in order}
    # The most frequent state gets the remainder of rounding.
    shares[max(order, key=counts.__getitem__)] += cells - sum(shares.values())
    return [(state, shares[state]) for state in order]


def _names(members: Sequence[tuple[str, TopologyNode]], critical: frozenset[str]) -> Text:
    """Node names by importance: on the critical path, running or failed, then others."""
    ranked = sorted(members, key=lambda member: (member[0] not in critical, member[1].state not in _ACTIVE))
    line = Text()
    for place, (key, node) in enumerate(ranked[:_NAMES_A_LINE]):
        style = SIGNS.get(node.state, _UNKNOWN)[1] if node.state in _ACTIVE else "dim"
        if key in critical:
            line.append_text(printable(f"{CRITICAL} {key}", f"bold {style.replace('dim', 'default').strip()}"))
        else:
            line.append_text(printable(key, style))
        line.append("  " if place + 1 < min(len(ranked), _NAMES_A_LINE) else "")
    if len(ranked) > _NAMES_A_LINE:
        line.append(f"  +{len(ranked) - _NAMES_A_LINE}", "dim")
    return line
