"""Writes and reads the ready file, in which commands find the addresses of a running local stack."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from duetime_cdk.source_folders import project_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READY_FILE = project_folder() / ".duetime" / "local.json"
"""The default path, at which commands in the project look for a running stack."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The content of the ready file."""

    api_url: str
    aws_endpoint_url: str
    pid: int
    """The id of the process that stops the complete stack when it receives SIGTERM."""
    console_url: str = ""
    websocket_url: str = ""
    """The URL for live updates; a connection requires a ticket from the API."""


class AlreadyUp(RuntimeError):
    """Another stack with the same ready file is running."""

    def __init__(self, path: Path, other: Ready) -> None:
        super().__init__(
            f"a stack is already running at {other.api_url} (process {other.pid}, {path});"
            " stop it, or choose another --ready-file"
        )


def reject_if_taken(path: Path) -> None:
    """Raise an error if another running stack uses the ready file at `path`.

    Raises:
        AlreadyUp: another stack is running.
    """
    if (other := find(path)) is not None:
        raise AlreadyUp(path, other)


@contextmanager
def announced(ready: Ready, path: Path) -> Iterator[None]:
    """Write a ready file to `path`, and remove the file at the end of the context."""
    write_whole(path, asdict(ready))
    try:
        yield
    finally:
        # Another stack may have replaced the file in the meantime.
        if _read(path) == ready:
            path.unlink(missing_ok=True)


def find(path: Path = READY_FILE) -> Ready | None:
    """Return the content of the ready file at `path`.

    The result is `None` if the file is missing or if the process it names has ended.
    """
    ready = _read(path)
    if ready is None:
        return None
    try:
        os.kill(ready.pid, 0)
    except (ProcessLookupError, PermissionError):
        # The stack has ended; a process of another user has received its number since.
        return None
    return ready


def write_whole(path: Path, content: object) -> None:
    """Write JSON atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(content, indent=2) + "\n")
    aside.replace(path)


def _read(path: Path) -> Ready | None:
    with suppress(OSError, ValueError, TypeError):
        return Ready(**json.loads(path.read_text()))
    return None
