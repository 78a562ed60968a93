"""The processes in which the emulator runs Lambda functions: starting them beforehand."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from duetime_local.emulator.differences import GENTLE_WAITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_local.emulator.server import Emulator


NOTHING = json.dumps({"Records": [], "calls": [], "state": "none", "task_id": "0" * 26, "fence": 0}).encode()
"""A batch without messages, one without calls, and a state that no run of a topology has."""


def warm_up(emulator: Emulator, worker: str, called: str, waiting: str) -> int:
    """Start as many processes of functions as may be called at once.

    Each takes a second of a core: ten cold starts in the middle of the work would make everything late by seconds,
    which tells nothing about AWS.

    Args:
        emulator: that they run in.
        worker: the function that the queues call, as many at once as one of them may.
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
    """Start so many processes of each of these functions; how many there are in all."""
    functions = emulator.client("lambda")
    with ThreadPoolExecutor(max(counts.values())) as threads:
        for name, count in counts.items():
            # At once: one after the other would all find the first process free.
            for call in [threads.submit(functions.invoke, FunctionName=name, Payload=NOTHING) for _ in range(count)]:
                call.result()
    return sum(counts.values())


def start_one(emulator: Emulator, *names: str) -> None:
    """Start a process of each of these functions, at the same time, unless it has one."""
    functions = emulator.client("lambda")
    with ThreadPoolExecutor(len(names)) as threads:
        for call in [threads.submit(functions.invoke, FunctionName=name, Payload=NOTHING) for name in names]:
            call.result()
