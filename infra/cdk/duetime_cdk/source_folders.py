"""Where the code of the functions and of the layers is: in this package, as its wheel carries it, or in a checkout."""

from __future__ import annotations

from pathlib import Path

import duetime

_BUNDLED = Path(__file__).parent / "assets"
CHECKOUT = None if _BUNDLED.is_dir() else Path(__file__).parents[3]
"""The folder of the checkout; none if this package was installed from its wheel."""
_SOURCES = CHECKOUT or _BUNDLED
_PROJECT_FILE = "cdk.json"

FUNCTIONS = _SOURCES / "functions"
"""The folders of the functions."""
CORE = Path(duetime.__file__).parent
"""The package that all functions import."""
REQUIREMENTS = _SOURCES / "pyproject.toml"
"""Lists what that package needs."""
CONSTRAINTS = _SOURCES / "constraints.txt"
"""Pins the versions of what the layers contain."""


def project_folder(start: Path | None = None) -> Path:
    """The folder of the project that is deployed: the nearest one, from here upward, with a `cdk.json`.

    Without one, it is the checkout, or the working directory.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / _PROJECT_FILE).is_file():
            return folder
    return CHECKOUT or here


def node_package(name: str) -> Path:
    """Where a Node package, or a command of one, is if it is installed: in the project, or else in the checkout."""
    found = project_folder() / "node_modules" / name
    return found if CHECKOUT is None or found.exists() else CHECKOUT / "node_modules" / name
