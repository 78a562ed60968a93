"""Finds the folder with a project's handlers, which contains a package, `requirements.txt` and `grants.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from duetime_cdk.errors import NotDeployable
from duetime_cdk.source_folders import NO_HANDLERS, project_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from duetime_cdk.environments import Environment

METADATA = "duetime:handlers"
"""Metadata type for the package's folder in the cloud assembly's manifest."""
METADATA_OF_PACKAGES = "duetime:handlers-packages"
"""Metadata type for the folders of additional packages, by name, with the types of each package."""
_GRANTS = "grants.json"


class HandlersNotFound(NotDeployable):
    """The settings name no handlers folder, or a folder without a package."""


@dataclass(frozen=True, slots=True)
class HandlersFolder:
    """The code of a project that the stack deploys."""

    package: Path
    """The folder of the package; its name is the package's import name."""
    packages: Mapping[str, HandlersFolder] = field(default_factory=dict)
    """The packages with their own functions, by their names in the stack."""

    @property
    def grants(self) -> list[dict[str, Any]]:
        """The IAM statements for the role of the handlers' function; empty if there is no `grants.json`."""
        path = self.package.parent / _GRANTS
        statements: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        return statements


def handlers_of(environment: Environment, project: Path | None = None) -> HandlersFolder:
    """Find the handlers of an environment.

    Args:
        environment: the settings.
        project: the folder to which the folders in the settings are relative; by default, the project's folder.

    Raises:
        HandlersNotFound: the settings name no folder, or a folder lacks the named package.
    """
    root = project or project_folder()
    where = f"environment {environment.name!r}"
    packages = {
        each.name: _handlers_in(root / each.folder, each.package, where) for each in environment.handlers_packages
    }
    if environment.handlers_folder:
        own = _handlers_in(root / environment.handlers_folder, environment.handlers_package, where)
    elif packages:
        own = HandlersFolder(NO_HANDLERS)
    else:
        raise HandlersNotFound(
            f"{where} names no handlers: set `handlers_folder` to the folder that holds your package of handlers, such"
            " as 'handlers'"
        )
    return replace(own, packages=packages)


def _handlers_in(folder: Path, package: str, where: str) -> HandlersFolder:
    package = package or _only_package(folder, where)
    path = folder / package
    if not (path / "__init__.py").is_file():
        raise HandlersNotFound(f"{where}: there is no package of handlers in {path}; it needs an `__init__.py`")
    return HandlersFolder(path)


def _only_package(folder: Path, where: str) -> str:
    found = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    if len(found) == 1:
        return found[0]
    contents = f"holds {len(found)} packages ({', '.join(found)})" if found else "holds no package"
    raise HandlersNotFound(
        f"{where}: the folder of handlers {folder} {contents}; it needs one, or `handlers_package` to say which"
    )
