from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

import duetime
import duetime_common
import functions
from duetime_cdk.environments import FunctionName

BUDGET = {
    "api": 215,
    "trigger": 167,
    "worker": 169,
    "topology": 167,
    "bulk": 167,
    "deadletter": 167,
    "broadcast": 167,
    "watch": 215,
    "console": 0,
    "archive": 167,
    "egress": 169,
    "intake": 215,
    "handlers": 167,
    "attempts": 167,
    "authorizer": 167,
}
"""How many modules of libraries each function imports when it starts. How long that takes is measured in `bench`."""
MOST_MODULES = {"api": 135, "intake": 85}
"""How many modules of duetime the functions import that start slowest: what few invocations need is imported later."""
MOST_COLLECTIONS = 2
"""How often the garbage collector looks at more than the youngest objects while a function is imported."""
_ORDINARY = re.compile(r"^ *@dataclass\(frozen=True, slots=True(?!, eq=False)", re.MULTILINE)
"""A dataclass that `frozen` could make: it has no way to compare by identity."""
SCRIPT = """
import gc, sys
before = sum(generation["collections"] for generation in gc.get_stats()[1:])
import functions.{function}.handler
# What begins with an underscore is of the machine, not of the function.
names = [name for name in sys.modules if name[0] != "_" and name.partition(".")[0] not in sys.stdlib_module_names]
libraries = [name for name in names if name.partition(".")[0] not in ("duetime", "duetime_common", "functions")]
collections = sum(generation["collections"] for generation in gc.get_stats()[1:]) - before
print(len(libraries), len(names) - len(libraries), collections)
"""


def test_every_function_has_a_budget() -> None:
    """None is left out."""
    assert set(BUDGET) == {name.value for name in FunctionName}


@pytest.mark.parametrize("function", BUDGET)
def test_a_function_imports_no_more_than_its_budget(function: str) -> None:
    """A starting function imports no more than its written limit, and collects no garbage meanwhile."""
    script = SCRIPT.format(function=function)
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)  # noqa: S603 - our own
    libraries, own, collections = map(int, told.stdout.split())
    assert libraries <= BUDGET[function]
    assert own <= MOST_MODULES.get(function, own)
    assert collections <= MOST_COLLECTIONS


def test_frozen_classes_are_cheap_to_create() -> None:
    """The core uses `frozen`: a start takes half as long again with `dataclass(frozen=True, slots=True)`."""
    folders = (Path(package.__path__[0]) for package in (duetime, duetime_common, functions))
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    assert [path.name for path in paths if _ORDINARY.search(path.read_text())] == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    """The core has no import cycles, at run time or for the type checker."""
    graph = grimp.build_graph("duetime", "duetime_common", "functions", cache_dir=None)
    cycles = [
        (module, imported)
        for module in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(module))
        if graph.chain_exists(importer=imported, imported=module)
    ]
    assert cycles == []


def test_no_import_is_late_in_vain() -> None:
    """A module that is imported with its importer is not imported again within a function, as if that saved time."""
    core = Path(duetime.__path__[0])
    late: list[str] = []
    for path in core.rglob("*.py"):
        tree = ast.parse(path.read_text())
        at_start = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        within = {node.module for each in functions for node in ast.walk(each) if isinstance(node, ast.ImportFrom)}
        late += [f"{path.relative_to(core)}: {module}" for module in sorted(filter(None, within & at_start))]
    assert late == []
