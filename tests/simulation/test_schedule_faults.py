"""Every call of a schedule's life goes wrong once, in every way: each occurrence still runs once."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.errors import Unavailable
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.attempt_results import Ending, Succeeded
from duetime.domain.tasks.states import State
from duetime.domain.times import MINUTE, SECOND
from tests.simulation.interruption import Fault, Interrupted
from tests.simulation.service_schedules import ran, spec_of, stored, tasks_of
from tests.virtual.world import LEASE, OWNER, START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime.ports.targets import Work

pytestmark = pytest.mark.slow

RECOVERY = 3 * MINUTE + LEASE
FIRST = (START // MINUTE + 1) * MINUTE
LENGTH = 3 * MINUTE
"""How long the schedule lives whose calls go wrong."""
FAULTS = pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name.lower())


def live(fault: Fault | None = None, at_call: int = 0, **fields: Any) -> Interrupted:  # noqa: ANN401 - any field
    """Let one schedule live from its creation to long after its end, with one fault."""
    world = Interrupted(fault, at_call)
    world.behave = _behaving(world)

    def create() -> None:
        try:
            world.schedule_manager.create(OWNER, spec_of(**fields))
        except Unavailable:
            # Whoever was refused may ask again; what had been done is then found to be there.
            return

    world.time.start_process(create)
    world.pass_time(MINUTE)
    while world.time.now() < START + LENGTH + 2 * RECOVERY and not _is_over(world):
        world.pass_time(MINUTE)
    return world


def _is_over(world: Interrupted) -> bool:
    """Whether nothing is to come, or the schedule was never made."""
    if not _exists(world):
        return True
    is_open = any(task.finished_at is None for task in tasks_of(world))
    return stored(world).state is ScheduleState.ENDED and not is_open


def _behaving(world: Interrupted) -> Callable[[Work], Ending]:
    def behave(_work: Work) -> Ending:
        world.take(2 * SECOND)
        return Succeeded(b"1")

    return behave


def _each(fault: Fault, **fields: Any) -> Iterator[tuple[str, Interrupted]]:  # noqa: ANN401 - any field
    """A life for each call that goes wrong, with words for where it did."""
    for at_call in range(1, len(live(**fields).calls) + 1):
        world = live(fault, at_call, **fields)
        struck = world.calls[at_call - 1] if len(world.calls) >= at_call else "nothing"
        yield f"call {at_call} ({struck})", world


def _exists(world: Interrupted) -> bool:
    return world.schedules.read(OWNER, "nightly")[0] is not None


@FAULTS
def test_one_fault_anywhere_misses_and_doubles_no_occurrence(fault: Fault) -> None:
    """Whichever call it strikes: each minute's occurrence has one task, which ends in time, and none was missed."""
    for where, world in _each(fault, end_at=START + LENGTH, overlap=Overlap.ALLOW_ALL):
        if not _exists(world):
            assert tasks_of(world) == [], where
            continue
        wanted = list(range(FIRST, START + LENGTH + 1, MINUTE))
        tasks = tasks_of(world)
        assert [task.schedule_ref.nominal for task in tasks if task.schedule_ref] == wanted, where
        assert {task.state for task in tasks} == {State.SUCCEEDED}, where
        late = max((task.finished_at or 0) - task.due_at for task in tasks)
        assert late <= RECOVERY + 2 * (2 * SECOND + 5 * SECOND), f"{where}: {late} ms"
        assert sorted(ran(world)) == wanted, where
        assert sum(ran(world).values()) <= len(wanted) + 1, where
        assert stored(world).log == (), f"{where}: {stored(world).log}"


@FAULTS
def test_one_fault_anywhere_keeps_to_the_number_of_runs(fault: Fault) -> None:
    """A schedule of four runs makes four tasks, whichever call goes wrong; what was missed meanwhile is told of."""
    for where, world in _each(fault, rate="30 seconds", remaining_runs=4, overlap=Overlap.ALLOW_ALL):
        if _exists(world):
            nominals = [task.schedule_ref.nominal for task in tasks_of(world) if task.schedule_ref]
            missed = (nominals[0] - START) // (30 * SECOND)
            assert nominals == [START + (missed + number) * 30 * SECOND for number in range(4)], where
            assert stored(world).log or not missed, where
            assert stored(world).skipped == missed, where
            assert stored(world).state is ScheduleState.ENDED, where


@FAULTS
def test_one_fault_anywhere_leaves_a_permanent_schedule_one_run_at_a_time(fault: Fault) -> None:
    """Runs follow each other, each a minute after the end of the one before, and the chain goes on until its end."""
    for where, world in _each(fault, permanent=60, remaining_runs=4):
        if _exists(world):
            tasks = tasks_of(world)
            assert len(tasks) == 4, f"{where}: {len(tasks)}"
            assert {task.state for task in tasks} <= {State.SUCCEEDED, State.SCHEDULED}, where
            assert world.effects, where
            for first, second in pairwise(world.effects):
                apart = 2 * SECOND + (MINUTE if second.task_id != first.task_id else 0)
                assert second.at >= first.at + apart, where


@FAULTS
def test_one_fault_anywhere_lets_waiting_occurrences_run(fault: Fault) -> None:
    """With one place to wait nothing is stuck, and nothing runs beside another that is alive."""
    fields: dict[str, Any] = {"rate": "1 second", "end_at": START + 4 * SECOND, "overlap": Overlap.BUFFER_ONE}
    for where, world in _each(fault, **fields):
        if _exists(world):
            assert {task.state for task in tasks_of(world)} <= {State.SUCCEEDED, State.CANCELLED}, where
            for first, second in pairwise(world.effects):
                assert second.at >= first.at + 2 * SECOND, where
