"""Despite any faults, a filter lists exactly the matching tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain import operating_parameters
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.tasks.states import State
from duetime_testing.simulation.table_stream import SimulatedTableStream
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, Scenario
from tests.simulation.fault_simulation import FaultSimulation, Theme

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.tasks.task import Task


@pytest.fixture(autouse=True)
def _lists_from_the_first_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use lists from the first task on, because no simulation creates a thousand tasks."""
    monkeypatch.setattr(operating_parameters, "LIST_FROM", 1)


def filters(tasks: list[Task]) -> Iterator[tuple[str, TaskFilter]]:
    """Queries for which task lists exist, as requests and as filters."""
    for state in State:
        yield f"state={state}", TaskFilter(states=(state,))
    for type_ in sorted({each.type for each in tasks}):
        yield f"type={type_}&include_nodes=true", TaskFilter(type=type_)
        yield (
            f"type={type_}&state=failed&state=succeeded",
            TaskFilter(type=type_, states=(State.FAILED, State.SUCCEEDED)),
        )
    for schedule in sorted({each.schedule_ref.schedule for each in tasks if each.schedule_ref}):
        yield f"schedule={schedule}", TaskFilter(schedule=schedule)
    for topology in sorted({each.node_ref.topology for each in tasks if each.node_ref}):
        yield f"parent={topology}", TaskFilter(parent=topology)


class ListedSimulation(FaultSimulation):
    """A fault simulation whose stream is read, and whose tasks are listed at the end.

    Attributes:
        read: for each owner and query, the ids that were listed and the ids that should be listed.
        from_lists: the number of pages that were read from lists.
    """

    def __init__(self, seed: int, theme: Theme) -> None:
        super().__init__(seed, 0.02, theme)
        self.stream = SimulatedTableStream(self, repeats=0.1)
        self.read: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
        self.from_lists = 0

    def _calm_down(self) -> None:
        super()._calm_down()
        end = self.time.now() + HOUR
        while not self.stream.is_read and self.time.now() < end:
            self.time.run_until(self.time.now() + MINUTE)
        self.time.start_process(self._read_all)
        self.time.run_until(self.time.now() + 20 * MINUTE)

    def _read_all(self) -> None:
        for owner in sorted({task.owner for task in self.watching.tasks()}):
            for query, wanted in filters(self._tasks_of(owner)):
                expected, found = [""], [""]
                # An occurrence of a schedule may run in the meantime.
                while expected != self._expected(owner, wanted):
                    while not self.stream.is_read:
                        self.take(SECOND)
                    expected = self._expected(owner, wanted)
                    found = list(self._listed(owner, query))
                self.read[owner, query] = found, expected

    def _tasks_of(self, owner: str) -> list[Task]:
        return [task for task in self.watching.tasks() if task.owner == owner and not task.erased]

    def _expected(self, owner: str, wanted: TaskFilter) -> list[str]:
        return sorted((each.id.text for each in self._tasks_of(owner) if wanted.matches(each)), reverse=True)

    def _listed(self, owner: str, query: str) -> Iterator[str]:
        token = ""
        while token is not None:
            more = f"&next_token={token}" if token else ""
            headers = {"x-duetime-owner": owner}
            reply = self.users.ask("GET", "/v1/tasks", query=f"{query}&limit=20{more}", headers=headers)
            assert reply is not None
            self.from_lists += reply.body["applied"]["last_change_at"] is not None
            yield from (each["id"] for each in reply.body["tasks"])
            token = reply.body["next_token"]


def listed_after(seed: int, theme: Theme) -> None:
    """Simulate, and compare the lists with the records."""
    simulation = ListedSimulation(seed, theme)
    simulation.simulate(3 * MINUTE)
    assert simulation.read
    assert simulation.from_lists
    for query, (found, wanted) in simulation.read.items():
        assert found == wanted, query


@pytest.mark.slow
@pytest.mark.parametrize("theme", [Theme.TASKS, Theme.TOPOLOGIES])
def test_a_filter_lists_the_matching_tasks_after_faults(theme: Theme) -> None:
    """Despite crashes, lost calls and repeated batches, the lists are correct."""
    listed_after(1, theme)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("theme", list(Theme))
def test_a_filter_lists_the_matching_tasks_after_faults_with_many_seeds(seed: int, theme: Theme) -> None:
    """The lists are correct with many seeds, in each theme."""
    listed_after(seed, theme)


def test_a_state_is_listed_within_two_seconds_of_the_change() -> None:
    """A paused task is listed within two seconds, and the page says how recent the list is."""
    with Scenario() as account:
        SimulatedTableStream(account)
        for _ in range(3):
            account.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 40})
            account.run(MINUTE)
        made: Any = account.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 3600}).body
        account.ask("POST", f"/v1/tasks/{made['id']}/pause")
        account.run(2 * SECOND)
        found = account.ask("GET", "/v1/tasks", query="state=paused").body
        assert [each["id"] for each in found["tasks"]] == [made["id"]]
        assert found["applied"]["last_change_at"] is not None
