"""Imports the user's handlers at build time, so that a package that cannot be imported is not deployed.

The import also lists the task types that have a handler. With this list, the API rejects other types without importing
the package itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime_cdk.errors import NotDeployable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MODULE = "duetime_handler_types"
"""Import name of the module that lists the types."""
_IMPORT = """
import importlib, json, pathlib, sys
importlib.import_module(sys.argv[1])
from duetime.handlers import REGISTRY
from duetime.handlers.options import description
described = {name: description(REGISTRY[name]) for name in sorted(REGISTRY)}
pathlib.Path(sys.argv[2]).write_text(json.dumps(described))
"""
_REGION = "us-east-1"
"""Region for AWS clients that a package creates during the import; in Lambda, the function's Region is set."""
_LINES = 15
_FRAME = "  File "
_MACHINERY = ("<frozen importlib", "<string>", "/importlib/__init__.py")


class HandlersUnimportable(NotDeployable):
    """The user's package of handlers raises an error when it is imported."""

    def __init__(self, package: str, output: str) -> None:
        lines = "\n".join(f"  {line}" for line in _without_machinery(output.strip().splitlines())[-_LINES:])
        super().__init__(
            f"the package of handlers {package!r} cannot be imported by Python {_VERSION}; nothing is deployed:"
            f"\n{lines}"
        )


class HandlersMisplaced(NotDeployable):
    """A package has a handler for a type that the settings do not give to this package."""


_VERSION = ".".join(map(str, sys.version_info[:3]))


def _without_machinery(lines: Sequence[str]) -> list[str]:
    """The lines of a traceback, without lines of the import machinery."""
    found = []
    is_own = True
    for line in lines:
        if line.startswith(_FRAME):
            is_own = not any(place in line for place in _MACHINERY)
        if is_own or not line.startswith(" "):
            found.append(line)
    return found


def reject_invalid_syntax(package: Path) -> None:
    """Parse all modules of a package without running them.

    Raises:
        HandlersUnimportable: a module is not valid Python; the error names the line.
    """
    for path in sorted(package.rglob("*.py")):
        try:
            compile(path.read_bytes(), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise HandlersUnimportable(package.name, "".join(traceback.format_exception_only(error))) from None


def described_handlers(package: str, folders: Sequence[Path], source: Path | None = None) -> Mapping[str, Any]:
    """Import a package in a separate process, and describe its handlers by task type.

    Args:
        package: the package's import name.
        folders: import paths for the package, its requirements and duetime, in addition to the current environment.
        source: the folder to show in errors in place of the first entry of `folders`, which is a copy of it.

    Raises:
        HandlersUnimportable: the import raises an error.
    """
    with tempfile.TemporaryDirectory() as aside:
        answer = Path(aside) / "types.json"
        path = os.pathsep.join(str(folder) for folder in folders)
        environ = {"AWS_DEFAULT_REGION": _REGION, **os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", _IMPORT, package, str(answer)]
        # This runs the user's own package, which the worker also imports.
        ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)  # noqa: S603
        if ended.returncode or not answer.exists():
            output = ended.stderr if source is None else ended.stderr.replace(str(folders[0]), str(source))
            raise HandlersUnimportable(package, output)
        described: Mapping[str, Any] = json.loads(answer.read_text())
        return described


def reject_misplaced(types: Iterable[str], package: str, patterns: Mapping[str, Sequence[str]]) -> None:
    """Check that a package has handlers only for types that the worker searches for in that package.

    Args:
        types: the types that have a handler in the package.
        package: the package's name in the stack; empty for the worker's own package.
        patterns: the type patterns of each package that has its own function.

    Raises:
        HandlersMisplaced: a type does not belong to the package.
    """
    for task_type in types:
        found = [name for name, each in patterns.items() if any(fnmatchcase(task_type, one) for one in each)]
        if found == ([package] if package else []):
            continue
        where = f"the package of handlers {package!r}" if package else "`handlers_folder`"
        owners = " and ".join(map(repr, found)) or "none of `handlers_packages`"
        raise HandlersMisplaced(
            f"{where} has a handler for {task_type!r}, but that type belongs to {owners}: change `types` in its"
            " settings, or the type"
        )


def module_text(handlers: Mapping[str, Any]) -> str:
    """The source of the module that lists the types and describes their handlers."""
    docstring = '"""The task types that have a handler, written when the layers were built."""'
    lines = "".join(f"    {name!r}: {form!r},\n" for name, form in handlers.items())
    return f"{docstring}\n\nTYPES = {tuple(handlers)!r}\nHANDLERS = {{\n{lines}}}\n"
