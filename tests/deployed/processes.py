"""Finds the processes in which the emulator runs Lambda functions."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from duetime_local.emulator.server import TEMPORARY

if TYPE_CHECKING:
    from duetime_local.emulator.server import Emulator


def processes_of(emulator: Emulator, function_name: str) -> list[int]:
    """Return the process identifiers of a function's warm workers."""
    # A worker is started from a folder that is named after its function.
    folder = f"{emulator.folder}/{TEMPORARY}/ministack-lambda-{function_name}-"
    command = ["ps", "-axww", "-o", "pid=,args="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - a constant
    lines = (line.split(maxsplit=1) for line in listed.stdout.splitlines())
    return [int(pid) for pid, arguments in lines if folder in arguments]
