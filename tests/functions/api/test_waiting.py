from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from duetime.domain.tasks.attempt_results import Succeeded, failure
from tests.clocks import NOW
from tests.functions.api.world import ended_by_a_worker

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Ending
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Gateway


def working(api: Gateway, clock: StandingClock, ending: Ending, looks: int) -> None:
    """Let a worker end the only task after this many waits between reads."""

    def work() -> None:
        if len(clock.slept) == looks:
            ended_by_a_worker(api.listed()[0], clock, ending, took=0)

    clock.meanwhile = work


@pytest.mark.parametrize(
    ("ending", "state"), [(Succeeded(b"[1]"), "succeeded"), (failure("Boom", "no", retriable=False), "failed")]
)
def test_a_creation_waits_for_the_outcome(api: Gateway, clock: StandingClock, ending: Ending, state: str) -> None:
    """If a task ends within the limit, with any outcome, its creation returns 201 with the ended task."""
    working(api, clock, ending, looks=3)
    answer = api.send("POST", "/v1/tasks", {"type": "report"}, query="wait_seconds=25")
    assert (answer.status, answer.body["state"]) == (201, state)
    assert answer.body["result"] == ([1] if state == "succeeded" else None)
    assert answer.location == f"/v1/tasks/{answer.body['id']}"
    assert answer.headers["ETag"] == f'"{answer.body["version"]}"'


def test_a_creation_returns_202_if_its_task_does_not_end_in_time(api: Gateway, clock: StandingClock) -> None:
    """If a task does not end within the limit, its creation returns 202 with the current task."""
    answer = api.send("POST", "/v1/tasks", {"type": "report"}, query="wait_seconds=7")
    assert (answer.status, answer.body["state"], clock.at) == (202, "scheduled", NOW + 7_000)
    assert api.send("GET", answer.location).body == answer.body


def test_a_waiting_creation_reads_the_record_at_doubling_intervals(api: Gateway, clock: StandingClock) -> None:
    """While a creation waits, the record is read at intervals that start at 100 ms and double up to a second."""
    api.send("POST", "/v1/tasks", {"type": "report"}, query="wait_seconds=5")
    pauses = [later - earlier for earlier, later in pairwise([NOW, *clock.slept])]
    assert pauses == [100, 200, 400, 800, 1_000, 1_000, 1_000, 500]


@pytest.mark.parametrize("query", ["", "wait_seconds=0"])
def test_a_creation_without_wait_seconds_returns_immediately(api: Gateway, clock: StandingClock, query: str) -> None:
    """Without `wait_seconds`, or with zero, a creation returns 201 immediately."""
    answer = api.send("POST", "/v1/tasks", {"type": "report"}, query=query)
    assert (answer.status, answer.body["state"], clock.slept) == (201, "scheduled", [])


def test_a_repeated_creation_waits_for_the_same_task(api: Gateway, clock: StandingClock) -> None:
    """Repeating a creation with its key after a 202 waits again, and returns at once when the task has ended."""
    send = {"body": {"type": "report"}, "headers": {"Idempotency-Key": "k"}, "query": "wait_seconds=2"}
    first = api.send("POST", "/v1/tasks", **send)  # type: ignore[arg-type]  # arguments of `send`
    working(api, clock, Succeeded(b"1"), looks=len(clock.slept) + 1)
    second = api.send("POST", "/v1/tasks", **send)  # type: ignore[arg-type]  # same
    slept = len(clock.slept)
    third = api.send("POST", "/v1/tasks", **send)  # type: ignore[arg-type]  # same
    assert [answer.status for answer in (first, second, third)] == [202, 201, 201]
    assert len({answer.body["id"] for answer in (first, second, third)}) == 1
    assert len(clock.slept) == slept


@pytest.mark.parametrize("wait", ["26", "-1", "1.5", "", "x", "1e1", "٣", "9" * 5_000])
def test_an_invalid_wait_seconds_is_rejected(api: Gateway, clock: StandingClock, wait: str) -> None:
    """`wait_seconds` must be a whole number from 0 to 25."""
    answer = api.send("POST", "/v1/tasks", {"type": "report"}, query=f"wait_seconds={wait}")
    assert (answer.status, list(answer.faults)) == (400, ["wait_seconds"])
    assert (api.listed(), clock.slept) == ([], [])


def test_a_get_waits_for_the_end_of_a_task(api: Gateway, clock: StandingClock) -> None:
    """A GET waits for the task's end, at most `wait_seconds`, and not at all for an ended task."""
    path = f"/v1/tasks/{api.create()['id']}"
    asked_at = clock.at
    answer = api.send("GET", path, query="wait_seconds=7")
    assert (answer.status, answer.body["state"], clock.at) == (200, "scheduled", asked_at + 7_000)
    api.send("POST", f"{path}/cancel")
    assert api.send("GET", path, query="wait_seconds=7").body["state"] == "cancelled"
    assert clock.at == asked_at + 7_000
    assert list(api.send("GET", path, query="wait_seconds=26").faults) == ["wait_seconds"]
