"""Chooses the port and the folder of an emulator."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from duetime_local.emulator.errors import EmulatorFailed

PREFERRED_PORT = 8750
"""The default port, which is fixed so that the stack has the same addresses in every run."""
MEMORY = "/dev/shm"  # noqa: S108 - the folder below it is private
MEMORY_BYTES = 4 * 1024**3
"""The minimum free memory, in bytes, for using an in-memory folder."""


def roomy_memory() -> str | None:
    """Return an in-memory folder if it has enough free space; `None` means that the default location is used.

    The emulator unpacks layers with thousands of files, and deleting these files from a disk can take a minute.
    """
    try:
        status = os.statvfs(MEMORY)
    except OSError:
        return None
    has_room = status.f_bavail * status.f_frsize >= MEMORY_BYTES
    # Compiled libraries cannot be loaded from a filesystem mounted with noexec.
    return MEMORY if has_room and not status.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK) else None


def usable_port() -> int:
    """Return the preferred port, or another free port if the preferred port is in use."""
    with suppress(EmulatorFailed):
        return free_port(PREFERRED_PORT)
    return free_port(0)


def free_port(wanted: int) -> int:
    """Return the port `wanted` if it is free; for 0, return any free port."""
    with socket.socket() as probe:
        # Servers set this option, too, so a stopped emulator's lingering connections do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            # The port is checked before the emulator starts, because otherwise another emulator on this port would
            # respond instead.
            raise EmulatorFailed(
                f"cannot use port {wanted}: {error.strerror}; choose another with --port", ""
            ) from None
        return int(probe.getsockname()[1])
