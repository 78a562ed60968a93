"""Reports that arrive after their task was deleted, retried or rolled back, or has expired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.times import DAY
from duetime.handlers import Accepted
from tests.scenarios.scenario import MINUTE, SECOND, UNDONE, Scenario
from tests.scenarios.test_old_fences import NOTICES, REPORTS
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from tests.simulation.users import Reply

ERROR = {"error": {"type": "New", "message": "x"}, "retriable": False}
SINCE = ["deleted", "retried", "running", "expired"]


def become(scenario: Scenario, task_id: str, since: str) -> None:
    """Delete, expire or retry a failed task."""
    path = f"/v1/tasks/{task_id}"
    if since == "deleted":
        assert scenario.ask("DELETE", path).status == 204
    elif since == "expired":
        scenario.ticking = False
        scenario.run(35 * DAY)
        assert task_id in {sort for _, sort in scenario.expire()}
    else:
        assert scenario.ask("POST", f"{path}/retry").status == 200


def facts(scenario: Scenario, task_id: str) -> object:
    """A task's record, or `None`."""
    return scenario.watching.record(task_id)


def check_refused(reply: Reply, since: str) -> None:
    """Check that the response is 404 for a task that no longer exists, and otherwise a conflict."""
    assert reply.status == (404 if since in {"deleted", "expired"} else 409), reply.body


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("since", SINCE)
def test_a_late_report_of_a_pull_worker_changes_nothing(since: str, report: str) -> None:
    """A pull worker's late report affects neither the ended task nor its next attempt."""
    with Scenario() as scenario:
        scenario.faulty = True  # no worker polls for the task
        task_id = scenario.ask("POST", "/v1/tasks", {"type": PULLED}).body["id"]
        wanted = {"types": [PULLED], "lease_seconds": 60, "worker": "w", "wait_seconds": 20}
        lease = scenario.ask("POST", "/v1/leases", wanted).body["leases"][0]
        path = f"/v1/leases/{lease['id']}"
        assert scenario.ask("POST", f"{path}/fail", ERROR).status == 200
        become(scenario, task_id, since)
        if since == "running":
            assert scenario.ask("POST", "/v1/leases", wanted).body["leases"]
        before = facts(scenario, task_id)
        check_refused(scenario.ask("POST", f"{path}/{report}", REPORTS[report]), since)
        assert facts(scenario, task_id) == before
        scenario.run(SECOND)
        assert facts(scenario, task_id) == before


@pytest.mark.parametrize("notice", NOTICES)
@pytest.mark.parametrize("since", SINCE)
def test_a_targets_later_reports_do_not_affect_the_task(since: str, notice: str) -> None:
    """After a target's first report, later reports do not affect the task."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: Accepted()
        body = {"type": UNDONE, "notify_within_seconds": 600, "timeout_seconds": 300, "retry": {"max_attempts": 1}}
        task_id = scenario.ask("POST", "/v1/tasks", body).body["id"]
        path = f"/v1/tasks/{task_id}"
        scenario.run(5 * SECOND)
        fence = scenario.record(task_id).fence
        failed: dict[str, Any] = {"fence": fence, "outcome": "failed", "retriable": False}
        assert scenario.ask("POST", f"{path}/notify", failed | {"error": ERROR["error"]}).status == 200
        assert scenario.run_until(lambda: scenario.record(task_id).finished_at)
        if since == "retried":
            scenario.receiving = False
        become(scenario, task_id, since)
        if since == "running":
            scenario.run(5 * SECOND)
            assert scenario.record(task_id).fence > fence
        before = facts(scenario, task_id)
        verb, more = NOTICES[notice]
        check_refused(scenario.ask("POST", f"{path}/{verb}", {"fence": fence, **more}), since)
        assert facts(scenario, task_id) == before


@pytest.mark.parametrize("notice", NOTICES)
def test_reports_after_a_rollback_are_rejected(notice: str) -> None:
    """If a success was reported and the task is then rolled back, later reports are refused."""
    with Scenario() as scenario:
        scenario.target = lambda phase, _context: scenario.take(20 * SECOND) if phase == "rollback" else Accepted()
        body = {"type": UNDONE, "notify_within_seconds": 600, "timeout_seconds": 300}
        task_id = scenario.ask("POST", "/v1/tasks", body).body["id"]
        path = f"/v1/tasks/{task_id}"
        scenario.run(5 * SECOND)
        fence = scenario.record(task_id).fence
        assert scenario.ask("POST", f"{path}/notify", {"fence": fence, "outcome": "succeeded"}).status == 200
        assert scenario.run_until(lambda: scenario.record(task_id).finished_at)
        assert scenario.ask("POST", f"{path}/rollback").status in {200, 202}
        verb, more = NOTICES[notice]
        for wait in (0, 10 * SECOND, MINUTE):
            scenario.run(wait)
            before = scenario.record(task_id)
            assert scenario.ask("POST", f"{path}/{verb}", {"fence": fence, **more}).status == 409, before.state
            after = scenario.record(task_id)
            assert (after.result, after.error, after.progress) == (before.result, before.error, before.progress)
        assert scenario.record(task_id).state == "rolled_back"
