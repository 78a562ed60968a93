from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.tasks.costs import WORKER_GIGABYTES
from duetime.domain.times import MINUTE
from tests.clocks import NOW
from tests.functions.api.world import claimed_by_a_worker, closed_by_a_worker, ended_by_a_worker

if TYPE_CHECKING:
    from typing import Any

    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Gateway

QUICK = {"max_attempts": 20, "initial_seconds": 0}


def attempts(api: Gateway, task: dict[str, Any]) -> list[dict[str, Any]]:
    """A task's attempts, as the API lists them."""
    answer = api.send("GET", f"/v1/tasks/{task['id']}/attempts")
    assert answer.status == 200
    found: list[dict[str, Any]] = answer.body["attempts"]
    return found


def test_a_task_that_never_ran_has_no_attempts(api: Gateway) -> None:
    """The attempt list of a task that never ran is empty."""
    assert attempts(api, api.create({"type": "report", "delay_seconds": 60})) == []


def test_an_attempt_shows_its_worker_fence_times_outcome_and_cost(api: Gateway, clock: StandingClock) -> None:
    """An attempt shows its worker, fence, times, outcome and estimated cost."""
    task = api.create()
    clock.at += 20
    ended_by_a_worker(task["id"], clock, Succeeded(b"1"), took=3_000)
    (attempt,) = attempts(api, task)
    assert attempt == {
        "attempt": 1,
        "fence": 1,
        "worker": "worker",
        "function_version": None,
        "planned_at": "2026-11-21T02:33:07.250Z",
        "started_at": "2026-11-21T02:33:07.270Z",
        "lateness_ms": 20,
        "duration_ms": 3_000,
        "outcome": "succeeded",
        "error": None,
        "cost_dollars": round(2 * 0.625e-6 + 3 * WORKER_GIGABYTES * 0.0000133334, 12),
    }


def test_a_lost_attempt_is_listed_with_null_for_unknown_fields(api: Gateway, clock: StandingClock) -> None:
    """A lost attempt is listed, and its unknown fields are null."""
    task = api.create()
    claimed_by_a_worker(task["id"], clock)
    clock.at += MINUTE
    ended_by_a_worker(task["id"], clock, Succeeded(b"1"))
    lost, last = attempts(api, task)
    unknown = ("worker", "planned_at", "started_at", "lateness_ms", "duration_ms", "cost_dollars")
    assert (lost["attempt"], lost["fence"], lost["outcome"]) == (1, 1, "lost")
    assert [lost[field] for field in unknown] == [None] * len(unknown)
    assert (last["attempt"], last["fence"], last["outcome"]) == (2, 2, "succeeded")


def test_attempts_that_do_not_fit_into_the_record_are_listed_once(api: Gateway, clock: StandingClock) -> None:
    """Each attempt is listed once, oldest first, even if the task's record has no room for the attempt."""
    task = api.create({"type": "report", "retry": QUICK})
    for number in range(12):
        ended_by_a_worker(task["id"], clock, failure("Boom", str(number)))
        clock.at += MINUTE
    found = attempts(api, task)
    assert [attempt["fence"] for attempt in found] == list(range(1, 13))
    assert {attempt["outcome"] for attempt in found} == {"retried"}
    assert [attempt["error"] for attempt in found] == [
        {"type": "Boom", "message": str(n), "traceback": None} for n in range(12)
    ]


def test_each_attempt_shows_its_error(api: Gateway, clock: StandingClock) -> None:
    """The last attempt's error is complete, while earlier errors are truncated and marked. A retry keeps all errors."""
    task = api.create({"type": "report", "retry": {"max_attempts": 2, "initial_seconds": 0}})
    for letter in "ab":
        ended = ended_by_a_worker(task["id"], clock, failure("Boom", letter * 200))
        clock.at += MINUTE
    closed_by_a_worker(ended, clock)
    cut = [letter * 90 + " [cut]" for letter in "ab"]
    assert [attempt["error"]["message"] for attempt in attempts(api, task)] == [cut[0], "b" * 200]
    assert api.send("POST", f"/v1/tasks/{task['id']}/retry").status == 200
    assert [attempt["error"]["message"] for attempt in attempts(api, task)] == cut
    ended_by_a_worker(task["id"], clock, Succeeded(b"1"))
    assert [attempt["error"] and attempt["error"]["message"] for attempt in attempts(api, task)] == [*cut, None]


def test_the_attempts_of_another_owners_task_return_404(api: Gateway) -> None:
    """A request for the attempts of another owner's task or of an unknown task returns 404.

    An unknown parameter is refused by name.
    """
    task = api.create(headers={"X-Duetime-Owner": "other"})
    for text in (task["id"], str(TaskId.of(NOW, 7, 42)), "1"):
        answer = api.send("GET", f"/v1/tasks/{text}/attempts")
        assert (answer.status, answer.problem["code"]) == (404, "task_not_found")
    asked = api.send("GET", f"/v1/tasks/{task['id']}/attempts", query="limit=1")
    assert (asked.status, list(asked.faults)) == (400, ["limit"])
    posted = api.send("POST", f"/v1/tasks/{task['id']}/attempts")
    assert (posted.status, posted.headers["Allow"]) == (405, "GET, HEAD, OPTIONS")
