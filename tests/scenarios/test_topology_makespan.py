"""The duration of topologies in virtual time is compared with the minimum for any number of workers.

In virtual time, every AWS call takes a few milliseconds, and no process waits for a processor. The time beyond the
critical path is therefore duetime's own work between nodes, and is the same in every run.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.topology_measurements import measured
from tests.scenarios.scenario import PLAIN

FAN: dict[str, dict[str, Any]] = {
    "first": {"type": PLAIN},
    **{f"n{number}": {"type": PLAIN, "depends_on": ["first"]} for number in range(20)},
    "last": {"type": PLAIN, "depends_on": [f"n{number}" for number in range(20)]},
}
LEVELS: dict[str, dict[str, Any]] = {
    f"n{number}": {
        "type": PLAIN,
        "depends_on": [f"n{(number // 6 - 1) * 6 + (number + step) % 6}" for step in (0, 2)] if number >= 6 else [],
    }
    for number in range(24)
}


@pytest.mark.parametrize(("nodes", "calls"), [(FAN, 13), (LEVELS, 14)], ids=["fan", "levels"])
def test_a_graph_takes_little_more_than_its_critical_path(nodes: dict[str, dict[str, Any]], calls: float) -> None:
    """With nodes that take 2 s, a graph takes at most 10% longer than its critical path, with few calls per node."""
    found = measured(nodes, dict.fromkeys(nodes, 2.0))
    assert found.ratio <= 1.1
    assert found.calls / len(nodes) <= calls


def test_edges_cost_one_write_per_four_parents_or_none() -> None:
    """A node with twenty parents costs five writes for edges, and a node with up to four parents costs none."""
    seconds = {key: 1 + 0.1 * number for number, key in enumerate(FAN)}
    found = measured(FAN, seconds)
    assert (found.edge_units, found.refused) == (5, 1)
    few: dict[str, dict[str, Any]] = {
        **{key: {"type": PLAIN} for key in "abcd"},
        "e": {"type": PLAIN, "depends_on": list("abcd")},
    }
    found = measured(few, {key: 1 + 0.1 * number for number, key in enumerate(few)})
    assert (found.edge_units, found.refused) == (0, 1)
    # The topology costs eleven writes, and each node five (record, claim, outcome, `finished_at` and expiry). The last
    # node's release and token cost two.
    assert found.node_units == 11 + 5 * len(few) + 2
