"""Lets the embedded AWS's Lambda processes share unpacked layers, and ends processes only between invocations.

For each process of a function, MiniStack 1.5.33 unpacks all of the function's layers (50 MB). This module unpacks each
layer version only once, into a folder that all processes share. In AWS, a layer is a read-only folder, too.

When a function's configuration changes, MiniStack kills all of the function's processes. With this module, as in
AWS, a process finishes its invocation first; new invocations use the new configuration at once.

The emulator's own Python runs this module, so it imports only the standard library.
"""

from __future__ import annotations

import os
import threading
import zipfile
from io import BytesIO
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

FOLDERS = "_LAMBDA_LAYERS_DIRS"
"""The environment variable in which the emulator passes the layers' folders to a process."""


class Process(Protocol):
    """The emulator's process for a function."""

    config: dict[str, Any]
    in_use: bool


class SharedLayers:
    """The folders of unpacked layers, one for each layer version in use."""

    def __init__(self, folder: Path, archive_of: Callable[[Any], bytes | None]) -> None:
        self._folder = folder
        self._archive_of = archive_of
        self._unpacked: dict[str, Path] = {}
        self._lock = threading.Lock()

    def start(self, start: Callable[[Process], None], process: Process) -> None:
        """Start a process that imports from the shared folders."""
        config = process.config
        if not config.get("Layers"):
            start(process)
            return
        folders = os.pathsep.join(str(self._folder_of(layer)) for layer in config["Layers"])
        variables = {**config.get("Environment", {}).get("Variables", {}), FOLDERS: folders}
        process.config = {**config, "Layers": [], "Environment": {"Variables": variables}}
        try:
            start(process)
        finally:
            process.config = config

    def _folder_of(self, layer: Any) -> Path:  # noqa: ANN401 - a string or a mapping, as it was set
        version = str(layer if isinstance(layer, str) else layer.get("Arn", ""))
        with self._lock:
            if version not in self._unpacked:
                archive = self._archive_of(layer)
                if archive is None:
                    raise RuntimeError(version)
                folder = self._folder / str(len(self._unpacked))
                with zipfile.ZipFile(BytesIO(archive)) as packed:
                    packed.extractall(folder)
                self._unpacked[version] = folder
            return self._unpacked[version]


class GentleEnd:
    """Ends the processes of a changed function: idle processes at once, and other processes after their invocation."""

    def __init__(self, kill: Callable[[Sequence[Process]], None], release: Callable[[Process | None], None]) -> None:
        self._kill = kill
        self._release = release
        self._leaving: list[Process] = []
        self._lock = threading.Lock()

    def end(self, processes: Iterable[Process]) -> None:
        """End processes that must not run more invocations."""
        with self._lock:
            idle: list[Process] = []
            for process in processes:
                (self._leaving if process.in_use else idle).append(process)
        self._kill(idle)

    def release(self, process: Process | None) -> None:
        """Release a process after its invocation, and end the process if its function has changed."""
        self._release(process)
        with self._lock:
            has_left = any(process is leaving for leaving in self._leaving)
            self._leaving = [leaving for leaving in self._leaving if leaving is not process]
        if has_left and process is not None:
            self._kill([process])
