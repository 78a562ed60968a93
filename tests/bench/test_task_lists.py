from __future__ import annotations

import pytest

from bench.task_lists import FILTERS, measure

EXPECTED = {
    "GET": (0, 1, 1),
    "tasks?": (10, 5, 7),
    "tasks?state=running": (10, 3, 6),
    "tasks?state=waiting": (5, 3, 3.5),
    "tasks?state=paused": (5, 3, 3.5),
    "tasks?state=failed": (10, 9, 9),
    "tasks?state=scheduled": (10, 7, 8),
    "tasks?state=scheduled&order=asc": (10, 7, 8),
    "tasks?state=scheduled&state=waiting&order=asc&due_before=2026-12-01T00:00:00Z": (10, 8, 8.5),
    "tasks?state=scheduled&order=asc&due_before=2026-11-21T02:33:00Z": (0, 6, 3),
    "tasks?state=succeeded": (10, 11, 10),
    "tasks?state=succeeded&state=failed": (10, 11, 10),
    "tasks?state=succeeded&due_after=2026-11-21T02:00:00Z&due_before=2026-11-21T02:33:00Z": (10, 11, 10),
    "tasks?order_by=finished_at": (10, 3, 7),
    "tasks?order_by=finished_at&state=succeeded&state=failed": (10, 5, 9),
    "tasks?finished_after=2026-11-21T02:00:00Z": (10, 3, 7),
    "tasks?type=rare": (5, 3, 3.5),
    "tasks?type=report": (10, 3, 6),
    "tasks?type=rare&state=succeeded": (5, 4, 4),
    "tasks?type=report&state=failed": (10, 9, 9),
    "tasks?name=close": (10, 3, 6),
    "tasks?tag=batch:rare": (10, 3, 6),
    "tasks?schedule=nightly": (10, 3, 6),
    "tasks?parent={topology}": (10, 4, 7.5),
    "tasks?due_after=2026-11-21T02:00:00Z&due_before=2026-11-21T02:33:00Z": (10, 7, 8),
    "tasks?include_nodes=true": (10, 9, 9),
    "tasks?include_nodes=true&due_after=2026-11-21T02:00:00Z&due_before=2026-11-21T02:33:00Z": (10, 11, 10),
    "topologies?": (10, 3, 6),
    "topologies?state=running": (10, 3, 6),
    "topologies?state=failed": (10, 3, 6),
}
"""Tasks, requests and read units of the first page of ten."""


@pytest.fixture(scope="module")
def measured() -> dict[str, tuple[int, int, float]]:
    """Figures of each filter, of an owner with 1 600 tasks and 600 nodes."""
    return {name: (hits, requests, units) for name, hits, requests, units, _ in measure(1_600, on_engine=False)}


@pytest.mark.parametrize("name", ["GET", *FILTERS])
def test_the_first_page_of_each_filter_reads_exactly_so_much(
    name: str, measured: dict[str, tuple[int, int, float]]
) -> None:
    """An owner with lists finds ten tasks of any filter of the console for at most ten read units."""
    assert measured[name] == EXPECTED[name]
    assert measured[name][2] <= 10
