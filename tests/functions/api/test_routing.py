from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from duetime.contract.http.operation import subject_of
from duetime.contract.openapi.document import OPERATIONS
from duetime.contract.tasks import operations
from functions.api import routing
from functions.api.responses import Response
from functions.api.routing import BindingWrong, route

if TYPE_CHECKING:
    from functions.api.requests import Request


def _ok(request: Request) -> Response:  # noqa: ARG001 - any handler
    return Response(200)


def test_every_operation_of_the_contract_has_its_handler() -> None:
    """Each declared operation has a handler, and each handler has a declared operation."""
    assert set(routing.bound()) == set(OPERATIONS)


def test_a_handler_is_found_from_the_path_of_its_operation() -> None:
    """The path of each operation leads to the module with the operation's handler."""
    for operation in OPERATIONS:
        modules = {f"functions.api.{name}" for name in routing._HANDLED_IN[subject_of(operation.path)]}
        assert routing.bound()[operation].__module__ in modules


def test_the_start_does_not_import_modules_that_tasks_do_not_need() -> None:
    """At startup, the function does not import the contracts of schedules, topologies, bulk operations or leases."""
    script = """
import sys
import functions.api.handler
late = ("schedules", "topologies", "bulk", "leases", "explanations", "live_updates")
print([name for name in sys.modules if name.startswith("duetime.contract.") and name.split(".")[2] in late])
"""
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)  # noqa: S603 - our own code
    assert told.stdout.strip() == "[]"


def test_the_function_does_not_start_if_an_operation_has_two_handlers() -> None:
    """If an operation has two handlers, the function does not start."""
    with pytest.raises(BindingWrong, match="createTask has two handlers"):
        route(operations.CREATE)(_ok)
