"""Tests that the embedded AWS's processes share unpacked layers, and end only between two invocations."""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime_local.emulator.shared_layers import FOLDERS, GentleEnd, SharedLayers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_local.emulator.shared_layers import Process as AnyProcess


@dataclass
class Process:
    """A function's process, as the emulator represents it."""

    config: dict[str, Any] = field(default_factory=dict)
    in_use: bool = False


def archive(name: str) -> bytes:
    """Return a layer with one file."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        packed.writestr(f"python/{name}.py", name)
    return content.getvalue()


def test_a_layer_version_is_unpacked_once_for_all_processes(tmp_path: Path) -> None:
    """Two processes import from the same folders, in the layers' order, and keep their configurations."""
    asked: list[str] = []
    started: list[dict[str, Any]] = []

    def archive_of(layer: dict[str, str]) -> bytes:
        asked.append(layer["Arn"])
        return archive(layer["Arn"])

    layers = SharedLayers(tmp_path, archive_of)
    config = {"Layers": [{"Arn": "one"}, {"Arn": "two"}], "Environment": {"Variables": {"KEPT": "yes"}}}
    processes = [Process(config), Process(config)]

    for process in processes:
        layers.start(lambda one: started.append(one.config), process)

    assert asked == ["one", "two"]
    assert [process.config for process in processes] == [config, config]
    first, second = started
    assert first == second
    assert first["Layers"] == []
    variables = first["Environment"]["Variables"]
    assert variables["KEPT"] == "yes"
    folders = variables[FOLDERS].split(os.pathsep)
    assert [[path.name for path in Path(folder, "python").iterdir()] for folder in folders] == [["one.py"], ["two.py"]]


def test_a_process_of_a_changed_function_ends_after_its_invocation() -> None:
    """If a function changes, an idle process ends at once, and a busy process ends once, as soon as it is released."""
    killed: list[AnyProcess] = []
    released: list[AnyProcess | None] = []

    def kill(processes: Sequence[AnyProcess]) -> None:
        killed.extend(processes)

    ends = GentleEnd(kill, released.append)
    idle, busy, other = Process(), Process(in_use=True), Process(in_use=True)

    ends.end([idle, busy])
    assert killed == [idle]

    ends.release(other)
    assert killed == [idle]

    ends.release(busy)
    ends.release(busy)
    assert killed == [idle, busy]
    assert released == [other, busy, busy]
