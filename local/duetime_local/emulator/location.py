"""Where an emulator runs: its port, and where its folder lies."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from duetime_local.emulator.errors import EmulatorFailed

PREFERRED_PORT = 8750
"""A fixed one, so that addresses stay the same from one run to the next."""
MEMORY = "/dev/shm"  # noqa: S108 - the folder below it is private
MEMORY_BYTES = 4 * 1024**3
"""Free memory from which on half a gigabyte is not missed."""


def roomy_memory() -> str | None:
    """Return a folder in memory if there is one with room to spare, else nothing: the usual place is used.

    Each Lambda process unpacks its layers, half a gigabyte in all; wiping that from a disk can take a minute.
    """
    try:
        status = os.statvfs(MEMORY)
    except OSError:
        return None
    has_room = status.f_bavail * status.f_frsize >= MEMORY_BYTES
    # Where nothing may be executed, no compiled library can be loaded either.
    return MEMORY if has_room and not status.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK) else None


def usable_port() -> int:
    """Return the preferred port, or any other if somebody listens there."""
    with suppress(EmulatorFailed):
        return free_port(PREFERRED_PORT)
    return free_port(0)


def free_port(wanted: int) -> int:
    """Return `wanted` if nobody listens there, or any free port for 0."""
    with socket.socket() as probe:
        # As a server does: connections of a stopped emulator that still linger do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            # Asked before it starts, because another emulator on that port would answer in its place.
            raise EmulatorFailed(f"cannot have port {wanted}: {error.strerror}", "") from None
        return int(probe.getsockname()[1])
