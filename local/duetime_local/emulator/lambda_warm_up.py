"""Starts the emulator's Lambda processes before they are needed."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from duetime_local.emulator.differences import GENTLE_WAITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_local.emulator.server import Emulator


_OPTIONS = {"requestContext": {"http": {"method": "OPTIONS"}}, "rawPath": "/v1/tasks"}
NOTHING = json.dumps(
    {"Records": [], "calls": [], "state": "none", "task_id": "0" * 26, "fence": 0, **_OPTIONS}
).encode()
"""An event that has no effect in any function, because it has no messages, no calls, an unknown state and an OPTIONS
request."""


def warm_up(emulator: Emulator, worker: str, called: str, waiting: str) -> int:
    """Start function processes before they are needed; for the worker, as many as one queue can use concurrently.

    Each start takes a second of CPU time. On one machine, unlike in AWS, ten cold starts during a measurement would
    delay all tasks by seconds.

    Args:
        emulator: the emulator that runs the functions.
        worker: the function that the queues invoke, each with up to the concurrency that its event source mapping
            allows.
        called: the function that the worker calls.
        waiting: the function that waits for the nodes of topologies.

    Returns:
        The number of started processes.
    """
    functions = emulator.client("lambda")
    mappings = functions.list_event_source_mappings(FunctionName=worker)["EventSourceMappings"]
    at_once = max(mapping.get("ScalingConfig", {}).get("MaximumConcurrency", 1) for mapping in mappings)
    return start_many(emulator, {worker: at_once, called: at_once, waiting: GENTLE_WAITS})


def start_many(emulator: Emulator, counts: Mapping[str, int]) -> int:
    """Start a number of processes for each function, and return the total number."""
    functions = emulator.client("lambda")
    with ThreadPoolExecutor(max(counts.values())) as threads:
        for name, count in counts.items():
            # The calls are concurrent, because consecutive calls would reuse the first process.
            for call in [threads.submit(functions.invoke, FunctionName=name, Payload=NOTHING) for _ in range(count)]:
                call.result()
    return sum(counts.values())


def start_one(emulator: Emulator, *names: str) -> None:
    """Start a process for each function that has no idle process; the processes start concurrently."""
    functions = emulator.client("lambda")
    with ThreadPoolExecutor(len(names)) as threads:
        for call in [threads.submit(functions.invoke, FunctionName=name, Payload=NOTHING) for name in names]:
            call.result()
