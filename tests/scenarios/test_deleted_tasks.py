"""After its deletion, a task cannot be read, and no late or repeated request restores the task or its contents."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, Scenario

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

LARGE = "".join(sha256(str(number).encode()).hexdigest() for number in range(8_000))
"""A payload that is too large for an item and is stored in S3."""


def created(scenario: Scenario, headers: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """A new task."""
    answer = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, **fields}, headers=headers or {})
    assert answer.status == 201, answer
    body: dict[str, Any] = answer.body
    return body


def writes_record(task_id: str, call: Call) -> bool:
    """Whether the API writes a task's record."""
    return call.machine.function == "api" and call.operation == "update_item" and task_id in str(call.request)


@pytest.mark.parametrize("payload", ["secret words", "secret" + LARGE[:9_000], "secret" + LARGE])
def test_a_deleted_task_leaves_no_data_in_any_store_or_list(payload: str) -> None:
    """After a deletion, the payload, names and tags are in no store or list, and later requests get 404."""
    with Scenario() as scenario:
        task = created(scenario, payload=payload, name="secret name", tags={"secret": "tag"})
        path = f"/v1/tasks/{task['id']}"
        scenario.run_until(lambda: scenario.ask("GET", path).body["finished_at"])
        before = scenario.ask("GET", "/v1/tasks").body["tasks"]
        assert (len(before), scenario.ask("DELETE", path).status) == (1, 204)
        assert "secret" not in str(scenario.items())
        assert scenario.items(schema.CONTENT_PREFIX) == []
        assert not [key for key in scenario.s3.objects if task["id"] in str(key)]
        assert scenario.ask("GET", "/v1/tasks").body["tasks"] == []
        assert scenario.ask("GET", "/v1/tasks", query=f"ids={task['id']}").body["tasks"] == []
        for method, at in (("GET", path), ("DELETE", path), ("POST", f"{path}/cancel"), ("GET", f"{path}/attempts")):
            assert scenario.ask(method, at).status == 404, at
        scenario.run(HOUR)
        assert not scenario.violations


def test_a_deletion_before_the_start_prevents_any_run() -> None:
    """A task that is deleted before it starts is cancelled, and its message starts nothing."""
    with Scenario() as scenario:
        task = created(scenario, delay_seconds=30)
        assert scenario.ask("DELETE", f"/v1/tasks/{task['id']}").status == 204
        scenario.run(10 * MINUTE)
        record = scenario.record(task["id"])
        assert (record.state, record.attempt, record.erased) == ("cancelled", 0, True)


def test_a_repeated_creation_does_not_recreate_a_deleted_task() -> None:
    """A repeated creation says that the task was deleted; a request with a different key creates a new task."""
    with Scenario() as scenario:
        body = {"type": PLAIN, "delay_seconds": 30}
        key = {"Idempotency-Key": "a"}
        task = scenario.ask("POST", "/v1/tasks", body, headers=key).body
        scenario.ask("DELETE", f"/v1/tasks/{task['id']}")
        again = scenario.ask("POST", "/v1/tasks", body, headers=key)
        assert (again.status, again.body["code"]) == (410, "task_deleted")
        batch = scenario.ask("POST", "/v1/tasks", body, headers={"Idempotency-Key": "b"})
        assert (batch.status, batch.body["id"] != task["id"]) == (201, True)


def test_a_deletion_succeeds_if_its_response_is_lost() -> None:
    """If a deletion's response is lost and the SDK repeats the write, the deletion still succeeds."""
    with Scenario() as scenario:
        task = created(scenario)
        path = f"/v1/tasks/{task['id']}"
        scenario.run_until(lambda: scenario.ask("GET", path).body["finished_at"])

        def send_before(call: Call) -> None:
            scenario.dynamodb.update_item(**call.request)

        sent = scenario.once(lambda call: writes_record(task["id"], call), send_before)
        assert scenario.ask("DELETE", path).status == 204
        assert len(sent) == 1
        assert scenario.ask("GET", path).status == 404


def test_a_deletion_with_another_version_in_if_match_is_rejected() -> None:
    """A deletion whose `If-Match` names a different version is refused, and the task does not change."""
    with Scenario() as scenario:
        task = created(scenario)
        path = f"/v1/tasks/{task['id']}"
        scenario.run_until(lambda: scenario.ask("GET", path).body["finished_at"])
        assert scenario.ask("DELETE", path, headers={"If-Match": '"99"'}).status == 412
        assert scenario.ask("GET", path).status == 200


@pytest.mark.parametrize("pause", [1, 40, 90])
def test_only_one_of_a_concurrent_retry_and_deletion_takes_effect(pause: int) -> None:
    """If a deletion and a retry overlap, either the task is deleted, or it runs again with its payload."""
    with Scenario() as scenario:
        task = created(scenario, type="no.such", allow_unknown_type=True, payload=LARGE, retry={"max_attempts": 1})
        path = f"/v1/tasks/{task['id']}"
        assert scenario.run_until(lambda: scenario.ask("GET", path).body["finished_at"])
        scenario.slow(lambda call: writes_record(task["id"], call), pause)
        retried = scenario.send("POST", f"{path}/retry")
        deleted = scenario.send("DELETE", path)
        scenario.run(10 * SECOND)
        found = scenario.ask("GET", path)
        if deleted[0].status == 204:
            assert (found.status, retried[0].status in (200, 404, 412)) == (404, True)
        else:
            assert (deleted[0].status, retried[0].status, found.body["payload"]) == (409, 200, LARGE)


def test_a_permanent_schedule_continues_after_a_run_is_deleted() -> None:
    """A permanent schedule continues after a request to delete its last run, whether the run has ended or not."""
    with Scenario() as scenario:
        schedule = {"name": "poller", "permanent": {"gap_seconds": 60}, "task": {"type": PLAIN}}
        assert scenario.ask("POST", "/v1/schedules", schedule).status == 201
        scenario.faulty = True
        for _ in range(3):
            scenario.run(10 * MINUTE)
            run = scenario.ask("GET", "/v1/schedules/poller").body["last_run"]["task_id"]
            assert scenario.ask("DELETE", f"/v1/tasks/{run}").status in (204, 409)
        before = scenario.ask("GET", "/v1/schedules/poller").body["last_run"]["task_id"]
        scenario.run(30 * MINUTE)
        assert scenario.ask("GET", "/v1/schedules/poller").body["last_run"]["task_id"] != before
