"""Finds the files of the project whose stack runs on this machine. The project can be a checkout of duetime itself."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duetime_cdk
from duetime_cdk.environments import LOCAL
from duetime_cdk.handlers_folder import METADATA, METADATA_OF_PACKAGES, HandlersNotFound, handlers_of
from duetime_cdk.layers.build import Packages
from duetime_cdk.source_folders import (
    CHECKOUT,
    CLIENT,
    COMMON,
    CONSTRAINTS,
    CORE,
    FUNCTIONS,
    REQUIREMENTS,
    project_folder,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_cdk.environments import Environment

ASSEMBLY = Path("build", "assembly")
"""The folder for synthesized stacks, relative to the project."""
STACK = f"duetime-{LOCAL}"
_CONSTRUCTS = Path(duetime_cdk.__file__).parent
_FILES = ("cdk.json", "package-lock.json", "pyproject.toml")


class ExampleMissing(RuntimeError):
    """The examples were requested outside a checkout."""

    def __init__(self) -> None:
        super().__init__("the demo runs the examples of duetime's own repository: start it in a checkout")


def is_checkout() -> bool:
    """Whether the project is a checkout of duetime itself, which contains the demo's handlers."""
    return project_folder() == CHECKOUT


def example(name: str) -> Path:
    """Return the path of a file in the checkout's examples, given its relative path.

    Raises:
        ExampleMissing: duetime was installed from its wheels, which do not contain the examples.
    """
    if CHECKOUT is None:
        raise ExampleMissing
    return CHECKOUT / "examples" / name


def handlers_package() -> Path:
    """Return the folder of the handlers package that the worker on this machine runs.

    Raises:
        HandlersNotFound: the project has no handlers package, or its stack has not been synthesized yet.
    """
    if is_checkout():
        return handlers_of(_settings()).package
    found = _metadata(METADATA)
    if found is None:
        raise HandlersNotFound(f"the app of {project_folder()} has no stack {STACK!r} for `-c env={LOCAL}`")
    return Path(found)


def further_packages() -> Packages:
    """Return the additional handlers packages, which run in their own functions."""
    if is_checkout():
        settings = _settings()
        return Packages.of(handlers_of(settings), settings.handlers_packages)
    return Packages.of_description(_metadata(METADATA_OF_PACKAGES) or {})


def _settings() -> Environment:
    # The settings exist only in a checkout, not in the wheels.
    from infra.environments import environment_named  # noqa: PLC0415 - see above

    return environment_named(LOCAL)


def _metadata(kind: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the synthesized stack's metadata of a kind; `None` if the stack has no such metadata."""
    for file in (project_folder() / ASSEMBLY).glob(f"*/{STACK}.metadata.json"):
        metadata: dict[str, list[dict[str, Any]]] = json.loads(file.read_text(encoding="utf-8"))
        for entry in metadata.get(f"/{STACK}", ()):
            if entry["type"] == kind:
                return entry["data"]
    return None


def template_inputs() -> Iterator[Path]:
    """Yield the files on which the project's template depends, except the handlers' code."""
    project = project_folder()
    own = [CHECKOUT / "infra"] if CHECKOUT is not None and is_checkout() else []
    for folder in (_CONSTRUCTS, FUNCTIONS, CORE, COMMON, CLIENT, *own):
        yield from _files_of(folder)
    yield from (CONSTRAINTS, REQUIREMENTS)
    yield from (project / name for name in _FILES if (project / name).is_file())
    yield from project.glob("*.py")
    # The handlers' permissions are part of the template; their code is not.
    for pattern in ("*/grants.json", "*/*/grants.json"):
        yield from (path for path in project.glob(pattern) if "node_modules" not in path.parts)


def _files_of(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(parent) / name for name in names)
