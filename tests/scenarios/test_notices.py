"""`notify_on` sends one notice for each final failure and late start, without affecting other tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.tasks.states import State
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, Tasks
from tests.simulation.endpoints import NOTICE_URL

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

LATE = {"late_seconds": 120, "to": NOTICE_URL}
FAILED = {"failed": True, "to": NOTICE_URL}


def _fail(_phase: str, _context: Any) -> str:  # noqa: ANN401 - see `scenario.py`
    raise ValueError("no")


def _claims(call: Call) -> bool:
    """Whether a worker writes a record, apart from the mark that a late start was reported."""
    is_mark = schema.LATE_MARK in str(call.request.get("Key"))
    return call.machine.function == "worker" and call.operation == "update_item" and not is_mark


def test_a_failing_task_sends_one_notice_after_its_last_attempt() -> None:
    """A failing task sends a notice only after its last attempt."""
    with Tasks() as tasks:
        tasks.target = _fail
        task = tasks.create(notify_on=FAILED, retry={"max_attempts": 2})
        assert tasks.run_until(lambda: tasks.record(task).finished_at)
        assert tasks.notices == [(f"{task}-2-failed", "task.failed")]
        tasks.run(HOUR)
        assert len(tasks.notices) == tasks.counts()["notices_sent"] == 1


def test_neither_a_success_nor_a_cancel_causes_a_notice() -> None:
    """Neither a success nor a cancel causes a notice."""
    with Tasks() as tasks:
        done = tasks.create(notify_on={**FAILED, **LATE})
        gone = tasks.create(10 * MINUTE, notify_on={**FAILED, **LATE})
        assert tasks.cancel(gone).status == 200
        assert tasks.run_until(lambda: tasks.record(done).finished_at)
        tasks.run(HOUR)
        assert tasks.notices == []


def test_a_notice_is_sent_again_until_the_receiver_responds() -> None:
    """If the receiver is briefly down, the notice is sent again with the same id."""
    with Tasks() as tasks:
        tasks.target = _fail
        answers = iter([503, 503])
        tasks.answer_notice = lambda: next(answers, 200)
        task = tasks.create(notify_on=FAILED, retry=ONCE)
        assert tasks.run_until(lambda: tasks.record(task).finished_at)
        assert tasks.notices == [(f"{task}-1-failed", "task.failed")] * 3
        assert "notices_failed" not in tasks.counts()


def test_an_unclaimed_task_sends_one_late_notice() -> None:
    """If no worker claims a task, one notice is sent within minutes of its late time, and none is sent later."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.refuse(_claims)
        task = tasks.create(MINUTE, notify_on=LATE)
        due = tasks.record(task).due_at
        assert tasks.run_until(lambda: tasks.notices)
        assert due + 120 * SECOND <= tasks.now <= due + 120 * SECOND + 3 * MINUTE
        tasks.before_call = None
        assert tasks.run_until(lambda: tasks.state(task) is State.SUCCEEDED)
        tasks.run(3 * HOUR)
        assert [kind for _, kind in tasks.notices] == ["task.late"]


def test_a_task_that_waits_for_a_lock_is_late() -> None:
    """A task that has not started by its late time is late, whatever it waits for."""
    with Tasks() as tasks:
        tasks.target = lambda _phase, _context: tasks.take(10 * MINUTE)
        tasks.create(lock={"key": "db"}, timeout_seconds=800)
        tasks.run(5 * SECOND)
        waiting = tasks.create(lock={"key": "db"}, timeout_seconds=800, notify_on=LATE)
        assert tasks.run_until(lambda: tasks.notices, within=10 * MINUTE)
        assert tasks.state(waiting) is State.WAITING
        assert [kind for _, kind in tasks.notices] == ["task.late"]


def test_a_postponed_task_is_late_only_after_its_new_due_time() -> None:
    """A postponed task is late only after its new due time, and a `notify_on` that is added later also counts."""
    with Tasks() as tasks:
        moved = tasks.create(MINUTE, notify_on=LATE)
        asked = tasks.create(20 * MINUTE)
        assert tasks.change(moved, delay_seconds=1200).status == 200
        assert tasks.change(asked, notify_on=LATE).status == 200
        tasks.run(15 * MINUTE)
        assert tasks.notices == []
        tasks.refuse(_claims)
        tasks.run(15 * MINUTE)
        assert sorted(each.rsplit("-", 1)[0][:26] for each, _ in tasks.notices) == sorted([moved, asked])


def test_each_task_of_a_batch_has_its_own_late_notice() -> None:
    """Each task with late notices gets a timer for the check, even in a batch."""
    with Tasks() as tasks:
        tasks.refuse(_claims)
        body = {"type": PLAIN, "delay_seconds": 600}
        answer = tasks.ask("POST", "/v1/tasks/batch", {"tasks": [{**body, "notify_on": LATE}, body, body]})
        made = [each["task"]["id"] for each in answer.body["results"]]
        tasks.run(20 * MINUTE)
        assert [each[:26] for each, _ in tasks.notices] == made[:1]


def test_a_paused_task_causes_no_late_notice() -> None:
    """A task that its user has paused causes no late notice."""
    with Tasks() as tasks:
        task = tasks.create(MINUTE, notify_on=LATE)
        assert tasks.do(task, "pause").status == 200
        tasks.run(3 * HOUR)
        assert tasks.notices == []


def test_a_late_notice_is_sent_after_an_outage_of_its_receiver() -> None:
    """If the receiver is down for ten minutes, a later scan sends the late notice, even after the task's end."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.refuse(_claims)
        tasks.answer_notice = lambda: 503
        task = tasks.create(MINUTE, notify_on=LATE)
        assert tasks.run_until(lambda: tasks.notices)
        tasks.before_call = None
        assert tasks.run_until(lambda: tasks.state(task) is State.SUCCEEDED)
        tasks.run(10 * MINUTE)
        tasks.notices.clear()
        tasks.answer_notice = lambda: 200
        tasks.run(2 * HOUR)
        assert [kind for _, kind in tasks.notices] == ["task.late"]


def test_a_hanging_receiver_of_notices_delays_no_task() -> None:
    """Other tasks start on time while a notice's receiver hangs."""
    with Tasks() as tasks:
        tasks.target = _fail

        def hang() -> int:
            tasks.take(60 * SECOND)
            return 200

        tasks.answer_notice = hang
        failing = [tasks.create(notify_on=FAILED, retry=ONCE) for _ in range(5)]
        tasks.run(2 * SECOND)
        tasks.target = lambda _phase, _context: "done"
        task = tasks.create(SECOND)
        assert tasks.run_until(lambda: tasks.state(task) is State.SUCCEEDED, within=5 * SECOND)
        assert tasks.run_until(lambda: all(tasks.record(each).finished_at for each in failing))
        assert tasks.counts()["notices_failed"] == len(failing)


def test_nodes_topologies_and_occurrences_send_notices() -> None:
    """Schedule templates, nodes and topologies can have `notify_on`."""
    with Tasks() as tasks:
        tasks.target = _fail
        template = {"type": PLAIN, "notify_on": FAILED, "retry": ONCE}
        assert tasks.ask("POST", "/v1/schedules", {"name": "n", "rate": "1 hour", "task": template}).status == 201
        graph = {"nodes": {"first": template}, "notify_on": FAILED}
        assert tasks.ask("POST", "/v1/topologies", graph).status == 201
        tasks.run(10 * MINUTE)
        assert len({notice for notice, _ in tasks.notices}) == 3
        assert {kind for _, kind in tasks.notices} == {"task.failed"}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"failed": True, "to": "https://10.0.0.1/"}, "notify_on.to"),
        ({"failed": True, "to": "arn:aws:sns:us-east-1:123456789012:others"}, "notify_on.to"),
        ({"failed": True, "to": "arn:aws:lambda:us-east-1:123456789012:function:f"}, "notify_on.to"),
        ({"failed": True, "to": "ftp://example.org"}, "notify_on.to"),
        ({"failed": True, "to": "https://me:secret@example.org/"}, "notify_on.to"),
        ({"failed": True}, "notify_on.to"),
        ({"to": NOTICE_URL}, "notify_on"),
        ({"failed": False, "to": NOTICE_URL}, "notify_on"),
        ({"late_seconds": 59, "to": NOTICE_URL}, "notify_on.late_seconds"),
        ({"late_seconds": True, "to": NOTICE_URL}, "notify_on.late_seconds"),
        ({"late_seconds": 10**39, "to": NOTICE_URL}, "notify_on.late_seconds"),
        ("failed", "notify_on"),
    ],
)
def test_an_error_for_an_invalid_notify_on_names_the_field(wrong: object, field: str) -> None:
    """A forbidden address or an empty `notify_on` is refused with the field's name, and no task is created."""
    with Tasks() as tasks:
        reply = tasks.ask("POST", "/v1/tasks", {"type": PLAIN, "notify_on": wrong})
        assert (reply.status, [each["field"] for each in reply.body["errors"]]) == (422, [field])
        assert tasks.ask("GET", "/v1/tasks").body["tasks"] == []


ROLLBACKS: dict[str, tuple[bool, str, str, int]] = {
    "of a failure": (False, "x-", "rolled_back", 1),
    "of a failure that could not be rolled back by itself": (True, "xx-", "rolled_back", 1),
    "of a success, at the second try": (True, "x-x-", "rolled_back", 0),
    "of a success, that fails": (False, "-xx", "failed", 1),
    "of a failure, that fails": (False, "xxx", "failed", 2),
}


@pytest.mark.parametrize("which", ROLLBACKS)
def test_a_requested_rollback_sends_a_notice_only_if_it_fails(which: str) -> None:
    """A rollback that a user requests sends a notice only if the rollback itself fails."""
    by_itself, script, state, told = ROLLBACKS[which]
    with Tasks() as tasks:
        tasks.faulty = True  # the rollback is requested by a user
        outcomes = iter(script)

        def act(phase: str, _context: Any) -> str:  # noqa: ANN401 - see `scenario.py`
            if next(outcomes) == "x":
                raise ValueError(phase)
            return "done"

        tasks.target = act
        attempts = 2 if which.startswith("of a success") else 1
        policy = {"max_attempts": attempts, "initial_seconds": 0}
        task = tasks.create(kind=UNDONE, notify_on=FAILED, retry=policy, rollback_on_failure=by_itself)
        assert tasks.run_until(lambda: tasks.record(task).finished_at)
        assert tasks.do(task, "rollback").status == 202
        assert tasks.run_until(lambda: tasks.record(task).finished_at)
        tasks.run(HOUR)
        assert (tasks.state(task), len(tasks.notices)) == (state, told)
