"""One `duetime.task.late.v1` event is sent for each task whose target was first called late, for any reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb.stream import changes_of
from duetime.domain.change_events import Event, EventKind, events_of
from duetime.domain.times import to_iso
from duetime_testing.fakes.stream import FakeStream
from duetime_testing.fakes.telemetry import FakeTelemetry
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import ONCE, Tasks
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from collections.abc import Callable


class Watched(Tasks):
    """Tasks in a table whose stream is read."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = FakeStream(self.time.now)
        self.stream.watch(self.table)

    def late(self, task_id: str) -> list[Event]:
        """The late events, for all tasks or for one task."""
        events = events_of(changes_of(self.stream.event(), FakeTelemetry()))
        return [each for each in events if each.kind is EventKind.TASK_LATE and each.detail.get("task_id") == task_id]


def lateness(event: Event) -> Any:  # noqa: ANN401 - a number
    """The lateness in an event about a task's start."""
    return dict(event.detail)["lateness_ms"]


def receive(tasks: Watched) -> None:
    """Let the queues be read again after their messages were delayed."""
    tasks.received_from = tasks.now
    tasks.receive_again()


def stop(tasks: Watched) -> dict[str, Any]:
    """Stop the tasks' type."""
    assert tasks.ask("PUT", f"/v1/switches/type/{PLAIN}", {"stopped": True}).status == 200
    tasks.run(10 * SECOND)
    return {}


def lock(tasks: Watched) -> dict[str, Any]:
    """Have another task hold the lock that the next task needs."""
    tasks.last(800)
    wanted: dict[str, Any] = {"lock": {"key": "a"}, "timeout_seconds": 840}
    tasks.create(**wanted)
    tasks.run(2 * SECOND)
    return wanted


def rate(tasks: Watched) -> dict[str, Any]:
    """Have another task use up the rate limit."""
    wanted: dict[str, Any] = {"rate": {"key": "k", "limit": 1, "per_seconds": 800}}
    tasks.create(**wanted)
    tasks.run(2 * SECOND)
    return wanted


@pytest.mark.parametrize("hold", [stop, lock, rate])
def test_a_held_task_causes_no_late_event_until_its_call(hold: Callable[[Watched], dict[str, Any]]) -> None:
    """A task that is held back causes no event until its target is called, and then one event."""
    with Watched() as tasks:
        held = tasks.create(**hold(tasks))
        tasks.run(10 * MINUTE)
        assert tasks.phases(held) == []
        assert tasks.late(held) == []
        tasks.ask("DELETE", f"/v1/switches/type/{PLAIN}")
        tasks.run(20 * MINUTE)
        assert tasks.phases(held) == ["run"]
        (event,) = tasks.late(held)
        started = tasks.effect_times(held)[0]
        assert abs(lateness(event) - (started - tasks.record(held).due_at)) < SECOND


def test_a_task_that_starts_in_time_is_not_late() -> None:
    """A task that starts in time causes no event, even if its run is long or it is retried later."""
    with Watched() as tasks:
        tasks.last(200)
        long = tasks.create(timeout_seconds=300)
        tasks.run(5 * MINUTE)
        tasks.fail(1)
        retried = tasks.create(retry={"max_attempts": 2, "initial_seconds": 120, "max_seconds": 120})
        tasks.run(10 * MINUTE)
        assert tasks.outcomes(retried) == ["retried", "succeeded"]
        assert (tasks.late(long), tasks.late(retried)) == ([], [])


def test_a_task_that_could_not_start_earlier_is_not_late() -> None:
    """A task that is created after its due time, or resumed after it, causes no event if it then starts at once."""
    with Watched() as tasks:
        created = tasks.create(due_at=to_iso(tasks.now - 10 * MINUTE))
        resumed = tasks.create(delay=MINUTE)
        assert tasks.do(resumed, "pause").status == 200
        tasks.run(10 * MINUTE)
        assert tasks.do(resumed, "resume").status == 200
        tasks.run(MINUTE)
        assert (tasks.phases(created), tasks.phases(resumed)) == (["run"], ["run"])
        assert (tasks.late(created), tasks.late(resumed)) == ([], [])


def test_the_first_heartbeat_sends_the_late_event() -> None:
    """The first heartbeat sends the late event, with an id by which consumers recognize duplicates."""
    with Watched() as tasks:
        tasks.receiving = False
        late = tasks.create(timeout_seconds=300)
        tasks.run(2 * MINUTE)
        tasks.last(200)
        receive(tasks)
        tasks.run(15 * SECOND)
        (event,) = tasks.late(late)
        assert (event.detail["id"], dict(event.detail)["state"]) == (f"{late}-late", "running")
        tasks.run(10 * MINUTE)
        assert len(tasks.late(late)) == 1


def test_a_task_that_was_never_called_is_not_late() -> None:
    """A task that is cancelled or expires while a switch holds it causes no event."""
    with Watched() as tasks:
        stop(tasks)
        cancelled, expired = tasks.create(), tasks.create(expires_seconds=90)
        tasks.run(3 * MINUTE)
        tasks.cancel(cancelled)
        tasks.run(MINUTE)
        assert tasks.record(expired).has_expired
        assert (tasks.late(cancelled), tasks.late(expired)) == ([], [])


def test_a_pulled_tasks_late_event_is_sent_at_the_first_heartbeat() -> None:
    """A pulled task's event is sent at the worker's first heartbeat, because until then the lease can be released."""
    with Watched() as tasks:
        tasks.receiving = False
        leased = tasks.create(kind=PULLED, retry=ONCE)
        tasks.run(2 * MINUTE)
        wanted = {"types": [PULLED], "lease_seconds": 60, "worker": "X"}
        (lease,) = tasks.ask("POST", "/v1/leases", wanted).body["leases"]
        assert tasks.late(leased) == []
        assert tasks.ask("POST", f"/v1/leases/{lease['id']}/heartbeat").status == 200
        assert len(tasks.late(leased)) == 1
        assert tasks.ask("POST", f"/v1/leases/{lease['id']}/complete", {"result": 1}).status == 200
        assert len(tasks.late(leased)) == 1


def test_a_users_retry_of_a_late_task_causes_no_second_event() -> None:
    """A user's retry of a late task causes no second event."""
    with Watched() as tasks:
        tasks.receiving = False
        late = tasks.create(retry=ONCE)
        tasks.run(2 * MINUTE)
        tasks.fail(1)
        receive(tasks)
        tasks.run(10 * SECOND)
        assert len(tasks.late(late)) == 1
        assert tasks.do(late, "retry").status == 200
        tasks.run(10 * SECOND)
        assert len(tasks.phases(late)) == 2
        assert len(tasks.late(late)) == 1
