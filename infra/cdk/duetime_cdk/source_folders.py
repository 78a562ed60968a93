"""Locates the code of the functions and layers, in this package's wheel or in a checkout."""

from __future__ import annotations

from pathlib import Path

import duetime
import duetime_client
import duetime_common

_BUNDLED = Path(__file__).parent / "assets"
CHECKOUT = None if _BUNDLED.is_dir() else Path(__file__).parents[3]
"""The folder of the checkout; `None` if this package was installed from a wheel."""
_SOURCES = CHECKOUT or _BUNDLED
_PROJECT_FILE = "cdk.json"

FUNCTIONS = _SOURCES / "functions"
"""The folders of the functions."""
DEFINITION_RESOURCES = Path(__file__).parent / "definition_resources"
"""The folder of the function behind `Schedule` and `TopologyDefinition`."""
NO_HANDLERS = Path(__file__).parent / "without_handlers" / "no_handlers"
"""The handlers' package of a worker without handlers."""
CORE = Path(duetime.__file__).parent
"""The package that all functions import."""
COMMON = Path(duetime_common.__file__).parent
"""The package that functions and client share."""
CLIENT = Path(duetime_client.__file__).parent
"""The client, which handlers use."""
REQUIREMENTS = _SOURCES / "pyproject.toml"
"""The file that lists the package's requirements."""
CONSTRAINTS = _SOURCES / "constraints.txt"
"""The file that pins the versions of the layers' packages."""


def project_folder(start: Path | None = None) -> Path:
    """The folder of the deployed project, which is the nearest parent folder (or `start`) with a `cdk.json`.

    Without a `cdk.json`, the project is the checkout, or `start`, which is the working directory by default.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / _PROJECT_FILE).is_file():
            return folder
    return CHECKOUT or here


def node_package(name: str) -> Path:
    """The path of an installed Node package or command, in the project, or in the checkout if not there."""
    found = project_folder() / "node_modules" / name
    return found if CHECKOUT is None or found.exists() else CHECKOUT / "node_modules" / name
