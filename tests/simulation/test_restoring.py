"""Tests of restoring a lost table to an earlier time, while earlier workers, messages and executions continue."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.operating_parameters import FENCES_PER_EPOCH
from duetime.domain.restore import AfterRestore
from duetime.domain.tasks.states import State
from duetime.domain.times import HOUR, MINUTE, SECOND
from duetime.handlers import Accepted
from tests.simulation import works
from tests.simulation.account import PULLED
from tests.simulation.restoring import RestoreSimulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime.domain.tasks.task import Task

_NODES: dict[str, dict[str, Any]] = {
    "first": {"type": works.PLAIN, "notify_within_seconds": 60},
    "second": {"type": works.PLAIN, "depends_on": ["first"], "notify_within_seconds": 60},
}


@contextmanager
def simulation(after: AfterRestore = AfterRestore.RERUN) -> Iterator[RestoreSimulation]:
    """An account without users and faults, in which targets succeed at once."""
    made = RestoreSimulation(1, after)
    made.behave = lambda _phase, _context: "done"
    try:
        yield made
        assert not made.violations
    finally:
        made.end()


def create(account: RestoreSimulation, path: str = "/v1/tasks", **fields: Any) -> str:  # noqa: ANN401 - any JSON
    """Create a task, a topology or a schedule, and return its id."""
    body = {"type": works.PLAIN, "notify_within_seconds": 60, **fields} if path == "/v1/tasks" else fields
    answer = account.asked("POST", path, body)
    assert answer.status == 201, answer.body
    return str(answer.body.get("id", ""))


def run(account: RestoreSimulation, duration: int = MINUTE) -> None:
    """Let this much time pass."""
    account.time.run_until(account.time.now() + duration)


def until(account: RestoreSimulation, is_so: Callable[[], object], within: int = 10 * MINUTE) -> None:
    """Let time pass until a condition is true."""
    end = account.time.now() + within
    while not is_so():
        assert account.time.now() < end, "it did not become so in time"
        run(account, SECOND)


def takes(account: RestoreSimulation, duration: int) -> Callable[[str, Any], Any]:
    """A target that takes this long and then succeeds."""

    def run_target(_phase: str, _context: object) -> str:
        account.take(duration)
        return "done"

    return run_target


def let_start(account: RestoreSimulation) -> None:
    """Delete the switch that the restore has set, so that tasks can start."""
    assert account.asked("DELETE", "/v1/switches/all/all").status in {200, 204}


def record(account: RestoreSimulation, task_id: str) -> Task:
    """A task's record in the current table."""
    found = account.record(task_id)
    assert found is not None
    return found


def runs_of(account: RestoreSimulation, task_id: str) -> list[int]:
    """The fences of a task's runs, in order."""
    return [each.fence for each in account.effects if each.task_id == task_id and each.phase == "run"]


def test_no_task_starts_after_a_restore_before_the_operator_permits_it() -> None:
    """After a restore, no task starts before the operator permits it.

    Then tasks that had run after the restore point run again, and a task that was due later runs once.
    """
    with simulation() as account:
        tasks = [create(account, delay_seconds=seconds) for seconds in (30, 90, 400)]
        account.note_restore_point()
        run(account, 2 * MINUTE)
        assert [len(runs_of(account, each)) for each in tasks] == [1, 1, 0]
        account.restore()
        run(account, 3 * MINUTE)
        assert [len(runs_of(account, each)) for each in tasks] == [1, 1, 0]
        let_start(account)
        until(account, lambda: not account.open_tasks(), HOUR)
        assert [len(runs_of(account, each)) for each in tasks] == [2, 2, 1]
        assert min(runs_of(account, each)[-1] for each in tasks) > FENCES_PER_EPOCH


def test_a_notification_from_before_the_restore_is_rejected() -> None:
    """A notification for work that a target accepted before the restore is refused, and the task runs again."""
    with simulation() as account:
        account.behave = lambda _phase, _context: Accepted()
        task_id = create(account, notify_within_seconds=3600)
        until(account, lambda: record(account, task_id).awaiting_notification)
        account.note_restore_point()
        run(account)
        account.restore()
        told = {"outcome": "succeeded", "result": 1}
        refused = account.asked("POST", f"/v1/tasks/{task_id}/notify", {"fence": 1, **told})
        assert (refused.status, refused.body["code"]) == (409, "fence_mismatch")
        let_start(account)
        until(account, lambda: record(account, task_id).claims >= 2)
        fence = record(account, task_id).fence
        assert fence > FENCES_PER_EPOCH
        until(account, lambda: record(account, task_id).awaiting_notification)
        assert account.asked("POST", f"/v1/tasks/{task_id}/notify", {"fence": fence, **told}).status == 200


def test_a_lease_from_before_the_restore_point_is_rejected() -> None:
    """After the restore, a pull worker can neither keep nor complete a task that it leased before the restore point."""
    with simulation() as account:
        create(account, type=PULLED, target={"kind": "pull"})
        run(account, SECOND)
        wanted = {"types": [PULLED], "lease_seconds": 30, "worker": "w"}
        (lease,) = account.asked("POST", "/v1/leases", wanted).body["leases"]
        account.note_restore_point()
        run(account, 5 * SECOND)
        account.restore()
        for verb, body in (("heartbeat", {}), ("complete", {"result": 1})):
            refused = account.asked("POST", f"/v1/leases/{lease['id']}/{verb}", body)
            assert refused.status == 409
        assert record(account, lease["task"]["id"]).state is State.WAITING


def test_an_ended_task_that_is_retried_gets_a_fence_of_the_new_epoch() -> None:
    """A restored task that is retried gets a fence of the new epoch. The lost table may have used the next fence."""

    def fail(_phase: str, _context: object) -> object:
        raise ValueError("by chance")

    with simulation() as account:
        account.behave = fail
        task_id = create(account, retry={"max_attempts": 1})
        until(account, lambda: record(account, task_id).finished_at)
        account.note_restore_point()
        assert account.asked("POST", f"/v1/tasks/{task_id}/retry").status == 200
        until(account, lambda: len(runs_of(account, task_id)) == 2)
        account.restore()
        assert account.reports.by_id[task_id]["change"] == "reopened"
        let_start(account)
        assert account.asked("POST", f"/v1/tasks/{task_id}/retry").status == 200
        until(account, lambda: len(runs_of(account, task_id)) == 3)
        assert runs_of(account, task_id) == [1, 2, FENCES_PER_EPOCH + 2]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_new_execution_completes_a_topology_after_a_restore(is_known: bool) -> None:  # noqa: FBT001 - a case
    """After a restore, a new execution runs a topology to its end.

    Nodes that had ended at the restore point do not run again.
    """
    with simulation() as account:
        account.behave = takes(account, 20 * SECOND)
        topology = create(account, "/v1/topologies", nodes=_NODES)
        until(account, lambda: any(each.node_ref and each.state is State.SUCCEEDED for each in account.tasks()))
        account.note_restore_point()
        if is_known:
            run(account, 10 * SECOND)
        account.restore(keeps_replaced=is_known)
        let_start(account)
        until(account, lambda: not account.open_tasks() and not account.states.running(), HOUR)
        assert record(account, topology).state is State.SUCCEEDED
        first, second = sorted(
            (each for each in account.tasks() if each.node_ref),
            key=lambda node: node.node_ref.key if node.node_ref else "",
        )
        assert len(runs_of(account, first.id.text)) == 1
        assert runs_of(account, second.id.text)[-1] > FENCES_PER_EPOCH


def test_skip_gives_tasks_the_outcomes_that_they_had_in_the_lost_table() -> None:
    """With `skip`, tasks get their outcomes in the lost table and do not run again.

    Steps that follow the outcomes are completed.
    """
    with simulation(AfterRestore.SKIP) as account:
        account.behave = takes(account, 10 * SECOND)
        topology = create(account, "/v1/topologies", nodes=_NODES)
        plain = create(account, delay_seconds=30)
        run(account, 5 * SECOND)
        account.note_restore_point()
        until(account, lambda: not account.open_tasks())
        before = len(account.effects)
        account.restore()
        let_start(account)
        until(account, lambda: not account.open_tasks() and not account.states.running(), HOUR)
        assert {record(account, each).state for each in (plain, topology)} == {State.SUCCEEDED}
        assert len(account.effects) == before
        assert record(account, plain).result is not None


def test_ask_pauses_tasks_that_had_run_until_a_second_decision() -> None:
    """With `ask`, tasks that had run are paused.

    A user resumes one of them, and the same command with `skip` then ends the other.
    """
    with simulation(AfterRestore.ASK) as account:
        ran, ran_too, later = (
            create(account, delay_seconds=5),
            create(account, delay_seconds=6),
            create(account, delay_seconds=500),
        )
        account.note_restore_point()
        run(account)
        account.restore()
        assert [record(account, each).state for each in (ran, ran_too, later)] == [
            State.PAUSED,
            State.PAUSED,
            State.SCHEDULED,
        ]
        assert account.asked("POST", f"/v1/tasks/{ran}/resume").status == 200
        account.after = AfterRestore.SKIP
        account.take_over()
        let_start(account)
        until(account, lambda: not account.open_tasks(), HOUR)
        assert [len(runs_of(account, each)) for each in (ran, ran_too, later)] == [2, 1, 1]


@pytest.mark.parametrize(("after", "runs"), [(AfterRestore.SKIP, 1), (AfterRestore.RERUN, 2)])
def test_an_occurrence_that_ran_after_the_restore_point_runs_again_only_by_rerun(
    after: AfterRestore, runs: int
) -> None:
    """An occurrence that ran after the restore point gets the same id again.

    The occurrence runs again only with `rerun`.
    """
    with simulation(after) as account:
        task = {"type": works.PLAIN, "notify_within_seconds": 60}
        create(account, "/v1/schedules", name="s", rate="10 minutes", remaining_runs=3, task=task)
        run(account, 2 * MINUTE)
        account.note_restore_point()
        until(account, lambda: len(account.effects) == 2, 15 * MINUTE)
        occurrence = account.effects[-1].task_id
        assert occurrence not in {key[1] for key in account.snapshot}
        run(account)
        account.restore()
        let_start(account)
        run(account, 30 * MINUTE)
        assert not account.open_tasks()
        assert len(runs_of(account, occurrence)) == runs


def test_a_message_from_before_the_restore_starts_no_task_early() -> None:
    """A message from before the restore does not start a task early, even if it names the task's current generation."""
    with simulation() as account:
        task_id = create(account, delay_seconds=3600)
        account.note_restore_point()
        account.receiving = False
        assert account.asked("POST", f"/v1/tasks/{task_id}/run").status == 200
        account.restore()
        let_start(account)
        # This change begins the generation that the old message names.
        assert account.asked("PATCH", f"/v1/tasks/{task_id}", {"delay_seconds": 1800}).status == 200
        account.receiving = True
        run(account, 20 * MINUTE)
        assert not runs_of(account, task_id)
        until(account, lambda: not account.open_tasks(), HOUR)
        assert len(runs_of(account, task_id)) == 1


def lose(account: RestoreSimulation, is_lost: Callable[[tuple[str, str]], bool]) -> None:
    """Omit some items from the backup, as if the items had been written just before the restore point."""
    lost = [key for key in account.snapshot if is_lost(key)]
    assert lost
    for key in lost:
        del account.snapshot[key]


def test_nodes_of_a_plan_that_is_not_in_the_backup_are_cancelled() -> None:
    """Nodes are cancelled by the restore if the backup lacks their topology's plan, because a backup may mix writes."""
    with simulation() as account:
        account.behave = takes(account, 20 * SECOND)
        topology = create(account, "/v1/topologies", nodes=_NODES)
        until(account, lambda: len([each for each in account.tasks() if each.node_ref]) == 2)
        account.note_restore_point()
        lose(account, lambda key: topology in key[0] and key[1] == "head")
        report = account.restore()
        assert report.cancelled == 2
        let_start(account)
        until(account, lambda: not account.open_tasks(), HOUR)
        ended = {(each.node_ref.key, each.state.value) for each in account.tasks() if each.node_ref}
        assert ended == {(key, state) for key in ("first", "second") for state in ("cancelled", "succeeded")}
        assert {each.error.type for each in account.tasks() if each.error is not None} == {"PlanLost"}
        assert record(account, topology).state is State.SUCCEEDED


def test_nodes_whose_topology_is_not_in_the_backup_are_cancelled() -> None:
    """Nodes without their topology are cancelled by the restore, because no execution would start or end them."""
    with simulation() as account:
        account.behave = takes(account, 20 * SECOND)
        topology = create(account, "/v1/topologies", nodes=_NODES)
        until(account, lambda: len([each for each in account.tasks() if each.node_ref]) == 2)
        account.note_restore_point()
        lose(account, lambda key: topology in {key[0][2:], key[1]})
        account.restore()
        let_start(account)
        until(account, lambda: not account.open_tasks(), HOUR)
        assert [each.state.value for each in account.tasks() if each.node_ref] == ["cancelled", "cancelled"]


def test_a_node_that_is_missing_in_the_backup_is_created_again() -> None:
    """A node that is missing in the backup is created again with the same id, although the plan already counts it."""
    with simulation() as account:
        account.behave = takes(account, 20 * SECOND)
        topology = create(account, "/v1/topologies", nodes=_NODES)
        until(account, lambda: any(each.phase == "run" for each in account.effects))
        (second,) = (each.id.text for each in account.tasks() if each.state is State.BLOCKED)
        account.note_restore_point()
        lose(account, lambda key: key[1] == second)
        account.restore()
        let_start(account)
        until(account, lambda: not account.open_tasks(), HOUR)
        assert record(account, topology).state is State.SUCCEEDED
        assert record(account, second).state is State.SUCCEEDED


def test_timers_that_are_not_in_the_backup_are_written_again() -> None:
    """Timers that are missing in the backup are written again, both for a task that was moved and for a schedule."""
    with simulation() as account:
        task_id = create(account, delay_seconds=600)
        assert account.asked("PATCH", f"/v1/tasks/{task_id}", {"delay_seconds": 1800}).status == 200
        task = {"type": works.PLAIN, "notify_within_seconds": 60}
        create(account, "/v1/schedules", name="s", rate="10 minutes", remaining_runs=2, task=task)
        account.note_restore_point()
        lose(account, lambda key: "#w#" in key[1] or "#s#" in key[1])
        account.restore()
        let_start(account)
        run(account, HOUR)
        assert [each.state for each in account.tasks()] == [State.SUCCEEDED] * 3
        assert len(runs_of(account, task_id)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_no_promise_is_broken_by_a_restore_at_a_random_moment(seed: int) -> None:
    """After a restore at a random time, old fences are refused, all tasks end, and no task has two attempts at once."""
    account = RestoreSimulation(seed)
    try:
        account.simulate()
    finally:
        account.end()
    assert not account.violations
    assert account.reports.by_id
