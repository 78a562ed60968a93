"""If a handlers package cannot be imported, its tasks wait with a reason, and other tasks are not affected."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from duetime.environment_variables import Variable
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, Scenario
from tests.simulation.endpoints import URL

if TYPE_CHECKING:
    import pytest

PACKAGE = "absent_handlers"


def test_tasks_of_a_broken_package_wait_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of a broken package wait, show why, use no attempt, and run after the package becomes importable."""
    with Scenario() as scenario:
        scenario.environ[Variable.HANDLERS] = PACKAGE
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN}).body["id"]
        scenario.run(3 * MINUTE + 30 * SECOND)
        waiting = scenario.ask("GET", f"/v1/tasks/{task}").body
        assert (waiting["state"], waiting["attempt"]) == ("waiting", 0)
        assert waiting["waiting_for"]["text"].startswith("HandlersUnavailable: ")
        assert f"No module named {PACKAGE!r}" in waiting["waiting_for"]["text"]
        monkeypatch.setitem(sys.modules, PACKAGE, ModuleType(PACKAGE))
        assert scenario.run_until(lambda: scenario.record(task).state == "succeeded", within=5 * MINUTE)
        assert scenario.record(task).attempt == 1


def test_other_targets_do_not_need_the_package() -> None:
    """An HTTP target is called on time even if the handlers package is broken."""
    with Scenario() as scenario:
        scenario.environ[Variable.HANDLERS] = PACKAGE
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "target": {"kind": "http", "url": URL}}).body["id"]
        assert scenario.run_until(lambda: scenario.record(task).state == "succeeded", within=MINUTE)
        assert (scenario.record(task).lateness or 0) < SECOND


def test_a_task_of_a_broken_package_can_be_cancelled() -> None:
    """A task that waits for its handlers package can be cancelled."""
    with Scenario() as scenario:
        scenario.environ[Variable.HANDLERS] = PACKAGE
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN}).body["id"]
        scenario.run(90 * SECOND)
        assert scenario.ask("POST", f"/v1/tasks/{task}/cancel").status == 200
        assert scenario.record(task).state == "cancelled"
