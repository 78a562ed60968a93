"""Build the Lambda layers, without Docker.

Each layer is built in a folder named after the hash of its inputs, so that a repeated build reuses the folder, and a
deployment never contains a stale layer. The network is needed only when a dependency has changed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import tomllib
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING, Any

from duetime_cdk.layers.bytecode import write_bytecode
from duetime_cdk.layers.handler_import import (
    MODULE,
    described_handlers,
    module_text,
    reject_invalid_syntax,
    reject_misplaced,
)
from duetime_cdk.layers.install import AWS_SERVICES, drop_unused_data, install
from duetime_cdk.layers.target import Target
from duetime_cdk.source_folders import CLIENT, COMMON, CONSTRAINTS, CORE, REQUIREMENTS, project_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from duetime_cdk.handlers_folder import HandlersFolder
    from duetime_cdk.handlers_packages import HandlersPackage

SETTINGS_MODULE = "duetime_settings"
"""Import name of the module that contains variables that are too large for Lambda's environment."""
OUTPUT = Path("build", "layers")
"""Folder where layers are built, relative to the project's folder."""
STALE_AFTER_SECONDS = 3600
"""Age in seconds from which older builds are removed, because another process may still read newer ones."""
_PACKAGES = (CORE, COMMON, CLIENT)
"""The packages of the layer `duetime`."""
_OF_THE_COMMAND = (
    "assistant",
    "commands",
    "importers",
    "manifests",
    "pipeline_templates",
    "project_template",
    "verification",
)
"""Folders of the client that only the command `duetime` needs."""
_OURS = "duetime-"
"""Name prefix of our own distributions, which are never requested from an index."""


def _silent(_line: str) -> None:
    """Reports no progress."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A built layer: a folder with `python/`, and the hash of the inputs that it was built from."""

    folder: Path
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of one deployment."""

    dependencies: Layer
    duetime: Layer
    handlers: Layer
    types: Layer | None = None
    """The layer with the list of task types; `None` if the handlers' package must not be imported here."""
    packages: Mapping[str, Layer] = field(default_factory=dict)
    """The layers of handler packages with their own functions, by the package's name."""


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages of handlers with their own functions.

    Attributes:
        folders: the folder of each package, by name.
        types: the type patterns of each package, by name.
    """

    folders: Mapping[str, Path] = field(default_factory=dict)
    types: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def described(self) -> dict[str, Any]:
        """The packages as JSON values."""
        return {name: {"folder": str(self.folders[name]), "types": [*types]} for name, types in self.types.items()}

    @classmethod
    def of_description(cls, described: Mapping[str, Any]) -> Packages:
        """The packages described by JSON values."""
        folders = {name: Path(each["folder"]) for name, each in described.items()}
        return cls(folders, {name: each["types"] for name, each in described.items()})

    @classmethod
    def of(cls, handlers: HandlersFolder, settings: Iterable[HandlersPackage]) -> Packages:
        """The packages of an environment."""
        folders = {name: each.package for name, each in handlers.packages.items()}
        return cls(folders, {each.name: each.types for each in settings})


NO_PACKAGES = Packages()


def build(
    target: Target,
    handlers: Path,
    *,
    importing: bool = True,
    packages: Packages = NO_PACKAGES,
    report: Callable[[str], None] = _silent,
) -> Layers:
    """Build the missing layers.

    Args:
        target: the platform of the layers.
        handlers: the user's package, next to its `requirements.txt`.
        importing: whether to import the user's package.
        packages: additional packages, which are always imported, because the worker must know their handlers' phases.
        report: receives a line before each layer that is missing.

    Raises:
        HandlersUnimportable: a package cannot be imported.
        HandlersMisplaced: a package has a handler for a type that the settings do not give to this package.
    """
    needed = importing or packages.folders
    types = types_layer(target, handlers if importing else None, report, packages) if needed else None
    dependencies, duetime = dependencies_layer(target, report), duetime_layer(target, report)
    own = {name: handlers_layer(target, folder, report) for name, folder in packages.folders.items()}
    return Layers(dependencies, duetime, handlers_layer(target, handlers, report), types, own)


def dependencies_layer(target: Target, report: Callable[[str], None] = _silent) -> Layer:
    """The layer with the dependencies in `pyproject.toml`, at the versions that `constraints.txt` pins."""
    project = tomllib.loads(REQUIREMENTS.read_text())["project"]
    requirements = [each for each in project["dependencies"] if not each.startswith(_OURS)]

    def fill(packages: Path) -> None:
        install(requirements, CONSTRAINTS, target, packages)
        drop_unused_data(packages)

    return _layer(
        "dependencies", target, _digest(*requirements, CONSTRAINTS.read_text(), *sorted(AWS_SERVICES)), fill, report
    )


def duetime_layer(target: Target, report: Callable[[str], None] = _silent) -> Layer:
    """The layer with duetime's package, the client for handlers, and the package that these two share."""

    def fill(packages: Path) -> None:
        for package in _PACKAGES:
            _copy(package, packages)

    return _layer("duetime", target, _digest(*map(_digest_of_files, _PACKAGES)), fill, report)


def handlers_layer(target: Target, package: Path, report: Callable[[str], None] = _silent) -> Layer:
    """The layer with the user's package, and the requirements in the `requirements.txt` next to it."""
    listed = package.parent / "requirements.txt"
    text = listed.read_text() if listed.exists() else ""
    needed = any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())

    def fill(packages: Path) -> None:
        if needed:
            install(["--requirements", str(listed)], CONSTRAINTS, target, packages)
        _copy(package, packages)

    pins = CONSTRAINTS.read_text() if needed else ""
    return _layer("handlers", target, _digest(_digest_of_files(package), text, pins), fill, report)


def types_layer(
    target: Target,
    package: Path | None,
    report: Callable[[str], None] = _silent,
    packages: Packages = NO_PACKAGES,
) -> Layer:
    """The layer with the list of task types that the packages handle, which are found by importing the packages.

    Raises:
        HandlersUnimportable: a package cannot be imported.
        HandlersMisplaced: a package has a handler for a type that the settings do not give to this package.
    """
    folders = {**({} if package is None else {"": package}), **packages.folders}
    for folder in folders.values():
        reject_invalid_syntax(folder)
    here = {name: handlers_layer(Target.of_this_machine(), folder, report) for name, folder in folders.items()}

    def fill(into: Path) -> None:
        handlers: dict[str, Any] = {}
        for name, folder in folders.items():
            paths = [here[name].folder / "python", *(each.parent for each in _PACKAGES)]
            described = described_handlers(folder.name, paths, folder.parent)
            reject_misplaced(described, name, packages.types)
            handlers |= described
        (into / f"{MODULE}.py").write_text(module_text(dict(sorted(handlers.items()))))

    inputs = [each.fingerprint for each in here.values()]
    patterns = [f"{name}: {' '.join(types)}" for name, types in packages.types.items()]
    return _layer("types", target, _digest(*inputs, *patterns, *map(_digest_of_files, _PACKAGES)), fill, report)


def settings_layer(variables: Mapping[str, str]) -> Layer:
    """The layer with a module that contains variables that are too large for a function's environment."""
    text = f"VARIABLES = {dict(sorted(variables.items()))!r}\n"
    fingerprint = _digest(text)
    final = project_folder() / OUTPUT / f"settings-{fingerprint[:16]}"
    if not final.exists():
        final.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=final.parent, prefix=".building-") as aside:
            packages = Path(aside) / "settings" / "python"
            packages.mkdir(parents=True)
            (packages / f"{SETTINGS_MODULE}.py").write_text(text)
            _move(packages.parent, final)
        _remove_stale(final, "settings")
    return Layer(final, fingerprint)


def types_of(layer: Layer) -> tuple[str, ...]:
    """The task types listed in the layer with task types."""
    types: tuple[str, ...] = run_path(str(layer.folder / "python" / f"{MODULE}.py"))["TYPES"]
    return types


def _layer(
    name: str, target: Target, inputs: str, fill: Callable[[Path], None], report: Callable[[str], None]
) -> Layer:
    """Find the layer built from these inputs, or build it in a temporary folder and move it into place."""
    fingerprint = _digest(inputs, target.tag, *(path.read_text() for path in _builders()))
    final = project_folder() / OUTPUT / target.tag / f"{name}-{fingerprint[:16]}"
    if not final.exists():
        report(f"building the layer {name} for {target.tag}; it is kept in {OUTPUT.as_posix()}")
        final.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=final.parent, prefix=".building-") as aside:
            packages = Path(aside) / name / "python"
            packages.mkdir(parents=True)
            fill(packages)
            write_bytecode(packages.parent, target.python)
            _move(packages.parent, final)
        _remove_stale(final, name)
    return Layer(final, fingerprint)


def _move(built: Path, final: Path) -> None:
    try:
        built.rename(final)
    except OSError:
        # Another process has built the same inputs in the meantime, with an identical result.
        if not final.exists():
            raise


def _remove_stale(final: Path, name: str) -> None:
    oldest = time.time() - STALE_AFTER_SECONDS
    for folder in final.parent.glob(f"{name}-*"):
        if folder != final and folder.stat().st_mtime < oldest:
            shutil.rmtree(folder, ignore_errors=True)


def _copy(package: Path, packages: Path) -> None:
    shutil.copytree(package, packages / package.name, ignore=_left_out(package))


def _left_out(package: Path) -> Callable[[str, list[str]], set[str]]:
    return shutil.ignore_patterns("__pycache__", "*.pyc", *(_OF_THE_COMMAND if package == CLIENT else ()))


def _builders() -> Iterable[Path]:
    """The source files of the build; a change to one of them may change the result for the same inputs."""
    return sorted(path for path in Path(__file__).parent.iterdir() if path.suffix in {".py", ".mjs"})


def _digest_of_files(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return _digest(
        *(f"{path.relative_to(folder).as_posix()}\0{sha256(path.read_bytes()).hexdigest()}" for path in files)
    )


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()
