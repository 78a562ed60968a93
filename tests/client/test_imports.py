"""Tests the client's import cost by counting modules, because import times differ between machines."""

from __future__ import annotations

import subprocess
import sys

import grimp
import pytest

COUNT = """
import sys
{code}
print(*sorted({{name.partition(".")[0] for name in sys.modules if name[0] != "_"}} - sys.stdlib_module_names))
print(sum(name.startswith("duetime_client") for name in sys.modules))
"""


def _imported(code: str) -> tuple[set[str], int]:
    """Return the libraries that some code imports, and how many of the client's modules."""
    script = [sys.executable, "-I", "-c", COUNT.format(code=code)]
    printed = subprocess.run(script, check=True, capture_output=True, text=True)  # noqa: S603 - our own code
    libraries, own = printed.stdout.splitlines()
    return set(libraries.split()), int(own)


@pytest.mark.parametrize("names", ["AsyncClient, Client", "NotFound, RateLimited"])
def test_importing_the_clients_imports_no_library(names: str) -> None:
    """Importing the clients imports neither httpx nor pydantic; both libraries are imported when first used."""
    libraries, own = _imported(f"from duetime_client import {names}")
    assert libraries == {"duetime_client"}
    assert own <= 11


def test_a_client_imports_resources_only_when_they_are_used() -> None:
    """The models of schedules and topologies are imported only when they are used."""
    _, own = _imported("from duetime_client import Client; Client('http://localhost').tasks")
    assert own <= 34
    libraries, _ = _imported("from duetime_client import Client; Client('http://localhost')")
    assert "pydantic" not in libraries


def test_the_client_has_no_import_cycles() -> None:
    """The client has no import cycles, neither at run time nor for the type checker."""
    graph = grimp.build_graph("duetime_client", cache_dir=None)
    cycles = [
        (module, imported)
        for module in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(module))
        if graph.chain_exists(importer=imported, imported=module)
    ]
    assert cycles == []
