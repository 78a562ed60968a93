"""Formats the comparison as tables for the terminal and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.scheduler_comparison.lateness_figures import CaseFigures, SchedulerFigures
    from bench.scheduler_comparison.schedulers import Scheduler

_SPREAD_HEADS = ("scheduler", "late, p50 ms", "p99 ms", "early", "by ms", "lost", "processor s")
_BURST_HEADS = ("scheduler", "late, p50 s", "p99 s", "all started after s", "early", "by ms", "lost", "processor s")
_KIND_HEADS = ("scheduler", "keeps tasks in", "learns that one is due by", "runs at once")


def tables(found: Mapping[Scheduler, SchedulerFigures]) -> Iterator[Table]:
    """Yield tables with the figures for both cases and with each scheduler's properties."""
    for title, heads, rows in _contents(found):
        table = Table(*heads, title=title)
        for row in rows:
            table.add_row(*row)
        yield table


def markdown(found: Mapping[Scheduler, SchedulerFigures]) -> Iterator[str]:
    """Yield the same tables as lines of Markdown."""
    for title, heads, rows in _contents(found):
        yield f"{title}:"
        yield ""
        yield _line(heads)
        yield f"|{'---|' * len(heads)}"
        yield from map(_line, rows)
        yield ""


def _contents(
    found: Mapping[Scheduler, SchedulerFigures],
) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
    spread = [(scheduler.name, *_spread(figures.spread)) for scheduler, figures in found.items()]
    yield "Tasks at random milliseconds", _SPREAD_HEADS, spread
    burst = [(scheduler.name, *_burst(figures.burst)) for scheduler, figures in found.items()]
    yield "Tasks in the same millisecond", _BURST_HEADS, burst
    yield "What each is", _KIND_HEADS, [(each.name, each.stores, each.waits, each.at_once) for each in found]


def _spread(figures: CaseFigures) -> Sequence[str]:
    return f"{figures.p50_ms:.0f}", f"{figures.p99_ms:.0f}", *_rest(figures)


def _burst(figures: CaseFigures) -> Sequence[str]:
    seconds = (figures.p50_ms / 1_000, figures.p99_ms / 1_000, figures.all_started_s)
    return *(f"{each:.2f}" for each in seconds), *_rest(figures)


def _rest(figures: CaseFigures) -> Sequence[str]:
    return str(figures.early), str(figures.early_by_ms), str(figures.lost), f"{figures.processor_s:.1f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
