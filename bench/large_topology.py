"""Measures how long it takes to plan and to show the largest allowed graph on the embedded engine.

python -m bench.large_topology

Wall time depends on the machine and includes the engine. CPU time covers only duetime's process, which spends most of
it in the AWS SDK.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench import results
from bench.task_path import BareWrites, create_table
from duetime import composition
from duetime.composition import Platform, composed
from duetime.composition.core import CoreServices
from duetime.composition.tasks import TopologyServices
from duetime.contract.http import request_json
from duetime.contract.topologies.decoding import topology_request
from duetime.contract.topologies.operations import node_page, topology_response
from duetime.domain.limits import MAX_NODES, MAX_PAGE
from duetime.domain.tasks.creation import new_id, new_task
from duetime.domain.tasks.states import State
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from duetime.services.tasks.creation_rules import PAYLOAD
from duetime_local import emulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.ids import TaskId
    from duetime_local.emulator import Emulator

_OWNER = "bench"
_LEVEL = 50


def main() -> None:
    """Plan and show a graph of the maximum size, print the times, and save them."""
    figures = measured(MAX_NODES)
    results.keep(Path(__file__).parent, figures)
    Console().print_json(data=figures)


def measured(nodes: int) -> dict[str, float]:
    """Measure the wall seconds and this process's CPU seconds for planning and showing a graph.

    Planning is compared with writing the same number of items with bare put requests, in threads.

    Args:
        nodes: number of nodes, which are arranged in levels of fifty and have two parents each.
    """
    with emulator.running(port=0) as engine:
        _compose(engine)
        bare = BareWrites(engine.client("dynamodb"), "bench")
        written = _timed(lambda: bare.put(nodes))
        topology = running_topology(nodes)
        steps, service = composed(TopologyServices).state_machine_steps, composed(TopologyServices).service
        planned = _timed(lambda: steps.plan(topology, fence=1))

        def show() -> str:
            return json.dumps(topology_response(service.get(_OWNER, topology), composed().runtime.clock.now()))

        def list_page() -> str:
            return json.dumps(node_page(service.nodes(_OWNER, topology, 0, MAX_PAGE), None))

        # The first response reads the graph from the table; the process then caches the graph for later responses.
        first, shown, listed = _timed(show), _timed(show), _timed(list_page)
    return {
        f"plan_{nodes}_nodes_s": planned[0],
        f"plan_{nodes}_nodes_cpu_s": planned[1],
        "plan_vs_bare_puts": round(planned[0] / written[0], 2),
        f"get_{nodes}_nodes_first_s": first[0],
        f"get_{nodes}_nodes_s": shown[0],
        f"get_{nodes}_nodes_cpu_s": shown[1],
        f"list_{MAX_PAGE}_of_{nodes}_nodes_cpu_s": listed[1],
    }


def _compose(engine: Emulator) -> None:
    os.environ.update(engine.environ)
    client = engine.client("sqs")
    urls: dict[str, str] = {
        name: client.create_queue(QueueName=each.value)["QueueUrl"] for each, name in QUEUE_VARIABLES.items()
    }
    engine.client("s3").create_bucket(Bucket="bench")
    table = create_table(engine.client("dynamodb"))
    composition.use(Platform(environ={Variable.TABLE: table, Variable.BUCKET: "bench", **urls}))


def running_topology(nodes: int, owner: str = _OWNER, number: int = 1) -> TaskId:
    """Store a topology's task with a started attempt whose run has not been planned yet.

    Args:
        nodes: number of nodes.
        owner: owner of the task.
        number: distinguishes the topology from others created in the same millisecond.
    """
    graph = {f"n{number}": {"type": "bench.nothing", "depends_on": _parents(number)} for number in range(nodes)}
    request = topology_request(request_json.read(json.dumps({"nodes": graph})))
    core, now = composed(CoreServices), composed().runtime.clock.now()
    topology = new_id(now, now, 1, number)
    content = core.stores.contents.keep(topology, PAYLOAD, request.spec.payload)
    task = new_task(topology, request.spec, owner, now, now, content)
    core.stores.tasks.create(replace(task, state=State.RUNNING, fence=1, attempt=1, nonce="bench"))
    return topology


def _parents(number: int) -> list[str]:
    above = number - _LEVEL
    return [] if above < 0 else [f"n{above}", f"n{above + 1 if number % _LEVEL < _LEVEL - 1 else above + 1 - _LEVEL}"]


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return a call's wall seconds and its CPU seconds in this process."""
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return round(time.perf_counter() - began, 2), round(time.process_time() - cpu, 2)


if __name__ == "__main__":
    main()
