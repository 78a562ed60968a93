"""Tests of deleting a single task."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.composition.tasks import TaskServices
from duetime.domain.conditional_writes import ConditionFailed
from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.attempt_results import Failed, Succeeded
from duetime.domain.tasks.attempt_run import Run
from tests.functions.api.world import claimed_by_a_worker, closed_by_a_worker, ended_by_a_worker

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Gateway

GAVE_UP = Failed(TaskError("Secret", "secret message"))


def test_a_running_task_is_not_deleted(api: Gateway, clock: StandingClock) -> None:
    """A running task is not deleted, and the error says that the task must be cancelled first."""
    task_id = api.create()["id"]
    claimed_by_a_worker(task_id, clock)
    refused = api.send("DELETE", f"/v1/tasks/{task_id}")
    assert (refused.status, "cancel it first" in refused.problem["detail"]) == (409, True)
    assert api.send("GET", f"/v1/tasks/{task_id}").body["state"] == "running"


def test_an_ended_task_is_not_deleted_before_its_callback_is_created(api: Gateway, clock: StandingClock) -> None:
    """An ended task cannot be deleted until its callback has been created."""
    task_id = api.create({"type": "report", "callback_url": "https://example.org/ended"})["id"]
    ended = ended_by_a_worker(task_id, clock, Succeeded(b"1"))
    assert ended.finished_at is None
    assert api.send("DELETE", f"/v1/tasks/{task_id}").status == 409
    closed_by_a_worker(ended, clock)
    assert api.send("DELETE", f"/v1/tasks/{task_id}").status == 204


def test_a_deletion_returns_no_body_and_later_requests_return_404(api: Gateway) -> None:
    """A deletion returns no body, later requests for the task return 404, and other owners cannot delete the task."""
    path = f"/v1/tasks/{api.create({'type': 'report', 'delay_seconds': 60})['id']}"
    assert api.send("DELETE", path, headers={"X-Duetime-Owner": "you"}).status == 404
    assert api.send("DELETE", path, headers={"If-Match": '"9"'}).status == 412
    assert api.send("DELETE", path, {"reason": "why"}).status == 422
    deleted = api.send("DELETE", path, headers={"If-Match": '"1"'})
    assert (deleted.status, deleted.text) == (204, "")
    repeated = [
        api.send("DELETE", path),
        api.send("PATCH", path, {"name": "n"}),
        *(api.send("POST", f"{path}/{each}") for each in ("cancel", "pause", "resume", "run", "retry", "rollback")),
        api.send("POST", f"{path}/cancel", {"force": True}),
        api.send("POST", f"{path}/heartbeat", {"fence": 1}),
        api.send("POST", f"{path}/notify", {"fence": 1, "outcome": "succeeded"}),
    ]
    assert [each.status for each in repeated] == [404] * len(repeated)


def test_a_late_outcome_does_not_restore_a_deleted_task(api: Gateway, clock: StandingClock) -> None:
    """An attempt's late outcome neither restores a deleted task nor adds the task to the list of failed tasks."""
    task_id = api.create({"type": "report", "retry": {"max_attempts": 1}})["id"]
    zombie = claimed_by_a_worker(task_id, clock)
    clock.at += 60_000
    closed_by_a_worker(ended_by_a_worker(task_id, clock, GAVE_UP), clock)
    assert len(api.send("GET", "/v1/tasks", query="state=failed").body["tasks"]) == 1
    assert api.send("DELETE", f"/v1/tasks/{task_id}").status == 204
    reports = composed(TaskServices).attempt_reports
    late = replace(zombie, fence=2)
    for run in (Run(zombie, clock.at, clock.at), Run(late, clock.at, clock.at)):
        end = reports.outcome_writer.finish(run, GAVE_UP, frozenset())
        assert isinstance(end, ConditionFailed)
    assert api.send("GET", "/v1/tasks", query="state=failed").body["tasks"] == []
    assert api.send("POST", "/v1/tasks/retry", {"filter": {}, "all": True}).body["matched"] == 0
    record = composed(CoreServices).stores.tasks.read(TaskId.parse(task_id))
    assert record is not None
    assert (record.erased, record.error, record.attempt_history) == (True, None, ())
    assert record.expires_at is not None
