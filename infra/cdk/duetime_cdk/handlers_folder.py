"""The folder of a project's handlers: their package, its `requirements.txt` and its `grants.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime_cdk.errors import NotDeployable
from duetime_cdk.source_folders import project_folder

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.environments import Environment

METADATA = "duetime:handlers"
"""Metadata type in the assembly's manifest that holds the folder of the package."""
_GRANTS = "grants.json"


class HandlersNotFound(NotDeployable):
    """The settings name no handlers folder, or one without a package."""


@dataclass(frozen=True, slots=True)
class HandlersFolder:
    """The code of a project that is deployed."""

    package: Path
    """The folder of the package; its name is the package's import name."""

    @property
    def grants(self) -> list[dict[str, Any]]:
        """The IAM statements for the worker's role; empty without a `grants.json`."""
        path = self.package.parent / _GRANTS
        statements: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        return statements


def handlers_of(environment: Environment, project: Path | None = None) -> HandlersFolder:
    """Find the handlers of an environment.

    Args:
        environment: the settings.
        project: the folder that `handlers_folder` is relative to; the project's own by default.

    Raises:
        HandlersNotFound: the settings name no folder, or it lacks the named package.
    """
    if not environment.handlers_folder:
        raise HandlersNotFound(
            f"environment {environment.name!r} names no handlers: set `handlers_folder` to the folder that holds your"
            " package of handlers, such as 'handlers'"
        )
    folder = (project or project_folder()) / environment.handlers_folder
    name = environment.handlers_package or _only_package(folder, environment)
    package = folder / name
    if not (package / "__init__.py").is_file():
        raise HandlersNotFound(
            f"environment {environment.name!r}: there is no package of handlers in {package}; it needs an `__init__.py`"
        )
    return HandlersFolder(package)


def _only_package(folder: Path, environment: Environment) -> str:
    found = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    if len(found) == 1:
        return found[0]
    contents = f"holds {len(found)} packages ({', '.join(found)})" if found else "holds no package"
    raise HandlersNotFound(
        f"environment {environment.name!r}: the folder of handlers {folder} {contents}; it needs one, or"
        " `handlers_package` to say which"
    )
