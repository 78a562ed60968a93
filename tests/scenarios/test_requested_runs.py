"""Users can request a run of a schedule for a later time and with its own payload."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.domain.times import to_iso
from tests.parts import others_slow
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import Schedules

PATH = "/v1/schedules/nightly"


def scheduled(account: Schedules, **fields: Any) -> None:  # noqa: ANN401 - JSON
    """Create a schedule that runs every full hour."""
    body = {"name": "nightly", "cron": "0 * * * *", "task": {"type": PLAIN, "payload": "usual"}, **fields}
    assert account.ask("POST", "/v1/schedules", body).status == 201


def requested(account: Schedules, **body: Any) -> str:  # noqa: ANN401 - JSON
    """Request a run; return the id of the run's task."""
    made = account.ask("POST", f"{PATH}/run", body)
    assert made.status == 201, made.body
    return str(made.body["id"])


def next_hour(account: Schedules) -> int:
    """The next full hour."""
    return (account.now // HOUR + 1) * HOUR


@pytest.mark.parametrize("overlap", others_slow(["skip", "buffer_one", "allow_all", "cancel_other", "replace_other"]))
def test_a_requested_run_starts_at_its_time_with_its_payload(overlap: str) -> None:
    """A requested run has its own payload and runs on time even if the schedule is paused and changed meanwhile."""
    with Schedules() as account:
        scheduled(account, overlap=overlap)
        due = next_hour(account) + 90 * MINUTE
        task_id = requested(account, payload="special", due_at=to_iso(due))
        account.run(2 * MINUTE)
        assert account.record(task_id).state == "scheduled"
        account.ask("PATCH", PATH, {"task": {"payload": "other"}})
        account.ask("POST", f"{PATH}/pause")
        account.run(due - account.now + MINUTE)
        task = account.ask("GET", f"/v1/tasks/{task_id}").body
        assert (task["state"], task["payload"]) == ("succeeded", "special")
        assert task["started_at"][:19] == to_iso(due)[:19]


def test_a_requested_run_and_an_occurrence_at_the_same_time_both_run() -> None:
    """If a requested run and an occurrence are due at the same time, they run one after the other."""
    with Schedules() as account:
        account.last(20)
        scheduled(account, overlap="buffer_one")
        at = next_hour(account)
        task_id = requested(account, payload="special", due_at=to_iso(at))
        account.run(at - account.now + 5 * MINUTE)
        assert account.record(task_id).state == "succeeded"
        runs = account.ask("GET", f"{PATH}/runs", query="status=succeeded").body["runs"]
        assert sorted(each["cause"] for each in runs) == ["manual", "schedule"]
        assert account.most_at_once(20 * SECOND) == 1


def test_deleting_a_schedule_cancels_its_requested_runs() -> None:
    """Deleting a schedule cancels its requested runs."""
    with Schedules() as account:
        scheduled(account)
        task_id = requested(account, delay_seconds=1800)
        assert account.ask("DELETE", PATH).status == 200
        account.run(40 * MINUTE)
        assert account.record(task_id).state == "cancelled"


def test_a_repeated_request_for_a_run_returns_the_same_task() -> None:
    """A repeated request with the same key returns the same task, with the first due time."""
    with Schedules() as account:
        scheduled(account)
        key = {"Idempotency-Key": "one"}
        first = account.ask("POST", f"{PATH}/run", {"delay_seconds": 600}, headers=key).body
        account.run(30 * SECOND)
        again = account.ask("POST", f"{PATH}/run", {"delay_seconds": 600}, headers=key).body
        assert (again["id"], again["due_at"]) == (first["id"], first["due_at"])
