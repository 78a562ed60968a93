"""A package of handlers with a function of its own, on the deployed stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from duetime_client import Client
    from duetime_local.stack import Stack

pytestmark = pytest.mark.deployed


def test_a_handler_of_a_package_uses_steps_progress_and_its_client(client: Client) -> None:
    """The task succeeds in the package's function, and its child in the worker."""
    task = client.tasks.create("billing.charge", payload={"amount": 5}, wait_seconds=25)
    result: Any = task.result
    assert (task.state, result["amount"]) == ("succeeded", 5)
    child = client.tasks.get(result["sent_by"])
    assert child.parent_task_id == task.id


def test_the_function_of_a_package_knows_no_table(deployed: Stack) -> None:
    """Its variables name its package and the function that it reports to."""
    functions: Any = deployed.emulator.client("lambda").list_functions()["Functions"]
    (package,) = [each for each in functions if each["Handler"] == "handlers.handler.handler"]
    variables = package["Environment"]["Variables"]
    assert {name for name in variables if name.startswith("DUETIME_")} == {
        "DUETIME_HANDLERS",
        "DUETIME_ATTEMPTS_FUNCTION",
    }
