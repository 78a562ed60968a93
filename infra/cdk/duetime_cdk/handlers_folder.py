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
"""Type of the metadata, in the manifest of the assembly, that names the folder of the package."""
_GRANTS = "grants.json"


class HandlersNotFound(NotDeployable):
    """The settings name no folder of handlers, or one without a package."""


@dataclass(frozen=True, slots=True)
class HandlersFolder:
    """What is deployed of a project's own code."""

    package: Path
    """The folder of the package; its name is the package's import name."""

    @property
    def grants(self) -> list[dict[str, Any]]:
        """The IAM statements that the worker's role is given; none without a `grants.json`."""
        path = self.package.parent / _GRANTS
        statements: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        return statements


def handlers_of(environment: Environment, project: Path | None = None) -> HandlersFolder:
    """The handlers that the settings of an environment name.

    Args:
        environment: the settings.
        project: the folder that `handlers_folder` is relative to; the project's own by default.

    Raises:
        HandlersNotFound: they name none, or one that has not got what is named.
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
