"""Gives the handlers' code the paths of the user's own files, which tracebacks and warnings then name.

A function imports handlers from an unpacked layer, in a temporary folder. This module is copied as `sitecustomize` of
the functions' processes, so it imports the standard library only.
"""

from __future__ import annotations

import os
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

PACKAGE_FILE = "handlers-package"
"""The file, in the temporary folder of the processes, with the path of the user's package."""


def named(code: CodeType, path: str) -> CodeType:
    """The code of a module, with another path in it and in all of its functions."""
    constants = tuple(named(each, path) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=path, co_consts=constants)


def own_path(path: str, package: Path) -> str | None:
    """The user's file of a module of a layer; `None` if it is not the package's, or has been deleted."""
    layer, found, inner = path.partition(f"/python/{package.name}/")
    own = package / inner
    return str(own) if found and layer.rsplit("/", 2)[-2:-1] == ["layers"] and own.is_file() else None


def install(package: Path) -> None:
    """Rename the code of modules that are imported from now on."""
    load = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        code = load(loader, fullname)
        path = own_path(loader.path, package)
        return code if code is None or path is None else named(code, path)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]  # there is no hook for this


if __name__ == "sitecustomize":
    _file = Path(os.environ.get("TMPDIR", ""), PACKAGE_FILE)
    if _file.is_file():
        install(Path(_file.read_text(encoding="utf-8")))
