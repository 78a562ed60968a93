"""If workers acknowledge leases, a lease that no worker received is short and does not count as an attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN, MAX_UNACKNOWLEDGED_LEASES
from tests.scenarios.scenario import MINUTE, SECOND
from tests.scenarios.tasks import ONCE
from tests.scenarios.test_pull_workers import BOOM, LEASE, Pulled
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from collections.abc import Mapping

WITHIN = 8
"""The time in seconds within which the workers in these tests acknowledge a lease."""


@pytest.fixture
def tasks() -> Pulled:
    """An account with a pulled type."""
    return Pulled()


def _wanted(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"types": [PULLED], "wait_seconds": 20, "worker": "w", "lease_seconds": 30, **more}


def _vanish(tasks: Pulled, **more: Any) -> None:  # noqa: ANN401 - JSON
    """Have a worker request a lease and vanish before the response."""
    answers = tasks.send("POST", "/v1/leases", _wanted(**more))
    assert tasks.run_until(lambda: answers)
    assert answers[0].body["leases"]


def _lease(tasks: Pulled, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The lease that a worker gets when it requests leases repeatedly."""
    until = tasks.now + MINUTE
    while tasks.now < until:
        for lease in tasks.ask("POST", "/v1/leases", _wanted(**more)).body["leases"]:
            found: dict[str, Any] = lease
            return found
    raise AssertionError("no lease")


@pytest.mark.parametrize("retry", [{}, ONCE], ids=["retried", "one attempt"])
def test_a_worker_that_vanishes_during_its_request_uses_up_no_attempt(tasks: Pulled, retry: Mapping[str, Any]) -> None:
    """If a worker vanishes during its request, the next worker runs the first attempt, even if only one is allowed."""
    with tasks:
        task_id = tasks.create_pulled(2 * SECOND, **({"retry": retry} if retry else {}))
        _vanish(tasks)
        lease = _lease(tasks)
        assert (lease["task"]["attempt"], lease["task"]["fence"], lease["unacknowledged_leases"]) == (1, 2, 1)
        assert tasks.tell(lease, "complete", {"result": 1}).status == 200
        assert (tasks.done(task_id).attempt, tasks.outcomes(task_id)) == (1, ["succeeded"])
        assert tasks.record(task_id).unacknowledged is None
        assert tasks.counts()["leases_unacknowledged"] == 1
        assert tasks.counts()["attempts_lost"] == 0


def test_an_unacknowledged_lease_is_short_until_its_acknowledgement(tasks: Pulled) -> None:
    """A task with an unacknowledged lease is leased again within seconds; a task with an acknowledged lease is not."""
    with tasks:
        tasks.create_pulled()
        _vanish(tasks, acknowledge_within_seconds=WITHIN)
        vanished_at = tasks.now
        lease = _lease(tasks, acknowledge_within_seconds=WITHIN)
        assert tasks.now - vanished_at <= WITHIN * SECOND + LEASE_RETURN_MARGIN + 2 * SECOND
        assert tasks.tell(lease, "heartbeat").status == 200
        ends_at = tasks.record(lease["task"]["id"]).lease_expires_at or 0
        assert ends_at == pytest.approx(tasks.now + LEASE, abs=200)
        tasks.run(WITHIN * SECOND + LEASE_RETURN_MARGIN)
        assert tasks.lease() == []


def test_a_worker_that_never_acknowledges_can_report_within_its_lease(tasks: Pulled) -> None:
    """A worker that never acknowledges can still report within its lease, and the task is not leased again."""
    with tasks:
        task_id = tasks.create_pulled(timeout_seconds=900)
        lease = _lease(tasks, lease_seconds=900)
        for _ in range(20):
            tasks.run(10 * SECOND)
            assert tasks.lease(20) == []
        assert tasks.tell(lease, "complete", {"result": 1}).status == 200
        assert tasks.done(task_id).attempt == 1


@pytest.mark.parametrize("sign", ["heartbeat", "progress of the task"])
def test_an_attempt_that_was_acknowledged_counts_when_it_is_lost(tasks: Pulled, sign: str) -> None:
    """If a lease is lost after a heartbeat or progress report, the next lease is the second attempt."""
    with tasks:
        task_id = tasks.create_pulled()
        lease = _lease(tasks)
        if sign == "heartbeat":
            assert tasks.tell(lease, "heartbeat").status == 200
        else:
            told = {"fence": lease["task"]["fence"], "percent": 10}
            assert tasks.ask("POST", f"/v1/tasks/{task_id}/progress", told).status == 200
        lease = _lease(tasks)
        assert (lease["task"]["attempt"], lease["unacknowledged_leases"]) == (2, 0)
        assert tasks.tell(lease, "complete", {"result": 1}).status == 200
        assert tasks.outcomes(task_id) == ["lost", "succeeded"]


def test_a_heartbeat_counts_if_its_lease_is_longer_than_the_timeout(tasks: Pulled) -> None:
    """A heartbeat of a lease longer than the timeout stores progress, and a lost attempt is not leased again."""
    with tasks:
        task_id = tasks.create_pulled(timeout_seconds=60, retry=ONCE)
        lease = _lease(tasks, lease_seconds=100)
        ends_at = tasks.record(task_id).lease_expires_at
        tasks.run(20 * SECOND)
        assert tasks.tell(lease, "heartbeat", {"percent": 40}).status == 200
        task = tasks.record(task_id)
        assert task.progress is not None
        assert (task.progress.percent, task.unacknowledged, task.lease_expires_at) == (40, None, ends_at)
        for _ in range(6):
            assert tasks.lease(20) == []
        assert tasks.state(task_id) == "failed"


def test_only_a_limited_number_of_unacknowledged_leases_are_not_attempts(tasks: Pulled) -> None:
    """Only a limited number of unacknowledged leases do not count as attempts."""
    with tasks:
        task_id = tasks.create_pulled(retry={"max_attempts": 2, "initial_seconds": 0})
        attempts = []
        while tasks.state(task_id) != "failed":
            attempts += [lease["task"]["attempt"] for lease in tasks.lease(20)]
        assert attempts == [*(MAX_UNACKNOWLEDGED_LEASES + 1) * [1], 2]
        task = tasks.record(task_id)
        assert task.error is not None
        assert (task.error.type, task.attempt, task.unacknowledged) == ("WorkerLost", 2, None)
        assert tasks.outcomes(task_id) == ["lost", "lost"]


def test_an_acknowledged_lease_resets_the_count_of_unacknowledged_leases(tasks: Pulled) -> None:
    """A retry can have as many unacknowledged leases as the first attempt."""
    with tasks:
        tasks.create_pulled(retry={"max_attempts": 2, "initial_seconds": 0})
        for attempt in (1, 2):
            for before in range(MAX_UNACKNOWLEDGED_LEASES):
                assert _lease(tasks)["unacknowledged_leases"] == before
            lease = _lease(tasks)
            assert (lease["task"]["attempt"], lease["unacknowledged_leases"]) == (attempt, MAX_UNACKNOWLEDGED_LEASES)
            assert tasks.tell(lease, "fail", BOOM).status == 200


def test_an_unreceived_lease_does_not_prevent_a_tasks_expiry(tasks: Pulled) -> None:
    """A lease that no worker received does not count as a start, so the task expires."""
    with tasks:
        task_id = tasks.create_pulled(expires_seconds=20)
        _vanish(tasks)
        assert tasks.run_until(lambda: tasks.state(task_id) == "failed", 10 * MINUTE)
        task = tasks.record(task_id)
        assert task.has_expired
        assert (task.attempt, task.unacknowledged) == (0, None)


def test_a_task_cancelled_during_an_unreceived_lease_is_not_leased_again(tasks: Pulled) -> None:
    """A task whose cancel is requested while its lease is unreceived is cancelled and not leased again."""
    with tasks:
        task_id = tasks.create_pulled()
        _vanish(tasks)
        assert tasks.cancel(task_id, force=True).status == 202
        tasks.run(LEASE + LEASE_RETURN_MARGIN)
        assert tasks.lease(5) == []
        assert (tasks.state(task_id), tasks.record(task_id).unacknowledged) == ("cancelled", None)


def test_the_explanation_of_a_late_start_names_an_unreceived_lease(tasks: Pulled) -> None:
    """The explanation names a lease that no worker received, during the wait and afterwards."""
    with tasks:
        task_id = tasks.create_pulled()
        _vanish(tasks)
        tasks.run(LEASE + 5 * SECOND + 10)
        present = tasks.ask("GET", f"/v1/tasks/{task_id}/explain").body
        assert "never acknowledged its lease" in str(present)
        assert tasks.tell(_lease(tasks), "complete", {"result": 1}).status == 200
        assert "nobody received the last lease" in str(tasks.ask("GET", f"/v1/tasks/{task_id}/explain").body)


def test_an_acknowledge_within_seconds_beyond_the_lease_is_rejected(tasks: Pulled) -> None:
    """The error for an `acknowledge_within_seconds` beyond the lease names the field."""
    with tasks:
        refused = tasks.ask("POST", "/v1/leases", _wanted(acknowledge_within_seconds=31))
        assert refused.status == 422
        assert [each["field"] for each in refused.body["errors"]] == ["acknowledge_within_seconds"]
