"""How processes share a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.spreading import OF_ONE_PROCESS, Spread, is_collected_elsewhere, rank

if TYPE_CHECKING:
    from collections.abc import Sequence

A, B, OWN = "tests/domain/test_a.py", "tests/domain/test_b.py", "tests/infra/test_c.py"


@dataclass(eq=False)
class Process:
    """A process as the scheduler sees it."""

    collected: Sequence[str]
    sent: list[str] = field(default_factory=list)
    shutting_down: bool = False

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        """Take tests."""
        self.sent += [self.collected[index] for index in indices]

    def shutdown(self) -> None:
        """End after the tests that it has."""
        self.shutting_down = True


def four_of(*files: str) -> list[str]:
    """Four tests of each file."""
    return [f"{file}::test_{number}" for file in files for number in range(4)]


@pytest.fixture
def session() -> SimpleNamespace:
    """What pytest knows of the run."""
    return SimpleNamespace(testscollected=0)


@pytest.fixture
def spread(session: SimpleNamespace) -> Spread:
    """A scheduler of two processes."""
    config: Any = SimpleNamespace(
        getvalue=lambda name: ["popen", "popen"] if name == "tx" else [],
        pluginmanager=SimpleNamespace(getplugin=lambda name: {"session": session}[name]),
    )
    return Spread(config)


def begun(spread: Spread, *processes: Process) -> None:
    """Let processes report what they have collected."""
    for process in processes:
        spread.add_node(process)
    for process in processes:
        spread.add_node_collection(process, process.collected)
        if spread.collection_is_completed:
            spread.schedule()


def end(spread: Spread, process: Process, *nodeids: str) -> None:
    """Let a process end tests."""
    for nodeid in nodeids:
        spread.mark_test_complete(process, process.collected.index(nodeid))


def test_a_file_is_not_divided_and_what_only_one_has_comes_first(spread: Spread) -> None:
    """Fixtures of a module are made once, and a process gets shared files only when its own folders are done."""
    first, second = Process(four_of(A, B)), Process(four_of(A, B, OWN))
    begun(spread, first, second)
    assert (first.sent, second.sent) == (four_of(A), four_of(OWN))
    end(spread, second, *four_of(OWN)[:2])
    assert second.sent == four_of(OWN, B)
    assert not spread.tests_finished


def test_all_is_run_once_and_then_the_processes_end(spread: Spread, session: SimpleNamespace) -> None:
    """Whatever each has collected."""
    processes = Process(four_of(A, OWN)), Process(four_of(B, A))
    begun(spread, *processes)
    assert session.testscollected == len(four_of(A, B, OWN))
    for process in processes:
        end(spread, process, *process.sent)
    for process in processes:
        end(spread, process, *process.sent[4:])
    assert sorted(nodeid for process in processes for nodeid in process.sent) == sorted(four_of(A, B, OWN))
    assert all(process.shutting_down for process in processes)
    assert (spread.tests_finished, spread.has_pending) == (True, False)
    assert [spread.remove_node(process) for process in processes] == [None, None]


def test_the_four_of_a_crashed_process_are_run_by_the_one_that_replaces_it(spread: Spread) -> None:
    """But for the test that it was running, which is named."""
    first, second = Process(four_of(OWN)), Process(four_of(A))
    begun(spread, first, second)
    end(spread, first, f"{OWN}::test_0")
    assert spread.remove_node(first) == f"{OWN}::test_1"
    third = Process(four_of(OWN, A))
    begun(spread, third)
    assert third.sent == [f"{OWN}::test_2", f"{OWN}::test_3"]


def process_of(number: int, processes: int, **options: Any) -> pytest.Config:  # noqa: ANN401 - of any type
    """The configuration of a process of a whole run."""
    settings: dict[str, Any] = {"args": ["tests"], "markexpr": "not slow"} | options
    config: Any = SimpleNamespace(
        workerinput={"workerid": f"gw{number}", "workercount": processes},
        args=settings["args"],
        getini=lambda _name: ["tests"],
        option=SimpleNamespace(markexpr=settings["markexpr"]),
    )
    return config  # type: ignore[no-any-return] # all of it that is read


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
def test_each_folder_is_collected(processes: int) -> None:
    """By one process those that import much, by each of them all others."""
    folders = [f"tests/{path.name}/" for path in Path(__file__).parent.iterdir() if path.is_dir()]
    of_one = [folder for together in OF_ONE_PROCESS for folder in together]
    assert set(of_one) < set(folders)
    numbers = range(processes)
    for folder in folders:
        by = [not is_collected_elsewhere(folder, process_of(number, processes)) for number in numbers]
        assert sum(by) == (1 if folder in of_one else processes), folder


@pytest.mark.parametrize(
    "config",
    [
        process_of(1, 3, args=["tests/infra"]),
        process_of(1, 3, markexpr="slow"),
        process_of(3, 3),
        SimpleNamespace(args=["tests"]),
    ],
    ids=["some folders", "slow tests", "replaces a crashed process", "alone"],
)
def test_else_a_process_collects_all(config: pytest.Config) -> None:
    """So that few tests are shared by all processes, and none is missed."""
    assert not any(is_collected_elsewhere(folder, config) for together in OF_ONE_PROCESS for folder in together)


def test_what_takes_longest_comes_first() -> None:
    """The deployment, whose tests mostly wait, before the templates, and those before the simulation."""
    nodeids = ["tests/domain/a", "tests/simulation/a", "tests/infra/a", "tests/deployed/a"]
    assert sorted(nodeids, key=rank) == nodeids[::-1]
