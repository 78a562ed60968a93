"""Tests of a handlers package with its own function, on the deployed stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime_cdk.layers.build import Layer
from duetime_local.deployment import HANDLERS
from duetime_local.handler_reload import HandlerVersions, built
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from duetime_client import Client
    from duetime_local.stack import Stack

pytestmark = pytest.mark.deployed

BILLING = f"{HANDLERS}-billing"
BROKEN = """
import os, time
from duetime.handlers import handler


@handler("billing.hang")
def hang(context, payload):
    time.sleep(60)


@handler("billing.exit")
def end(context, payload):
    os._exit(1)
"""


@pytest.fixture
def broken(deployed: Stack, tmp_path: Path) -> Iterator[None]:
    """Publish a version of the package whose handlers hang or end their process; restore the previous version later."""
    versions = HandlerVersions(deployed.emulator, deployed.deployment, deployed.handlers)
    former = {BILLING: built()[BILLING]}
    folder = tmp_path / "python" / "billing"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(BROKEN)
    versions.publish({BILLING: Layer(tmp_path, "broken-handlers")})
    yield
    versions.publish(former)


def test_a_handler_of_a_package_uses_steps_progress_and_its_client(client: Client) -> None:
    """A task with steps, progress, and a client succeeds in the package's function, and creates a child task."""
    task = client.tasks.create("billing.charge", payload={"amount": 5}, wait_seconds=25)
    result: Any = task.result
    assert (task.state, result["amount"]) == ("succeeded", 5)
    child = client.tasks.get(result["sent_by"])
    assert child.parent_task_id == task.id


def test_a_packages_function_has_no_variable_for_the_table(deployed: Stack) -> None:
    """The environment variables of a package's function name only the package and the function to which it reports."""
    functions: Any = deployed.emulator.client("lambda").list_functions()["Functions"]
    (package,) = [each for each in functions if each["Handler"] == "handlers.handler.handler"]
    variables = package["Environment"]["Variables"]
    assert {name for name in variables if name.startswith("DUETIME_")} == {
        "DUETIME_HANDLERS",
        "DUETIME_ATTEMPTS_FUNCTION",
    }


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("kind", "seconds", "error"), [("billing.hang", 3, "Timeout"), ("billing.exit", 120, "HandlerCrashed")]
)
def test_a_handler_that_breaks_its_process_fails_its_attempt(
    client: Client, kind: str, seconds: int, error: str
) -> None:
    """If a handler hangs or ends its process, the worker records the failure, and other tasks succeed."""
    others = [client.tasks.create("echo", payload=number) for number in range(5)]
    task = client.tasks.create(kind, timeout_seconds=seconds, retry={"max_attempts": 1}, allow_unknown_type=True)
    task = client.tasks.wait(task.id, timeout=PATIENCE_SECONDS)
    assert task.error is not None
    assert (task.state, task.error.type) == ("failed", error)
    assert [client.tasks.wait(each.id, timeout=PATIENCE_SECONDS).state for each in others] == 5 * ["succeeded"]
