from __future__ import annotations

import logging
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schedules, task_store
from duetime.adapters.dynamodb.versioned_items import save_next
from duetime.domain.conditional_writes import Guard
from duetime.domain.tasks.event_waits import AwaitedEvent, WaitingTask, first_signal_id, waiting_time
from duetime.domain.tasks.targets import EventTarget
from duetime.services import signals
from duetime.services.pull.lease import LeaseService, PullLocks
from duetime.services.signals import EventWaits
from duetime.services.tasks import control, update
from duetime.services.tasks.control import TaskControl
from tests.pairs import exploring
from tests.pairs.exploring import Exploration
from tests.pairs.interleaving import CallFault, Interleaving, Result, run
from tests.pairs.interleaving_report import told
from tests.pairs.operations import REFUSED
from tests.pairs.parts import chosen, every_pair, interleaving_named
from tests.pairs.subject_list import SUBJECTS
from tests.parts import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime.domain.dispatch.enqueue_plan import Timer
    from duetime.domain.tasks.attempt_results import Postponed
    from duetime.domain.tasks.states import Move
    from duetime.domain.tasks.task import Task

HOLD = [
    "scheduled patch-at-05 cancel",
    "scheduled pause patch-name",
    "queued cancel worker",
    "queued worker run",
    "failed retry rollback",
    "leased lease-complete pause",
    "lock-leased lease-complete lease-heartbeat",
    "switch-pulled cap-one lease-short",
    "switch-leased lease-complete uncap",
    "locked-out patch-payload lease-complete",
    "nothing create-keyed create-keyed-otherwise",
    "recurring pause patch-task",
    "event-queued signal worker",
    "topology-retry topology-pause trigger",
    "ordered cancel-by-force cancel-waiter",
    "parent notify-success create-after",
    "last-member notify-success join",
]
"""Pairs with many kinds of subjects; `make pairs` runs all pairs."""
NEVER_ACCEPTED = {"delete-calendar", "switch-no-rate", "get", "get-bulk"}
"""The operations that no subject accepts in its initial state. Some of them only read.

The other operations need another operation first, because a schedule still names the calendar, or because no rate
exists.
"""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", HOLD)
def test_no_interleaving_of_a_pair_breaks_a_promise(name: str) -> None:
    """Each end is also the end of an order of the two operations, and only accepted requests have effects."""
    faults = () if name.startswith(("lock", "topology", "recurring")) else (CallFault.LOST,)
    exploration = Exploration(every_pair()[name], faults)
    assert [told(found) for found in exploration.found()] == []
    assert exploration.runs > 5


def test_an_update_without_a_version_check_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pairs find a defect that accepts two changes to one version because the write does not check the version."""
    monkeypatch.setattr(update, "Guard", lambda **how: replace(Guard(**how), version=None))
    found = list(Exploration(every_pair()["scheduled patch-matching-05 patch-matching-55"], ()).found())
    assert "no order of the two is answered accepted and accepted" in found[0].violations[0]
    assert "make pairs AGAIN='scheduled patch-matching-05 patch-matching-55 1 " in told(found[0])


def test_a_stop_that_is_accepted_and_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pairs find a defect that retries a task after its lease although a stop had been confirmed."""
    monkeypatch.setattr(TaskControl, "_ask", lambda _self, task, *_rest: task)
    found = list(Exploration(every_pair()["leased get cancel-by-force"], ()).found())
    assert any("a stop was accepted, and the task is succeeded" in each for each in found[0].violations)


def _without_another_look(task_waits: EventWaits, task: Task) -> Postponed | None:
    """Hold a task that waits for an event, without checking for signals again after the wait was recorded."""
    if not isinstance(task.target, EventTarget):
        return None
    event, now = AwaitedEvent(task.owner, task.target.event, task.target.key), task_waits.runtime.now()
    if next(task_waits.stores.signals.since(event, first_signal_id(task), 1), None) is not None:
        return None
    if (wait := waiting_time(task, task.target, now)) is not None:
        task_waits.stores.signals.join(event, WaitingTask(task.id, task.fence), wait.until)
    return wait


@pytest.mark.parametrize("mistake", ["the sender does not look again", "the worker does not look again"])
def test_a_signal_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    """The pairs find a lost signal if the sender or the worker does not check again when a task begins to wait."""
    if mistake == "the sender does not look again":
        monkeypatch.setattr(signals, "is_being_checked", lambda *_: False)
    else:
        monkeypatch.setattr(EventWaits, "held", _without_another_look)
    found = list(Exploration(every_pair()["event-queued signal worker"], ()).found())
    assert any("the task has not taken it in time" in each for each in found[0].violations)


@pytest.mark.slow
def test_each_operation_is_accepted_on_at_least_one_subject() -> None:
    """Each operation is accepted on at least one subject, because pairs with refused operations test nothing."""
    accepted: dict[str, bool] = {}
    for subject in SUBJECTS:
        for operation in subject.operations:
            world = subject.world()
            try:
                actor = world.begin(operation)
                assert world.run_until(partial(getattr, actor, "is_done"))
                assert world.watching.violations == [], f"{subject.name} {operation.name}"
                accepted[operation.name] = accepted.get(operation.name, False) or REFUSED not in actor.outcome
            finally:
                world.end()
    assert {name for name, is_accepted in accepted.items() if not is_accepted} == NEVER_ACCEPTED


def test_an_interleaving_is_the_same_each_time() -> None:
    """An interleaving's name alone determines its calls, their times, and its end."""
    name = "queued worker pause 2 1 late"
    one, other = interleaving_named(name), interleaving_named(name)
    assert str(one.interleaving) == name
    assert one.result.made == other.result.made
    assert one.result.state == other.result.state
    assert {actor for _, actor, _ in one.result.made} == {"A", "B"}


def test_two_operations_alternate_after_their_given_numbers_of_calls() -> None:
    """A makes one call, B makes one call, A makes its remaining calls, and then B makes its remaining calls."""
    pair = every_pair()["scheduled patch-at-05 patch-at-55"]
    result = run(Interleaving(pair, 1, 1))
    assert re.fullmatch("A(A?)B(B?)A+B+", "".join(actor for _, actor, _ in result.made))
    assert result.reached == (True, True)


def test_a_run_of_a_subject_does_not_affect_the_next_run() -> None:
    """A run with a subject does not affect the next run."""
    pair = every_pair()["failed retry get"]
    before = run(Interleaving(pair, runs=(False, False))).state
    run(Interleaving(pair))
    assert run(Interleaving(pair, runs=(False, False))).state == before


@pytest.mark.parametrize("name", ["scheduled get pause", "scheduled get cancel"])
def test_states_that_differ_by_milliseconds_settle_once(name: str) -> None:
    """States that differ only by milliseconds settle only once, even if times are compressed or TTL counts seconds."""
    pair, settled = every_pair()[name], set[str]()
    stopped = [run(Interleaving(pair, k), settled) for k in (None, 0)]
    assert [each.is_known for each in stopped] == [False, True]


def test_each_pair_is_in_one_part() -> None:
    """Ten parts contain each pair exactly once, and no part is much larger than another part."""
    parts = [chosen(Part(number, 10)) for number in range(1, 11)]
    assert sorted(name for part in parts for name in part) == sorted(every_pair())
    assert max(map(len, parts)) < 1.15 * min(map(len, parts))


def _without_identity(patch: pytest.MonkeyPatch) -> None:
    """Only the version decides whether a schedule is written, and a deleted schedule leaves nothing behind."""

    def remove(client: Any, table: str, marker: Any, *_rest: Any) -> bool:  # noqa: ANN401 - as in the adapter
        client.delete_item(TableName=table, Key={"p": marker["p"], "s": marker["s"]})
        return True

    patch.setattr(schedules, "save_next", lambda *arguments: save_next(*arguments[:5]))
    patch.setattr(schedules, "delete_next", remove)


def _leases_however_late(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaseService, "_with_time_left", lambda _self, leases, _length: list(leases))


def _places_under_deleted_limits_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PullLocks, "_deleted_limits", lambda *_: [])


def _a_later_request_replaces_a_stronger_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(control, "stronger", lambda asked, _task: {"requested_action": asked})


def _bulk_acts_on_any_version(patch: pytest.MonkeyPatch) -> None:
    cancel = update.TaskUpdater.cancel
    patch.setattr(
        update.TaskUpdater,
        "cancel",
        lambda self, owner, task_id, _version, *by: cancel(self, owner, task_id, None, *by),
    )


def _timers_of_a_turn_share_a_key(patch: pytest.MonkeyPatch) -> None:
    made = task_store.timer_item_of

    def shared(timer: Timer) -> Any:  # noqa: ANN401 - an item
        return {**made(timer), "s": {"S": f"{timer.task_id}#w#{timer.generation}"}}

    patch.setattr(task_store, "timer_item_of", shared)


def _a_resume_keeps_the_time_that_it_read(patch: pytest.MonkeyPatch) -> None:
    placed = control.TaskControl._placed

    def first_read(self: TaskControl, task: Task, move: Move, at_of: Any, *rest: Any) -> Task:  # noqa: ANN401 - of `_placed`
        at = at_of(task)
        return placed(self, task, move, lambda _task: at, *rest)

    patch.setattr(TaskControl, "_placed", first_read)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "name", "faults", "told_of"),
    [
        (_without_identity, "recurring trigger make-again", (), "task=simulation-plain not task=simulation-undone"),
        (_leases_however_late, "pulled lease-short get", (CallFault.SLOW,), "after its end"),
        (
            _a_later_request_replaces_a_stronger_one,
            "leased pause cancel-by-force",
            (),
            "a cancel was accepted, and the task is running",
        ),
        (_places_under_deleted_limits_are_forgotten, "switch-leased lease-complete uncap", (), "did not give back l##"),
        (_bulk_acts_on_any_version, "scheduled bulk-cancel patch-name", (), "state=cancelled not state=scheduled"),
        (_timers_of_a_turn_share_a_key, "scheduled patch-matching-05 patch-matching-55", (), "late without a fault"),
        (_a_resume_keeps_the_time_that_it_read, "paused resume patch-at-05", (), "it ended as no order does"),
    ],
)
def test_bugs_that_were_found_before_are_found_again(
    mistake: Callable[[pytest.MonkeyPatch], None],
    name: str,
    faults: tuple[CallFault, ...],
    told_of: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pairs find each of these mistakes, which were once bugs that no simulation with random faults had found."""
    mistake(monkeypatch)
    violations = [each for found in Exploration(every_pair()[name], faults).found() for each in found.violations]
    assert any(told_of in each for each in violations), violations


@pytest.mark.parametrize("fault", [None, CallFault.LOST, CallFault.LATE, CallFault.REFUSED])
@pytest.mark.parametrize("name", ["leased lease-complete pause", "paused resume patch-at-05", "pulled run lease"])
def test_interleavings_that_are_left_out_have_no_other_outcomes(
    name: str, fault: CallFault | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exchanging calls without common data leads to the same responses and states."""
    pair = every_pair()[name]
    ends: list[tuple[object, object]] = []

    def noted(wanted: Interleaving, settled: set[str] | None = None) -> Result:
        result = run(wanted, settled)
        ends.append((result.outcomes, result.state))
        return result

    monkeypatch.setattr(exploring, "run", noted)
    # A call that only reads is refused instead of lost.
    list(Exploration(pair, () if fault is None else (fault, CallFault.REFUSED)).found())
    numbers = range(len(run(Interleaving(pair, runs=(True, False))).footprints[0]))
    others = range(1, 1 + len(run(Interleaving(pair, runs=(False, True))).footprints[1]))
    every = [Interleaving(pair, k, m, fault) for k in numbers for m in (*others, None) if fault or k]
    results = {str(each): run(each) for each in every}
    left_out = {name: each.made for name, each in results.items() if (each.outcomes, each.state) not in ends}
    assert left_out == {}
