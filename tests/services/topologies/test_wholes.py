from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.adapters.memory.contents import MemoryContentStore
from duetime.adapters.memory.tasks import MemoryTaskStore
from duetime.adapters.memory.topologies import MemoryTopologyStore
from duetime.domain.task import Content, ContentPlace, TopologyTarget
from duetime.domain.topologies.outline import outline_of
from duetime.services.topologies.wholes import Wholes
from tests.adapters.examples import task
from tests.clocks import StandingClock
from tests.virtual.time import SeededChance

if TYPE_CHECKING:
    from duetime.domain.topologies.graph import Graph


def payload(*keys: str) -> Content:
    """A graph of these nodes, in the record."""
    body = {"nodes": {key: {"type": "report"} for key in keys}}
    return Content(ContentPlace.RECORD, "payload", json.dumps(body).encode())


def test_a_process_reads_the_graph_of_a_topology_once() -> None:
    """However many of its nodes ask for it; but a graph that has been replaced is read anew."""
    read: list[bytes] = []

    def read_graph(body: bytes) -> Graph:
        read.append(body)
        return outline_of(body)

    stores = MemoryTaskStore(), MemoryContentStore(), MemoryTopologyStore()
    wholes = Wholes(*stores, SeededChance(), read_graph, StandingClock())
    topology = task(target=TopologyTarget(), payload=payload("a", "b"))
    for _ in range(3):
        assert list(wholes.graph_of(topology).by_key) == ["a", "b"]
    assert len(read) == 1
    assert list(wholes.graph_of(replace(topology, payload=payload("c"))).by_key) == ["c"]
    assert len(read) == 2
