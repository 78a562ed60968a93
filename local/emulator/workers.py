"""The processes in which the emulator runs Lambda functions: starting them beforehand, and finding them."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from local.emulator.server import TEMPORARY

if TYPE_CHECKING:
    from local.emulator.server import Emulator


NOTHING = b'{"Records": [], "calls": []}'
"""A batch without messages, and one without calls."""


def warm_up(emulator: Emulator, function_name: str, called: str) -> int:
    """Start as many processes of a function as one of its queues may call at once, and as many of one that it calls.

    The server unpacks code and layers itself, one function at a time and between two answers: ten cold starts in
    the middle of the work would make everything late by seconds, which tells nothing about AWS.

    Returns:
        How many processes of each there are.
    """
    functions = emulator.client("lambda")
    mappings = functions.list_event_source_mappings(FunctionName=function_name)["EventSourceMappings"]
    count = max(mapping.get("ScalingConfig", {}).get("MaximumConcurrency", 1) for mapping in mappings)
    with ThreadPoolExecutor(count) as threads:
        for name in (function_name, called):
            # At once: one after the other would all find the first process free.
            for call in [threads.submit(functions.invoke, FunctionName=name, Payload=NOTHING) for _ in range(count)]:
                call.result()
    return count


def processes_of(emulator: Emulator, function_name: str) -> list[int]:
    """Return the process ids of a function's warm workers."""
    # A worker is started from a folder that is named after its function.
    folder = f"{emulator.folder}/{TEMPORARY}/ministack-lambda-{function_name}-"
    command = ["ps", "-axww", "-o", "pid=,args="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - a constant
    lines = (line.split(maxsplit=1) for line in listed.stdout.splitlines())
    return [int(pid) for pid, arguments in lines if folder in arguments]
