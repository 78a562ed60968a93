from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.summary import Group
from duetime_testing.simulation.table_stream import SimulatedTableStream
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, Scenario
from tests.simulation.fault_simulation import FaultSimulation, Theme

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task


def counted_by_hand(tasks: list[Task]) -> dict[str, Any]:
    """The correct summary, counted from the records."""
    found = Counter(Group(task.type, task.state, task.priority) for task in tasks if not task.erased)
    states: Counter[str] = Counter()
    types: Counter[str] = Counter()
    for group, number in found.items():
        states[group.state.value] += number
        types[group.type] += number
    return {"states": dict(sorted(states.items())), "types": dict(types), "total": states.total()}


def told(summary: dict[str, Any]) -> dict[str, Any]:
    """The API's summary in the same form."""
    types = {each["type"]: each["total"] for each in summary["types"]}
    return {"states": summary["states"], "types": types, "total": summary["total"]}


def create(account: Scenario, number: int, **fields: Any) -> list[str]:  # noqa: ANN401 - fields of a task
    """Create tasks."""
    return [account.ask("POST", "/v1/tasks", {"type": PLAIN, **fields}).body["id"] for _ in range(number)]


def test_the_summary_counts_tasks_by_state_type_and_priority() -> None:
    """The summary counts tasks by state, type and priority for each owner, with the latest change's time."""
    with Scenario() as account:
        stream = SimulatedTableStream(account)
        create(account, 3, delay_seconds=3600, priority="high")
        done, erased = create(account, 2)
        account.run(MINUTE)
        assert account.ask("DELETE", f"/v1/tasks/{erased}").status == 204
        assert account.run_until(lambda: stream.is_read)
        account.run(MINUTE)
        found = account.ask("GET", "/v1/summary").body
        assert found["states"] == {"scheduled": 3, account.record(done).state.value: 1}
        assert found["priorities"] == {"high": 3, "normal": 1}
        assert (found["total"], found["other_types"], found["is_complete"]) == (4, 0, True)
        assert found["types"] == [{"type": PLAIN, "total": 4, "states": found["states"]}]
        assert found["as_of"] is not None
        other = account.ask("GET", "/v1/summary", headers={"x-duetime-owner": "stranger"}).body
        assert (other["total"], other["types"], other["as_of"]) == (0, [], None)


def test_a_repeated_or_split_batch_is_counted_once() -> None:
    """The counts are correct however often Lambda repeats batches, as a whole or in halves."""
    with Scenario() as account:
        stream = SimulatedTableStream(account, repeats=0.6)
        for _ in range(4):
            create(account, 5, delay_seconds=20)
            account.run(30 * SECOND)
        assert account.run_until(lambda: stream.is_read, within=HOUR)
        assert stream.deliveries > 2 * len(stream.records) / 25
        assert told(account.ask("GET", "/v1/summary").body) == counted_by_hand(list(account.watching.tasks()))


def test_changes_during_an_outage_are_counted_afterwards() -> None:
    """If the function is down while tasks run and end, it later reads the changes from the stream."""
    with Scenario() as account:
        stream = SimulatedTableStream(account)
        create(account, 4)
        account.run(MINUTE)
        stream.dead_until = account.now + HOUR
        create(account, 6, delay_seconds=600)
        account.run(30 * MINUTE)
        late = account.ask("GET", "/v1/summary").body
        assert late["total"] == 4, "it says what it knows, and as of when"
        account.run(HOUR)
        assert stream.is_read
        found = account.ask("GET", "/v1/summary").body
        assert told(found) == counted_by_hand(list(account.watching.tasks()))
        assert found["as_of"] > late["as_of"]


def test_an_expired_task_is_no_longer_counted() -> None:
    """When TTL removes a record, the task is no longer counted."""
    with Scenario() as account:
        stream = SimulatedTableStream(account)
        create(account, 3)
        account.run(MINUTE)
        account.stand_still()
        account.run(40 * 24 * HOUR)
        assert account.expire()
        assert account.run_until(lambda: stream.is_read)
        account.run(MINUTE)
        found = account.ask("GET", "/v1/summary").body
        assert (found["total"], found["states"], found["types"]) == (0, {}, [])


class CountedSimulation(FaultSimulation):
    """A fault simulation whose stream is read, and whose summary is read at the end.

    Attributes:
        read: for each owner, the summary that was read and the correct summary.
    """

    reading = 20 * MINUTE
    """The maximum time for reading the summaries."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, 0.02, Theme.TASKS)
        self.stream = SimulatedTableStream(self, repeats=0.1)
        self.read: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}

    def _calm_down(self) -> None:
        super()._calm_down()
        end = self.time.now() + HOUR
        while not self.stream.is_read and self.time.now() < end:
            self.time.run_until(self.time.now() + MINUTE)
        self.time.start_process(self._read_all)
        self.time.run_until(self.time.now() + self.reading)

    def _read_all(self) -> None:
        # A deployment's rule also does this every five minutes; a pause of days would restart the counts.
        for _ in range(10):
            self.wait_for(self.invoke("broadcast", {"recount": "continue"}))
            self.take(MINUTE)
        for owner in sorted({task.owner for task in self.watching.tasks()}):
            is_still = False
            while not is_still:
                while not self.stream.is_read:
                    self.take(SECOND)
                reply = self.users.ask("GET", "/v1/summary", headers={"x-duetime-owner": owner})
                assert reply is not None
                tasks = [task for task in self.watching.tasks() if task.owner == owner]
                self.read[owner] = told(reply.body), counted_by_hand(tasks)
                # A task whose retry is due only now may have been written in the meantime.
                is_still = self.stream.is_read


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 24))
def test_the_summary_equals_the_table_after_a_fault_simulation(seed: int) -> None:
    """Despite crashes, lost calls and repeated batches, each change is counted exactly once."""
    simulation = CountedSimulation(seed)
    simulation.simulate(2 * MINUTE)
    assert simulation.stream.is_read
    assert simulation.read
    for found, wanted in simulation.read.values():
        assert found == wanted
