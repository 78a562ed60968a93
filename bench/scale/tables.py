"""Formats the simulations' results as tables for `docs/scale.md` and as figures for `results.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.scale.cases import DAY, burst, cases, fair_cases, steady, steps, trigger_groups

if TYPE_CHECKING:
    from collections.abc import Iterator


_STEP_COLUMNS = (
    "tasks a day",
    "a second",
    "dollars a month",
    "workers at once",
    "write units a second",
    "shards",
    "invocations of a tick",
    "raise or set",
)


def counted() -> dict[str, float]:
    """Return the figures for `results.json`."""
    return {"simulated_p99_s_120k": round(steady().p99, 3), "simulated_p99_s_burst": round(burst().p99, 2)}


def case_table() -> Iterator[str]:
    """Yield a table of the cases, as lines of Markdown."""
    yield "| case | p50 s | p99 s | slowest s | seconds throttled | workers at once | dollars | notes |"
    yield "|---|---|---|---|---|---|---|---|"
    for each in cases():
        late = f"{each.p50:.2f} | {each.p99:.2f} | {each.slowest:.2f}"
        used = f"{each.throttled:,.0f} | {each.workers:,.0f} | {each.dollars:,.2f}"
        yield f"| {each.name} | {late} | {used} | {each.says} |"


def fair_table() -> Iterator[str]:
    """Yield a table of the cases with fair keys, as lines of Markdown."""
    yield "| tasks | whose wait | p50 s | p99 s | slowest s |"
    yield "|---|---|---|---|---|"
    for name, found in fair_cases():
        for kind, waits in found.items():
            yield f"| {name} | {kind} | {' | '.join(f'{np.percentile(waits, each):.2f}' for each in (50, 99, 100))} |"


def step_table() -> Iterator[str]:
    """Yield a table of the deployment sizes, as lines of Markdown."""
    yield f"| {' | '.join(_STEP_COLUMNS)} |"
    yield f"|{'---|' * len(_STEP_COLUMNS)}"
    for each in steps():
        rate = each.tasks / DAY
        numbers = f"{rate:,.4g} | {each.bill:,.2f} | {each.workers:,.0f} | {each.writes:,.0f} | {each.shards}"
        yield f"| {each.tasks:,.0f} | {numbers} | {trigger_groups(each.shards)} | {each.raises} |"
