"""The project whose stack runs on this machine: the folder with the `cdk.json`, which may be this checkout."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime_cdk.environments import LOCAL
from duetime_cdk.handlers_folder import METADATA, HandlersNotFound, handlers_of
from duetime_cdk.sources import CONSTRAINTS, CORE, FUNCTIONS, REQUIREMENTS, project_folder
from infra import ROOT
from infra.environments import environment_named

if TYPE_CHECKING:
    from collections.abc import Iterator

ASSEMBLY = Path("build", "assembly")
"""Where the synthesized stack is kept, in the folder of the project."""
STACK = f"duetime-{LOCAL}"
_CONSTRUCTS = ROOT / "infra" / "cdk" / "duetime_cdk"
_FILES = ("cdk.json", "package-lock.json", "pyproject.toml")


def is_checkout() -> bool:
    """Whether the project is the checkout itself, with the demo's handlers."""
    return project_folder() == ROOT


def handlers_package() -> Path:
    """The folder of the package of handlers that the project deploys to this machine.

    Raises:
        HandlersNotFound: it names none, or its stack has not been synthesized yet.
    """
    if is_checkout():
        return handlers_of(environment_named(LOCAL)).package
    for file in (project_folder() / ASSEMBLY).glob(f"*/{STACK}.metadata.json"):
        metadata: dict[str, list[dict[str, Any]]] = json.loads(file.read_text(encoding="utf-8"))
        for entry in metadata.get(f"/{STACK}", ()):
            if entry["type"] == METADATA:
                return Path(entry["data"])
    raise HandlersNotFound(f"the app of {project_folder()} has no stack {STACK!r} for `-c env={LOCAL}`")


def template_inputs() -> Iterator[Path]:
    """The files that the project's template is made of, without its handlers."""
    project = project_folder()
    for folder in (_CONSTRUCTS, FUNCTIONS, CORE, *([ROOT / "infra"] if is_checkout() else [])):
        yield from _files_of(folder)
    yield from (CONSTRAINTS, REQUIREMENTS)
    yield from (project / name for name in _FILES if (project / name).is_file())
    yield from project.glob("*.py")
    # What handlers may do is part of the template; what they are is not.
    for pattern in ("*/grants.json", "*/*/grants.json"):
        yield from (path for path in project.glob(pattern) if "node_modules" not in path.parts)


def _files_of(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(parent) / name for name in names)
