"""Tests that users' tests run with a deployed stack, and are skipped if they need functions that the stack lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime_testing.deployed import DeployedDuetime
from tests.client.deployment import Deployment, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def deployed() -> Iterator[DeployedDuetime]:
    """Return a stack that responds over HTTP and has no tasks."""
    with served(Deployment()) as deployment:
        made = DeployedDuetime(deployment.url)
        yield made
        made.close()


@pytest.mark.parametrize("use", ["at", "advance", "faults", "http", "mode", "perform", "pull", "executions_of"])
def test_a_function_that_needs_virtual_time_skips_the_test(deployed: DeployedDuetime, use: str) -> None:
    """If a test needs a function that the stack lacks, the test is skipped with a reason that names the function."""
    uses: dict[str, Callable[[], object]] = {
        "at": lambda: deployed.at("2027-01-01T00:00:00+00:00"),
        "advance": lambda: deployed.advance(hours=1),
    }

    def get() -> object:
        return getattr(deployed, use)

    with pytest.raises(pytest.skip.Exception, match=rf"duetime\.{use}.* needs virtual time"):
        uses.get(use, get)()


def test_assertions_read_executions_from_the_api(deployed: DeployedDuetime) -> None:
    """Assertions read executions from the API and say if a task never ran."""
    deployed.register("report", print)
    deployed.refute_created("report")
    deployed.assert_ran("report", times=0)
    deployed.run_until_idle()
    with pytest.raises(AssertionError, match="'report' ran never, not at least once"):
        deployed.assert_ran("report")
