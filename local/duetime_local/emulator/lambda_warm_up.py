"""Starts the emulator's Lambda processes in advance."""

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
"""An event without effect on any function: a batch without messages, one without calls, an unknown topology state, and
a request for the methods of a path."""


def warm_up(emulator: Emulator, worker: str, called: str, waiting: str) -> int:
    """Start as many processes of functions as may run concurrently.

    Each takes a second of a core: ten cold starts during the work would delay everything by seconds, which says nothing
    about AWS.

    Args:
        emulator: the emulator that runs them.
        worker: the function that the queues invoke, up to a queue's concurrency.
        called: the function that the worker calls.
        waiting: the function that waits for the nodes of topologies.

    Returns:
        How many processes there are.
    """
    functions = emulator.client("lambda")
    mappings = functions.list_event_source_mappings(FunctionName=worker)["EventSourceMappings"]
    at_once = max(mapping.get("ScalingConfig", {}).get("MaximumConcurrency", 1) for mapping in mappings)
    return start_many(emulator, {worker: at_once, called: at_once, waiting: GENTLE_WAITS})


def start_many(emulator: Emulator, counts: Mapping[str, int]) -> int:
    """Start a number of processes of each function; returns their total."""
    functions = emulator.client("lambda")
    with ThreadPoolExecutor(max(counts.values())) as threads:
        for name, count in counts.items():
            # Concurrently, because consecutive calls would all reuse the first process.
            for call in [threads.submit(functions.invoke, FunctionName=name, Payload=NOTHING) for _ in range(count)]:
                call.result()
    return sum(counts.values())


def start_one(emulator: Emulator, *names: str) -> None:
    """Start a process of each function that has none, concurrently."""
    functions = emulator.client("lambda")
    with ThreadPoolExecutor(len(names)) as threads:
        for call in [threads.submit(functions.invoke, FunctionName=name, Payload=NOTHING) for name in names]:
            call.result()
