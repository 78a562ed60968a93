"""No item expires while it can still be needed, according to the rules in `tests/time_to_live.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.circuit_breakers import DynamoCircuitStore
from duetime.adapters.dynamodb.locks import DynamoLockStore
from duetime.adapters.dynamodb.task_items import ATTRIBUTES
from duetime.adapters.dynamodb.task_store import (
    bulk_timer_item_of,
    late_timer_item_of,
    schedule_timer_item_of,
    timer_item_of,
)
from duetime.domain.dispatch.enqueue_plan import BulkTimer, LateTimer, ScheduleTimer, Timer
from duetime.domain.ids import TaskId
from duetime.domain.limits import IDEMPOTENCY_KEY_LIFE, MAX_DEADLINE_SECONDS, MAX_DUE_AHEAD
from duetime.domain.locks import Holder, Lock, LockName
from duetime.domain.operating_parameters import (
    CIRCUIT_THRESHOLD,
    EDGES_PER_GROUP,
    LATEST_ARRIVAL,
    LONGEST_LOCK_HOLD,
    MAX_CLOCK_DIFFERENCE,
)
from duetime.domain.tasks.attempt_results import failure
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import DAY, MINUTE, SECOND, Millis
from duetime.handlers import Accepted
from duetime.ports.runtime import Runtime
from duetime.services.worker.target_caller import CircuitBreakers
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.task_table import new_table
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.virtual_time import SeededRandom, VirtualTime
from tests import time_to_live
from tests.adapters.clouds import EXECUTOR
from tests.adapters.targets.works import work
from tests.clocks import NOW
from tests.scenarios.scenario import PLAIN, UNDONE, Scenario
from tests.simulation.account import TIMEOUTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.circuit_breakers import Circuit
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.ports.targets import Work

NAME = LockName("me", "db-17")
TASKS = [TaskId.of(NOW, 0, number) for number in range(3)]
_STATE = ATTRIBUTES["state"].name
_ENDED = {state.value for state in State if state in TERMINAL}
LONGEST_ABSENCE = 365 * DAY


def _removed_at(item: Mapping[str, Any]) -> Millis:
    return int(item[schema.TTL]["N"]) * SECOND


def test_all_code_that_writes_the_expiry_attribute_has_a_rule() -> None:
    """There is a rule for every function that writes or computes the expiry attribute."""
    assert time_to_live.writers() == set(time_to_live.WRITERS)
    assert time_to_live.deciders() == set(time_to_live.DECIDERS)


def test_each_expiry_rule_names_an_existing_test() -> None:
    """Each rule names an existing test."""
    rules = {*time_to_live.WRITERS.values(), *time_to_live.DECIDERS.values()}
    assert {rule.shown_by for rule in rules} <= time_to_live.tests()


STEPS = st.lists(
    # Each entry has an action on a lock, its task, the length of its hold, and the time until the next action.
    st.tuples(
        st.sampled_from(["take", "renew", "renew", "give back"]),
        st.integers(0, len(TASKS) - 1),
        st.sampled_from([30 * SECOND, MINUTE, DAY // 24, 12 * DAY // 24, LONGEST_LOCK_HOLD]),
        st.sampled_from([SECOND, 10 * MINUTE, 6 * DAY // 24, 2 * DAY]),
    ),
    max_size=25,
)


@settings(deadline=None)
@given(STEPS)
@example([("take", 0, 30 * SECOND, SECOND), ("renew", 0, 30 * SECOND, 10 * MINUTE), ("take", 1, MINUTE, SECOND)])
def test_a_lock_is_never_removed_while_it_is_held(steps: list[tuple[str, int, Millis, Millis]]) -> None:
    """A lock that is taken, renewed and released over days does not expire while it is held."""
    fake, now = FakeDynamoDB(), NOW
    store = DynamoLockStore(fake, new_table(fake), EXECUTOR)  # type: ignore[arg-type]  # stands in for a client
    (table,) = fake.tables.values()
    expected: dict[TaskId, Millis] = {}
    for number, (what, which, lasts, later) in enumerate(steps):
        now += later
        for item in list(table.every()):
            if _removed_at(item) < now:
                table.write(now, (item[schema.PARTITION_KEY]["S"], item[schema.SORT_KEY]["S"]), None)
        expected = {task: until for task, until in expected.items() if until + MAX_CLOCK_DIFFERENCE > now}
        held = Holder(TASKS[which], 1, now + lasts)
        lock, _line = store.read(NAME, 0)
        assert {holder.task_id for holder in lock.living(now).holders} == expected.keys()
        if what == "take":
            taken = lock.living(now).held_by(held)
            assert store.save(taken, f"n{number}", taken.expires_at(now), held)
            expected[held.task_id] = held.expires_at
        elif what == "renew":
            is_renewed = store.renew(NAME, held, Lock.renewal_expires_at(now, held.expires_at))
            assert is_renewed or held.task_id not in expected
            if is_renewed:
                # A holder whose hold had ended gets the lock again, unless another task was faster.
                expected[held.task_id] = max(held.expires_at, expected.get(held.task_id, 0))
        else:
            left = lock.without(held.task_id, 1)
            assert store.save(left, f"n{number}", left.expires_at(now))
            expected.pop(held.task_id, None)


@given(st.integers(NOW, NOW + MAX_DUE_AHEAD))
def test_a_timer_is_kept_for_a_year_after_its_time(at: Millis) -> None:
    """Timers of any kind are kept for a year after their time."""
    timer = Timer(TASKS[0], 1, at, Priority.NORMAL, "me")
    assert _removed_at(timer_item_of(timer)) >= at + LONGEST_ABSENCE
    assert _removed_at(late_timer_item_of(LateTimer(TASKS[0], "me", at - MINUTE, at))) >= at + LONGEST_ABSENCE
    assert _removed_at(schedule_timer_item_of(ScheduleTimer(TASKS[0], "me", "nightly", 1, at))) >= at + LONGEST_ABSENCE
    assert _removed_at(bulk_timer_item_of(BulkTimer(TASKS[0], at))) >= at + LONGEST_ABSENCE


def test_a_place_in_a_line_is_kept_for_as_long_as_the_lock_can_be_held() -> None:
    """A place in a lock's line is kept for thirty days, because a holder can send heartbeats for that long."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: Accepted()
        body = {"type": PLAIN, "lock": {"key": "db-17"}, "notify_within_seconds": MAX_DEADLINE_SECONDS}
        for _ in range(2):
            scenario.ask("POST", "/v1/tasks", body)
            scenario.run(5 * SECOND)
        items = {item[schema.SORT_KEY]["S"][0]: item for item in scenario.items(schema.LOCK_PREFIX)}
        (held,) = items["#"]["m"]["M"].values()
        assert _removed_at(items["w"]) >= int(held["S"].split()[1])


def test_an_idempotency_key_is_kept_for_a_day() -> None:
    """An idempotency key is kept for a day."""
    with Scenario() as scenario:
        scenario.ask("POST", "/v1/tasks", {"type": PLAIN}, headers={"Idempotency-Key": "one"})
        (item,) = scenario.items(schema.KEY_PREFIX)
        assert _removed_at(item) >= scenario.now - SECOND + IDEMPOTENCY_KEY_LIFE


class RecordedCircuits(DynamoCircuitStore):
    """Records the expiry of each stored circuit."""

    def __init__(self) -> None:
        fake: Any = FakeDynamoDB()
        super().__init__(fake, new_table(fake))
        self.stored: list[tuple[Circuit, Millis]] = []

    def save(self, circuit: Circuit, nonce: str, expires_at: Millis) -> bool:
        """Store a circuit, and record its expiry."""
        self.stored.append((circuit, expires_at))
        return super().save(circuit, nonce, expires_at)


class Down:
    """An endpoint that fails."""

    def phases(self, task: object) -> frozenset[Any]:
        """No phase besides `run`."""
        del task
        return frozenset()

    def run(self, wanted: Work) -> Ending:
        """Fail."""
        del wanted
        return failure("Http503", "")


def test_a_circuit_is_kept_for_longer_than_it_is_open() -> None:
    """A circuit expires only after it closes, however often its probe fails."""
    circuits, time = RecordedCircuits(), VirtualTime(NOW)
    circuit_breakers = CircuitBreakers(Down(), circuits, Runtime(time, SeededRandom(), time, FakeTelemetry()))
    for _ in range(200):
        for _ in range(CIRCUIT_THRESHOLD):
            circuit_breakers.run(work(url="https://example.org/"))
        time.run_until(time.now() + MINUTE)
    assert len(circuits.stored) > 5
    assert all(expires_at >= circuit.open_until + MAX_CLOCK_DIFFERENCE for circuit, expires_at in circuits.stored)


def test_a_rate_is_kept_for_longer_than_any_wait_for_it() -> None:
    """A rate's item expires more than a day after the latest time that the item contains."""
    with Scenario() as scenario:
        for priority in ("low", "high", "normal"):
            rate = {"key": "crm", "limit": 1, "per_seconds": 86_400, "burst": 2}
            body = {"type": PLAIN, "rate": rate, "priority": priority}
            for _ in range(6):
                assert scenario.ask("POST", "/v1/tasks", body).status == 201
            scenario.run(5 * SECOND)
            (item,) = scenario.items(schema.RATE_PREFIX)
            ends = [int(value["N"]) // 1_000 for name, value in item.items() if name in {"a", "h", "n", "o"}]
            assert max(ends) > scenario.now + DAY
            assert _removed_at(item) > max(ends) + DAY


STEERED = {
    "succeeded": [],
    "cancelled": [("POST", "/cancel")],
    "failed, and tried again": [("POST", "/retry")],
    "succeeded, and rolled back": [("POST", "/rollback")],
}


@pytest.mark.parametrize("ending", STEERED)
def test_a_record_has_an_expiry_only_after_its_task_has_ended(ending: str) -> None:
    """A record expires only after its task has ended, at the end plus the retention, however the task ended."""
    retention, ends = 30 * DAY, 0
    with Scenario() as scenario:

        def written(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
            nonlocal ends
            scenario.watching.written(old, new)
            if new is None or _STATE not in new:
                return
            assert (schema.TTL in new) == (new[_STATE]["S"] in _ENDED)
            if schema.TTL in new and (old is None or old.get(schema.TTL) != new[schema.TTL]):
                ends += 1
                assert _removed_at(new) >= scenario.now - SECOND + retention

        scenario.table.watch = written
        scenario.target = lambda phase, _context: _act(ending, phase)
        delay = 30 if ending == "cancelled" else 0
        body = {"type": UNDONE, "retry": {"max_attempts": 1}, "delay_seconds": delay}
        path = f"/v1/tasks/{scenario.ask('POST', '/v1/tasks', body).body['id']}"
        scenario.run(5 * SECOND)
        for method, verb in STEERED[ending]:
            assert scenario.ask(method, f"{path}{verb}").status in {200, 202}
        scenario.run(MINUTE)
    assert ends == (2 if "," in ending else 1)


def _act(ending: str, phase: str) -> str:
    if phase == "run" and "failed" in ending:
        raise LookupError("no such row")
    return "done"


def test_the_items_for_counting_nodes_are_kept_for_the_longest_run() -> None:
    """The items by which a topology counts its nodes are kept for the longest possible run."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: "done"
        parents = [f"n{number}" for number in range(EDGES_PER_GROUP + 1)]
        nodes = {**{key: {"type": PLAIN} for key in parents}, "last": {"type": PLAIN, "depends_on": parents}}
        assert scenario.ask("POST", "/v1/topologies", {"nodes": nodes}).status == 201
        began = scenario.now
        scenario.run(MINUTE)
        items = scenario.items(schema.TOPOLOGY_PREFIX)
        assert len(items) >= 3
        assert all(_removed_at(item) >= began - SECOND + MAX_DEADLINE_SECONDS * SECOND for item in items)


def test_a_deletion_marker_is_kept_longer_than_any_late_write() -> None:
    """Deletion markers are kept longer than the longest process and a late write can last."""
    longest = max(TIMEOUTS.values()) + LATEST_ARRIVAL + MAX_CLOCK_DIFFERENCE
    with Scenario() as scenario:
        task = {"type": PLAIN}
        assert scenario.ask("POST", "/v1/schedules", {"name": "n", "cron": "0 3 * * *", "task": task}).status == 201
        assert scenario.ask("PUT", "/v1/calendars/c", {"dates": ["2026-12-25"]}).status in {200, 201}
        scenario.ask("DELETE", "/v1/schedules/n")
        scenario.ask("DELETE", "/v1/calendars/c")
        left = [*scenario.items(schema.SCHEDULE_PREFIX), *scenario.items(schema.CALENDAR_PREFIX)]
        assert len(left) >= 2
        assert all(_removed_at(item) >= scenario.now - SECOND + longest for item in left)
