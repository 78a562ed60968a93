"""The ready file: how a running stack of this machine is found."""

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
"""Written when no other file is named, so that the commands of this project find its stack."""


@dataclass(frozen=True, slots=True)
class Ready:
    """What the file says."""

    api_url: str
    aws_endpoint_url: str
    pid: int
    """The process that ends everything when it is sent SIGTERM."""
    console_url: str = ""
    websocket_url: str = ""
    """Where live updates are; connections need a ticket of the API."""


class AlreadyUp(RuntimeError):
    """Another stack has announced itself at the same place, and lives."""

    def __init__(self, path: Path, other: Ready) -> None:
        super().__init__(
            f"a stack is up already: {path} announces {other.api_url} (process {other.pid});"
            " stop it, or name another --ready-file"
        )


def reject_if_taken(path: Path) -> None:
    """Refuse a place that another living stack has announced itself at.

    Raises:
        AlreadyUp: there is one.
    """
    if (other := find(path)) is not None:
        raise AlreadyUp(path, other)


@contextmanager
def announced(ready: Ready, path: Path) -> Iterator[None]:
    """Keep the ready file at `path` for the length of the context."""
    write_whole(path, asdict(ready))
    try:
        yield
    finally:
        # Another stack may have announced itself at the same place since.
        if _read(path) == ready:
            path.unlink(missing_ok=True)


def find(path: Path = READY_FILE) -> Ready | None:
    """Return the stack announced at `path`, if its process still lives."""
    ready = _read(path)
    if ready is None:
        return None
    try:
        os.kill(ready.pid, 0)
    except ProcessLookupError:
        return None
    return ready


def write_whole(path: Path, content: object) -> None:
    """Write JSON so that a reader finds all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(content, indent=2) + "\n")
    aside.replace(path)


def _read(path: Path) -> Ready | None:
    with suppress(OSError, ValueError, TypeError):
        return Ready(**json.loads(path.read_text()))
    return None
