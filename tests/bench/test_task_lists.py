from __future__ import annotations

import pytest

from bench.task_lists import FILTERS, measure

EXPECTED = {
    "GET": (0, 1, 1, 1),
    "tasks?": (10, 5, 7, 2),
    "tasks?state=running": (10, 3, 6, 3),
    "tasks?state=waiting": (5, 3, 3.5, 3),
    "tasks?state=paused": (5, 3, 3.5, 3),
    "tasks?state=failed": (10, 9, 9, 2),
    "tasks?state=scheduled": (10, 7, 8, 3),
    "tasks?state=scheduled&order=asc": (10, 7, 8, 3),
    "tasks?state=scheduled&state=waiting&order=asc&due_before=2026-12-01T00:00:00Z": (10, 8, 8.5, 3),
    "tasks?state=scheduled&order=asc&due_before=2026-11-21T02:33:00Z": (0, 6, 3, 2),
    "tasks?state=succeeded": (10, 11, 10, 3),
    "tasks?state=succeeded&state=failed": (10, 11, 10, 3),
    "tasks?state=succeeded&due_after=2026-11-21T02:00:00Z&due_before=2026-11-21T02:33:00Z": (10, 11, 10, 4),
    "tasks?order_by=finished_at": (10, 3, 7, 3),
    "tasks?order_by=finished_at&state=succeeded&state=failed": (10, 5, 9, 4),
    "tasks?finished_after=2026-11-21T02:00:00Z": (10, 3, 7, 3),
    "tasks?type=rare": (5, 3, 3.5, 3),
    "tasks?type=report": (10, 3, 6, 3),
    "tasks?type=rare&state=succeeded": (5, 4, 4, 3),
    "tasks?type=report&state=failed": (10, 9, 9, 2),
    "tasks?name=close": (10, 3, 6, 3),
    "tasks?tag=batch:rare": (10, 3, 6, 3),
    "tasks?schedule=nightly": (10, 3, 6, 3),
    "tasks?parent={topology}": (10, 4, 7.5, 4),
    "tasks?due_after=2026-11-21T02:00:00Z&due_before=2026-11-21T02:33:00Z": (10, 7, 8, 4),
    "tasks?include_nodes=true": (10, 9, 9, 2),
    "tasks?include_nodes=true&due_after=2026-11-21T02:00:00Z&due_before=2026-11-21T02:33:00Z": (10, 11, 10, 4),
    "topologies?": (10, 3, 6, 3),
    "topologies?state=running": (10, 3, 6, 3),
    "topologies?state=failed": (10, 3, 6, 3),
}
"""The number of tasks and requests, the read units, and the rounds of requests for a first page of ten tasks."""


MOST_UNITS, MOST_ROUNDS = 10, 4


@pytest.fixture(scope="module")
def measured() -> dict[str, tuple[int, int, float, int]]:
    """Return the figures of each filter for an owner with 1,600 tasks and 600 nodes."""
    return {each.name: (each.hits, each.reads, each.units, each.rounds) for each in measure(1_600, on_engine=False)}


@pytest.mark.parametrize("name", ["GET", *FILTERS])
def test_the_first_page_of_each_filter_stays_within_its_read_units(
    name: str, measured: dict[str, tuple[int, int, float, int]]
) -> None:
    """With stored lists, ten tasks of any filter need at most ten read units, in few rounds of requests."""
    assert measured[name] == EXPECTED[name]
    _, _, units, rounds = measured[name]
    assert units <= MOST_UNITS
    assert rounds <= MOST_ROUNDS
