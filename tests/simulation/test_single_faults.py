"""Tests that let each AWS call of a scenario fail once, in every way, and check that all tasks end once and in time."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ReadTimeoutError

from duetime.domain.operating_parameters import LOCK_CHECK_INTERVAL
from duetime.domain.times import to_iso
from tests.scenarios.graphs import DIAMOND, Graphs
from tests.scenarios.scenario import MINUTE, PHASED, PLAIN, SECOND, UNDONE
from tests.scenarios.schedules import NAME, Schedules
from tests.scenarios.tasks import Tasks
from tests.simulation import works
from tests.simulation.users import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call
    from tests.scenarios.scenario import Scenario

pytestmark = pytest.mark.slow

RECOVERY = 3 * MINUTE + LEASE
"""The promised maximum lateness of a task after a fault: three minutes plus the lease."""
WORK = 2 * SECOND
STEP = 30 * SECOND


class Fault(Enum):
    """A kind of fault that one call has."""

    FAIL = "the call is refused, and nothing was done"
    LOSE = "the call is done, but its answer is lost"
    CRASH_BEFORE = "the process dies before the call"
    CRASH_AFTER = "the process dies after the call"


FAULTS = pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name.lower())


@dataclass
class Interruption:
    """Lets only the call with the given number fail in a scenario, or no call at all.

    Attributes:
        calls: the calls that were counted.
    """

    scenario: Scenario
    fault: Fault | None
    number: int
    calls: list[str] = field(default_factory=list)
    is_due: bool = False

    def __post_init__(self) -> None:
        self.scenario.faulty = True
        self.scenario.before_call, self.scenario.after_call = self.before, self.after

    def before(self, call: Call) -> None:
        """Count a call; if the call has the given number, refuse the call or end its process."""
        self.calls.append(f"{call.machine.function} {call.operation}")
        if len(self.calls) != self.number:
            return
        if self.fault is Fault.FAIL:
            call.refuse()
        elif self.fault is Fault.CRASH_BEFORE:
            call.machine.die()
        self.is_due = True
        self.victim = call.machine, call.operation, call.request

    def after(self, call: Call) -> None:
        """Lose the response to the call with the given number, or end the calling process after the call."""
        if not self.is_due or (call.machine, call.operation, call.request) != self.victim:
            return
        self.is_due = False
        if self.fault is Fault.LOSE:
            raise ReadTimeoutError(endpoint_url=call.service)
        if self.fault is Fault.CRASH_AFTER:
            call.machine.die()

    def __str__(self) -> str:
        struck = self.calls[self.number - 1] if len(self.calls) >= self.number else "nothing"
        return f"call {self.number} ({struck})"


def each(live: Callable[[Fault | None, int], Interruption], fault: Fault) -> int:
    """Run a scenario once for each of its calls, let that call fail, and return the number of calls."""
    calls = len(live(None, 0).calls)
    for number in range(1, calls + 1):
        live(fault, number)
    return calls


SOON = {"type": PLAIN, "delay_seconds": 10}
LIVES: dict[str, tuple[dict[str, Any], int]] = {
    "sent directly": (SOON, 0),
    "found by the trigger": (SOON | {"delay_seconds": 540}, 0),
    "retried": (SOON | {"retry": {"initial_seconds": 5}}, 1),
    "with a payload outside": (SOON | {"payload": works.LARGE}, 0),
    "with every phase": (SOON | {"type": PHASED}, 0),
    "locked": (SOON | {"lock": {"key": "db-17"}}, 0),
    "locked for its run": (SOON | {"type": PHASED, "lock": {"key": "db-17", "scope": "run"}}, 0),
    "rolled back": (
        SOON | {"type": UNDONE, "rollback_on_failure": True, "retry": {"max_attempts": 2, "initial_seconds": 1}},
        2,
    ),
}


def _works(tasks: Tasks, failures: int) -> None:
    """Let targets take some time, and fail this many times."""

    def behave(phase: str, context: Context) -> str:
        tasks.take(WORK)
        if phase == "run" and tasks.attempt(context) <= failures:
            raise ValueError("as planned")
        return "done"

    tasks.target = behave


def _check_apart(tasks: Tasks, where: object) -> None:
    """Assert that calls of targets do not overlap.

    After a process dies, the next call may begin when the lease has ended.
    """
    for first, second in pairwise(tasks.effects):
        assert second.at >= first.at + WORK or second.at >= first.at + LEASE, where


@FAULTS
@pytest.mark.parametrize("life", LIVES)
def test_a_fault_at_any_call_loses_no_task_and_overlaps_no_calls(life: str, fault: Fault) -> None:
    """A fault at any call delays a task by at most the promised time, and calls of the task's target never overlap."""
    body, failures = LIVES[life]

    def live(fault: Fault | None, number: int) -> Interruption:
        with Tasks() as tasks:
            _works(tasks, failures)
            task_id = tasks.ask("POST", "/v1/tasks", body).body["id"]
            where = Interruption(tasks, fault, number)
            end = tasks.now + body["delay_seconds"] * SECOND + 2 * RECOVERY
            while tasks.now < end and tasks.record(task_id).finished_at is None:
                tasks.run(5 * SECOND)
            task = tasks.record(task_id)
            assert task.state in {"succeeded", "rolled_back"}, where
            assert task.finished_at is not None, where
            planned = (len(tasks.effects) + 1) * (WORK + 5 * SECOND)
            assert task.finished_at <= task.due_at + RECOVERY + planned, f"{where}: {task.finished_at - task.due_at}"
            _check_apart(tasks, where)
        return where

    assert each(live, fault) > 10


@FAULTS
def test_two_tasks_never_share_a_lock_with_a_fault_at_any_call(fault: Fault) -> None:
    """With a fault at any call, two tasks with the same lock run one after the other, and both tasks end."""

    def live(fault: Fault | None, number: int) -> Interruption:
        with Tasks() as tasks:
            _works(tasks, 0)
            made = [tasks.create(10 * SECOND, lock={"key": "db-17"}) for _ in range(2)]
            where = Interruption(tasks, fault, number)
            end = tasks.now + 4 * RECOVERY + LOCK_CHECK_INTERVAL
            while tasks.now < end and any(tasks.record(task_id).finished_at is None for task_id in made):
                tasks.run(5 * SECOND)
            assert {tasks.state(task_id) for task_id in made} == {"succeeded"}, where
            latest = max((tasks.record(task_id).finished_at or 0) - tasks.record(task_id).due_at for task_id in made)
            assert latest <= RECOVERY + LOCK_CHECK_INTERVAL + 2 * WORK, f"{where}: {latest} ms"
            _check_apart(tasks, where)
        return where

    assert each(live, fault) > 10


def _is_over(schedules: Schedules) -> bool:
    """Whether the schedule and all its occurrences have ended."""
    kept = schedules.before_call, schedules.after_call
    schedules.before_call = schedules.after_call = None
    has_ended = schedules.schedule()["state"] == "ended"
    schedules.before_call, schedules.after_call = kept
    return has_ended and all(task.finished_at is not None for task in schedules.placed())


def _create(schedules: Schedules, body: dict[str, Any]) -> None:
    """Create a schedule, and repeat the request if a fault interrupts it; the schedule may already exist then."""
    sent = {"name": NAME, "task": {"type": PLAIN}, **body}
    replies = schedules.send("POST", "/v1/schedules", sent)
    if schedules.run_until(lambda: replies, 30 * SECOND) and replies[0].status == 201:
        return
    assert schedules.ask("POST", "/v1/schedules", sent).status in {201, 409}


def _run_to_the_end(schedules: Schedules, within: Millis) -> None:
    """Let the schedule and all its occurrences end, and then stop causing faults."""
    until = schedules.now + within
    while schedules.now < until and not _is_over(schedules):
        schedules.run(10 * SECOND)
    schedules.before_call = schedules.after_call = None


@FAULTS
def test_a_fault_at_any_call_misses_and_repeats_no_occurrence(fault: Fault) -> None:
    """With a fault at any call, each minute's occurrence runs as one task, which ends in time and is not missed."""

    def live(fault: Fault | None, number: int) -> Interruption:
        with Schedules() as schedules:
            schedules.target = lambda _phase, _context: schedules.take(WORK)
            end = (schedules.now // MINUTE + 3) * MINUTE
            schedules.make(end_at=to_iso(end), overlap="allow_all")
            where = Interruption(schedules, fault, number)
            while schedules.now < end + 2 * RECOVERY and not _is_over(schedules):
                schedules.run(10 * SECOND)
            schedules.before_call = schedules.after_call = None
            wanted = schedules.minutes(schedules.created_at, end)
            placed = schedules.placed()
            assert [task.schedule_ref.nominal for task in placed if task.schedule_ref] == wanted, where
            assert {task.state for task in placed} == {"succeeded"}, where
            late = max((task.finished_at or 0) - task.due_at for task in placed)
            assert late <= RECOVERY + 2 * (WORK + 5 * SECOND), f"{where}: {late} ms"
            assert schedules.ran().total() <= len(wanted) + 1, where
            assert schedules.schedule()["runs_skipped"] == 0, where
        return where

    assert each(live, fault) > 10


@FAULTS
def test_a_fault_at_any_call_does_not_change_the_number_of_runs(fault: Fault) -> None:
    """With a fault at any call, a schedule that is limited to four runs makes its first four runs and then ends."""

    def live(fault: Fault | None, number: int) -> Interruption:
        with Schedules() as schedules:
            schedules.target = lambda _phase, _context: schedules.take(WORK)
            first = (schedules.now // STEP + 3) * STEP
            where = Interruption(schedules, fault, number)
            body = {"rate": "30 seconds", "start_at": to_iso(first), "remaining_runs": 4, "overlap": "allow_all"}
            _create(schedules, body)
            _run_to_the_end(schedules, 4 * MINUTE + 2 * RECOVERY)
            shown, placed = schedules.schedule(), schedules.placed()
            nominals = [task.schedule_ref.nominal for task in placed if task.schedule_ref]
            assert nominals == [first + run * STEP for run in range(4)], f"{where}"
            assert {task.state for task in placed} == {"succeeded"}, f"{where}"
            assert (shown["state"], shown["remaining_runs"], shown["runs_started"]) == ("ended", 0, 4), f"{where}"
            assert (shown["runs_skipped"], shown["skipped_runs"]) == (0, []), f"{where}"
            assert schedules.ran().total() <= 4 + 1, f"{where}"
        return where

    assert each(live, fault) > 10


@FAULTS
def test_a_fault_at_any_call_does_not_block_a_buffered_occurrence(fault: Fault) -> None:
    """With a fault at any call, a schedule with one waiting place has no stuck, missed, or overlapping occurrence."""

    def live(fault: Fault | None, number: int) -> Interruption:
        with Schedules() as schedules:
            schedules.target = lambda _phase, _context: schedules.take(WORK)
            first = (schedules.now // SECOND + 45) * SECOND
            where = Interruption(schedules, fault, number)
            bounds = {"start_at": to_iso(first), "end_at": to_iso(first + 4 * SECOND)}
            _create(schedules, {"rate": "1 second", "overlap": "buffer_one", **bounds})
            _run_to_the_end(schedules, MINUTE + 2 * RECOVERY)
            placed = schedules.placed()
            nominals = [task.schedule_ref.nominal for task in placed if task.schedule_ref]
            assert nominals == [first + run * SECOND for run in range(5)], f"{where}"
            assert all(task.finished_at is not None for task in placed), f"{where}"
            ends = [str(task.state) for task in placed]
            # The only place to wait was taken when the other occurrences were due.
            assert ends.count("cancelled") == len(schedules.skipped()) == 5 - ends.count("succeeded"), f"{where}"
            assert ends.count("succeeded") >= 2, f"{where}"
            assert schedules.schedule()["state"] == "ended", f"{where}"
            _check_apart(schedules, where)
        return where

    assert each(live, fault) > 10


@FAULTS
def test_a_fault_at_any_call_overlaps_no_runs_of_a_permanent_schedule(fault: Fault) -> None:
    """With a fault at any call, each run of a permanent schedule begins a minute or more after the previous run."""

    def live(fault: Fault | None, number: int) -> Interruption:
        with Schedules() as schedules:
            schedules.target = lambda _phase, _context: schedules.take(WORK)
            where = Interruption(schedules, fault, 0)
            schedules.make(permanent={"gap_seconds": 60}, remaining_runs=3)
            where.number = number + len(where.calls) if number else 0
            begun = len(where.calls)
            until = schedules.now + 4 * MINUTE + 2 * RECOVERY
            while schedules.now < until and not _is_over(schedules):
                schedules.run(10 * SECOND)
            del where.calls[:begun]
            placed = schedules.placed()
            assert len(placed) == 3, f"{where}: {len(placed)}"
            assert {task.state for task in placed} <= {"succeeded", "scheduled"}, where
            for first, second in pairwise(schedules.effects):
                apart = WORK + (MINUTE if second.task_id != first.task_id else 0)
                assert second.at >= first.at + apart, where
        return where

    assert each(live, fault) > 10


@FAULTS
def test_a_fault_at_any_call_loses_no_node_and_breaks_no_order(fault: Fault) -> None:
    """With a fault at any call, all nodes of a topology succeed, and no node begins before its parents have ended."""

    def live(fault: Fault | None, number: int) -> Interruption:
        with Graphs() as graphs:
            graphs.target = lambda _phase, _context: graphs.take(SECOND)
            graphs.submit(DIAMOND)
            where = Interruption(graphs, fault, number)
            ended = graphs.run_until_ended(25 * MINUTE)
            assert ended.state == "succeeded", f"{where}: {ended.state} {ended.error}"
            for key, node in DIAMOND.items():
                for parent in node.get("depends_on", []):
                    last = len(graphs.ran) - 1 - graphs.ran[::-1].index(parent)
                    assert last < graphs.ran.index(key), f"{where}: {key} began before {parent} had ended"
            doubled = {key for key in graphs.ran if graphs.ran.count(key) > 1}
            # Work whose end was not recorded is repeated, for one node or for both nodes on which one process worked.
            assert len(doubled) <= 1 or doubled == {"left", "right"}, f"{where}: {doubled}"
            assert (ended.finished_at or 0) - ended.created_at < 20 * MINUTE, where
        return where

    assert each(live, fault) > 10
