"""Measures how long graphs take (their makespan), and their write units, reproducibly in virtual time.

python -m bench.topology_measurements [FOLDER]

In virtual time, every AWS call takes a few milliseconds, sixty invocations can run concurrently, and CPU time is zero.
The time that a graph takes beyond its critical path is therefore spent by duetime between nodes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from bench.recorded_workflows import SOURCE, longest, made
from duetime.adapters.dynamodb import schema
from duetime_testing.fakes.statements import inserted_item
from tests.metering import item_size, write_units
from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import PLAIN, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from duetime_testing.fakes.attribute_values import Item
    from duetime_testing.simulation.faults import Call

_PATH_SECONDS = 20.0
_WRITES = frozenset({"put_item", "update_item", "delete_item"})
_OWN = frozenset({"api", "topology", "worker"})
_JOIN_ITEMS = ("c", "r")
"""Sort key prefixes of the items that count the edges into nodes with several parents."""
_GROWTH = 10
"""The difference in size, in nodes, between the two graphs whose write units are compared."""


@dataclass(slots=True)
class Used:
    """The time and usage of one graph. A rejected write counts as one unit.

    Attributes:
        nodes: number of nodes.
        edges: number of edges.
        bound: duration of the critical path, in seconds.
        makespan: time from the first node's start to the last node's end, in seconds.
        calls: number of AWS calls by the functions that create, plan and run the graph.
        node_units: write units for the items of the nodes and the topology, without edges.
        edge_units: write units for the items that count edges.
        refused: units for writes that were rejected because another process had already made the change.
    """

    nodes: int
    edges: int
    bound: float
    makespan: float = 0.0
    calls: int = 0
    node_units: int = 0
    edge_units: int = 0
    refused: int = 0

    @property
    def ratio(self) -> float:
        """The makespan divided by its lower bound."""
        return self.makespan / self.bound

    def called(self, call: Call) -> None:
        """Record an AWS call; a write counts as rejected until `written` records it."""
        self.calls += call.machine.function in _OWN
        if call.operation in _WRITES:
            self._add(call.request.get("Key") or call.request["Item"], 1, refused=1)
        if call.operation == "batch_execute_statement":
            for each in call.request["Statements"]:
                _, item = inserted_item(each["Statement"], each["Parameters"])
                self._add(item, 1, refused=1)

    def written(self, old: Item | None, new: Item | None) -> None:
        """Record a write to the table; DynamoDB charges for the larger of the item's old and new images."""
        item = new or old or {}
        units = write_units(max(item_size(image) for image in (old, new) if image is not None))
        self._add(item, units - 1, refused=-1)

    def _add(self, key: Item, units: int, refused: int) -> None:
        partition, sort_key = key[schema.PARTITION_KEY]["S"], key[schema.SORT_KEY]["S"]
        is_of_topologies = partition.startswith(schema.TOPOLOGY_PREFIX)
        if is_of_topologies and sort_key[0] in _JOIN_ITEMS:
            self.edge_units += units
            self.refused += refused
        elif is_of_topologies or partition[0].isdigit():
            self.node_units += units
            self.refused += refused


def measured(nodes: Mapping[str, Mapping[str, Any]], seconds: Mapping[str, float]) -> Used:
    """Run a graph in virtual time, and return its time and usage.

    Args:
        nodes: the nodes in the request, by name.
        seconds: duration of each node.
    """
    parents = {key: node.get("depends_on", ()) for key, node in nodes.items()}
    bound = longest({key: (seconds[key], parents[key]) for key in nodes})
    used = Used(len(nodes), sum(map(len, parents.values())), bound)
    starts: dict[str, int] = {}
    ends: dict[str, int] = {}
    with Graphs() as graphs:

        def behave(_phase: str, context: Any) -> str:  # noqa: ANN401 - as a handler has it
            key = graphs.key_of(context.task_id)
            starts[key] = graphs.now
            graphs.take(round(seconds[key] * SECOND))
            ends[key] = graphs.now
            return "done"

        def watch(old: Item | None, new: Item | None) -> None:
            used.written(old, new)
            graphs.watching.written(old, new)

        graphs.target, graphs.before_call, graphs.table.watch = behave, used.called, watch
        graphs.submit({key: dict(node) for key, node in nodes.items()})
        graphs.run_until_ended()
    used.makespan = (max(ends.values()) - min(starts.values())) / SECOND
    return used


def counted(folder: Path = SOURCE) -> dict[str, float]:
    """Return the worst makespan ratio, the write units per node, and the most write units per edge of a graph."""
    graphs = [each for _, each in run(folder)]
    return {
        "makespan_ratio_worst": round(max(each.ratio for each in graphs), 3),
        "topology_write_units_per_node": units_per_node(),
        "topology_write_units_per_edge": round(max(each.edge_units / each.edges for each in graphs), 3),
    }


def units_per_node() -> float:
    """Return the write units for each additional node in a chain, whose edges need no write units."""
    few, many = (measured(*_requested(_chain(length))) for length in (_GROWTH, 2 * _GROWTH))
    return (many.node_units - few.node_units) / _GROWTH


def run(folder: Path) -> Iterator[tuple[str, Used]]:
    """Run the recorded graphs, if any, and two synthetic graphs, all scaled to a critical path of the same length."""
    for path in sorted(folder.glob("*.json")):
        yield path.stem, measured(*_requested(json.loads(path.read_text(encoding="utf-8"))["nodes"]))
    yield "made-1000", measured(*_requested(made(1000)))
    yield "fan-100", measured(*_requested(_fan(100)))


def _requested(recorded: Iterable[Mapping[str, Any]]) -> tuple[dict[str, dict[str, Any]], dict[str, float]]:
    """Return a request's nodes for a recorded graph, and the nodes' scaled durations."""
    each = {node["id"]: (node["runtime_s"], node["parents"]) for node in recorded}
    scale = _PATH_SECONDS / longest(each)
    names = {key: f"n{number}" for number, key in enumerate(each)}
    nodes = {
        names[key]: {"type": PLAIN, "depends_on": [names[parent] for parent in parents]}
        for key, (_, parents) in each.items()
    }
    return nodes, {names[key]: seconds * scale for key, (seconds, _) in each.items()}


def _chain(length: int) -> Iterator[dict[str, Any]]:
    for number in range(length):
        yield {"id": f"n{number}", "runtime_s": 1.0, "parents": [f"n{number - 1}"] if number else []}


def _fan(width: int) -> Iterator[dict[str, Any]]:
    yield {"id": "first", "runtime_s": 1.0, "parents": []}
    for number in range(width):
        yield {"id": f"n{number}", "runtime_s": 1.0, "parents": ["first"]}
    yield {"id": "last", "runtime_s": 1.0, "parents": [f"n{number}" for number in range(width)]}


def main() -> None:
    """Run all graphs, and show a table."""
    columns = ("graph", "nodes", "edges", "makespan s", "ratio", "calls a node", "units a node", "units an edge")
    table = Table(*columns, title=f"Graphs in virtual time, critical paths of {_PATH_SECONDS:.0f} s")
    for name, used in run(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE):
        cells = (used.makespan, used.ratio, used.calls / used.nodes, used.node_units / used.nodes)
        edge = used.edge_units / used.edges if used.edges else 0.0
        table.add_row(name, str(used.nodes), str(used.edges), *(f"{cell:.2f}" for cell in cells), f"{edge:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
