"""Lists modules that a reader might want longer or shorter (`python -m tests.module_sizes`).

The program never fails, because a reader decides, not a limit, how large a module may be (CONTRIBUTING.md).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import grimp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LISTED = ("duetime", "duetime_client", "duetime_common")
"""Packages whose modules are listed."""
IMPORTING = (*LISTED, "functions", "duetime_cdk", "duetime_local", "duetime_testing")
"""Packages whose imports count."""
LONG, SHORT = 400, 60
"""The numbers of lines above which a module is long, and below which it is short."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module with its length and its importers.

    Attributes:
        name: the dotted name.
        path: the file.
        lines: the number of lines.
        importers: the modules that import it.
    """

    name: str
    path: Path
    lines: int
    importers: frozenset[str]

    @property
    def is_long(self) -> bool:
        """Whether the module may be about more than one subject."""
        return self.lines > LONG

    @property
    def is_satellite(self) -> bool:
        """Whether the module is short, and only modules in the same folder import it."""
        return self.lines < SHORT and {_folder_of(each) for each in self.importers} == {_folder_of(self.name)}


def _folder_of(module: str) -> str:
    return module.rpartition(".")[0]


def modules_of(listed: Iterable[str], importing: Sequence[str]) -> list[Module]:
    """Return the modules of some packages by name, without the packages' `__init__`.

    Args:
        listed: the packages.
        importing: the packages whose imports count; they include `listed`.
    """
    graph = grimp.build_graph(*importing, cache_dir=None)
    found = []
    for package in listed:
        folder = Path(next(iter(import_module(package).__path__)))
        for path in sorted(folder.rglob("*.py")):
            if path.name != "__init__.py":
                name = ".".join((package, *path.relative_to(folder).with_suffix("").parts))
                importers = frozenset(graph.find_modules_that_directly_import(name))
                found.append(Module(name, path, len(path.read_text(encoding="utf-8").splitlines()), importers))
    return found


def report(modules: Sequence[Module]) -> list[str]:
    """Return the lines to print, with the long modules (longest first) and the modules that only a neighbor imports."""
    long = sorted((each for each in modules if each.is_long), key=lambda each: -each.lines)
    satellites = [each for each in modules if len(each.importers) == 1 and each.is_satellite]
    return [
        f"{len(long)} modules of more than {LONG} lines",
        *(f"  {each.lines:5} {each.name}" for each in long),
        f"{len(satellites)} modules of fewer than {SHORT} lines whose only importer is in the same folder",
        *(f"  {each.lines:5} {each.name}, imported by {', '.join(each.importers)}" for each in satellites),
    ]


if __name__ == "__main__":
    sys.stdout.write("\n".join(report(modules_of(LISTED, IMPORTING))) + "\n")
