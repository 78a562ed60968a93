"""Where an emulator runs: its port and its folder."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from duetime_local.emulator.errors import EmulatorFailed

PREFERRED_PORT = 8750
"""A fixed port, so that addresses are the same in every run."""
MEMORY = "/dev/shm"  # noqa: S108 - the folder below it is private
MEMORY_BYTES = 4 * 1024**3
"""Minimum free memory for using half a gigabyte of it."""


def roomy_memory() -> str | None:
    """Return a folder in memory if there is one with enough room, else `None` for the default location.

    Each Lambda process unpacks its layers, half a gigabyte in total; deleting that from a disk can take a minute.
    """
    try:
        status = os.statvfs(MEMORY)
    except OSError:
        return None
    has_room = status.f_bavail * status.f_frsize >= MEMORY_BYTES
    # A filesystem mounted without execution cannot load compiled libraries.
    return MEMORY if has_room and not status.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK) else None


def usable_port() -> int:
    """Return the preferred port, or a free one if it is in use."""
    with suppress(EmulatorFailed):
        return free_port(PREFERRED_PORT)
    return free_port(0)


def free_port(wanted: int) -> int:
    """Return `wanted` if it is free, or any free port for 0."""
    with socket.socket() as probe:
        # As servers do, so that lingering connections of a stopped emulator do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            # Checked before the start, because another emulator on the port would respond instead.
            raise EmulatorFailed(
                f"cannot use port {wanted}: {error.strerror}; choose another with --port", ""
            ) from None
        return int(probe.getsockname()[1])
