from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import grimp
import pytest

import duetime
import duetime_common
import functions
from bench.cold_start import ENVIRONMENT
from duetime.composition import prepare
from duetime.environment_variables import Variable
from duetime.settings import SettingMissing, Settings
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
"""The number of library modules that each function may import at startup; `bench` measures the time."""
CLIENTS = {
    "api": ["dynamodb", "sqs"],
    "trigger": ["dynamodb", "sqs", "lambda"],
    "worker": ["dynamodb", "sqs"],
    "topology": ["dynamodb", "sqs", "lambda", "stepfunctions"],
    "bulk": ["dynamodb", "sqs", "lambda"],
    "deadletter": ["dynamodb", "sqs"],
    "broadcast": ["dynamodb", "apigatewaymanagementapi"],
    "watch": ["dynamodb"],
    "console": [],
    "archive": ["s3", "dynamodb"],
    "egress": [],
    "intake": ["dynamodb", "sqs"],
    "handlers": ["lambda"],
    "attempts": ["dynamodb", "lambda"],
    "authorizer": ["dynamodb"],
}
"""The AWS clients that each function creates at startup, so that the first invocations need not create them."""
MOST_MODULES = {"api": 135, "intake": 85}
"""The maximum number of duetime modules in the two functions that start slowest.

Rarely needed modules are loaded later.
"""
MOST_COLLECTIONS = 2
"""The maximum number of garbage collections beyond the youngest generation while a function is imported."""
_ORDINARY = re.compile(r"^ *@dataclass\(frozen=True, slots=True(?!, eq=False)", re.MULTILINE)
"""Matches dataclasses that could use the decorator `frozen`, which does not support `eq=False`."""
SCRIPT = """
import gc, sys
before = sum(generation["collections"] for generation in gc.get_stats()[1:])
prepared = []
if "{function}" != "console":
    import duetime.composition
    duetime.composition.prepare = prepared.append
import functions.{function}.handler
# What begins with an underscore is of the machine, not of the function.
names = [name for name in sys.modules if name[0] != "_" and name.partition(".")[0] not in sys.stdlib_module_names]
libraries = [name for name in names if name.partition(".")[0] not in ("duetime", "duetime_common", "functions")]
collections = sum(generation["collections"] for generation in gc.get_stats()[1:]) - before
print(len(libraries), len(names) - len(libraries), collections)

import socket
from botocore.session import Session
def refuse(*call): raise AssertionError("it calls AWS")
socket.socket.connect = refuse
create, clients = Session.create_client, []
Session.create_client = lambda session, service, *call, **options: (
    clients.append(service), create(session, service, *call, **options)
)[1]
for compose in prepared:
    compose()
    at_start = list(clients)
    compose()
assert clients == at_start if prepared else not clients
print(*clients)
"""


def test_every_function_has_a_budget() -> None:
    """Each function has a budget for the number of imported modules."""
    assert set(BUDGET) == {name.value for name in FunctionName}


@cache
def started(function: str) -> list[str]:
    """Import and prepare a function in a new process; return its output, with the counts first and the clients last."""
    environ = {**os.environ, **ENVIRONMENT}
    command = [sys.executable, "-c", SCRIPT.format(function=function)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environ)  # noqa: S603 - our own code
    return printed.stdout.splitlines()


@pytest.mark.parametrize("function", BUDGET)
def test_a_function_imports_no_more_than_its_budget(function: str) -> None:
    """At startup, a function imports no more modules than its budget allows, and rarely collects garbage."""
    libraries, own, collections = map(int, started(function)[0].split())
    assert libraries <= BUDGET[function]
    assert own <= MOST_MODULES.get(function, own)
    assert collections <= MOST_COLLECTIONS


@pytest.mark.parametrize("function", CLIENTS)
def test_a_function_creates_its_clients_before_its_first_invocation(function: str) -> None:
    """Each client is created once, without a call to AWS, at initialization, when Lambda grants a full vCPU."""
    assert started(function)[-1].split() == CLIENTS[function]


def test_importing_a_function_composes_its_services_only_in_lambda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing a function composes the function's services in Lambda, but not elsewhere, such as in tests."""
    composed: list[str] = []
    monkeypatch.delenv(Variable.FUNCTION_NAME, raising=False)
    prepare(lambda: composed.append("elsewhere"))
    monkeypatch.setenv(Variable.FUNCTION_NAME, "duetime-worker")
    prepare(lambda: composed.append("in Lambda"))
    assert composed == ["in Lambda"]


def test_an_error_while_a_function_starts_is_postponed_to_the_first_invocation(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error at a function's startup is raised only by the first invocation.

    Otherwise, Lambda would restart the function repeatedly, without an error message.
    """
    monkeypatch.setenv(Variable.FUNCTION_NAME, "duetime-worker")
    prepare(lambda: Settings({}).table)
    with pytest.raises(SettingMissing):
        Settings({}).table  # noqa: B018 - it raises


def test_frozen_classes_are_cheap_to_create() -> None:
    """The core uses `frozen`, because startup takes 50% longer with `dataclass(frozen=True, slots=True)`."""
    folders = (Path(package.__path__[0]) for package in (duetime, duetime_common, functions))
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    assert [path.name for path in paths if _ORDINARY.search(path.read_text())] == []


def test_the_core_has_no_import_cycles() -> None:
    """The core has no import cycles, including imports that only the type checker needs."""
    graph = grimp.build_graph("duetime", "duetime_common", "functions", cache_dir=None)
    cycles = [
        (module, imported)
        for module in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(module))
        if graph.chain_exists(importer=imported, imported=module)
    ]
    assert cycles == []


def test_a_module_imported_at_the_top_is_not_imported_within_functions() -> None:
    """A module that is imported at the top of a file is not imported again within a function."""
    core = Path(duetime.__path__[0])
    late: list[str] = []
    for path in core.rglob("*.py"):
        tree = ast.parse(path.read_text())
        at_start = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        within = {node.module for each in functions for node in ast.walk(each) if isinstance(node, ast.ImportFrom)}
        late += [f"{path.relative_to(core)}: {module}" for module in sorted(filter(None, within & at_start))]
    assert late == []
