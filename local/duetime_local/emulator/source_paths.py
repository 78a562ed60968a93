"""Changes the paths in the handlers' code to those of the user's own files, which tracebacks and warnings then show.

A function imports handlers from an unpacked layer in a temporary folder. This module is copied into the functions'
processes as `sitecustomize`, so it imports only the standard library.
"""

from __future__ import annotations

import os
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

PACKAGE_FILE = "handlers-package"
"""The file in the processes' temporary folder that contains the path of the user's package."""


def named(code: CodeType, path: str) -> CodeType:
    """Return a copy of a module's code in which the module and all of its functions have another path."""
    constants = tuple(named(each, path) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=path, co_consts=constants)


def own_path(path: str, package: Path) -> str | None:
    """Return the path of the user's file for a module in a layer.

    The path is `None` if the module is not in the user's package or the file no longer exists.
    """
    layer, found, inner = path.partition(f"/python/{package.name}/")
    own = package / inner
    return str(own) if found and layer.rsplit("/", 2)[-2:-1] == ["layers"] and own.is_file() else None


def install(package: Path) -> None:
    """Change the paths in the code of all modules of the package that are imported after this call."""
    load = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        code = load(loader, fullname)
        path = own_path(loader.path, package)
        return code if code is None or path is None else named(code, path)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]  # Python has no hook for this


if __name__ == "sitecustomize":
    _file = Path(os.environ.get("TMPDIR", ""), PACKAGE_FILE)
    if _file.is_file():
        install(Path(_file.read_text(encoding="utf-8")))
