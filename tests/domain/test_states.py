from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duetime.domain.conditional_writes import Guard, Write
from duetime.domain.tasks.states import LEASED, LEGAL, NOT_STARTED, STARTABLE, TERMINAL, Move, State
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task import RequestedAction
from tests.domain.factories import ID, NOW, task
from tests.domain.write_semantics import applied, permits


def test_every_move_between_states_is_in_the_table() -> None:
    """Every transition between states is in the table of legal transitions."""
    assert set(LEGAL) == set(Move)


def test_no_move_of_an_attempt_changes_an_outcome() -> None:
    """Only reopening, rerunning, blocking and a requested rollback move a task out of a final state."""
    touching = {move for move, rule in LEGAL.items() if rule.sources & TERMINAL}
    assert {move for move in touching if LEGAL[move].to is None} == {
        Move.HEARTBEAT,
        Move.CLAIM_FOLLOW_UP,
        Move.CLOSE,
        Move.RETAIN,
        Move.ERASE,
    }
    assert {move for move in touching if LEGAL[move].to is not None} == {
        Move.REOPEN,
        Move.RERUN,
        Move.BLOCK,
        Move.REQUEST_ROLLBACK,
    }


def test_the_groups_of_states_do_not_overlap() -> None:
    """No startable or unstarted state is leased, and no leased or unstarted state is final."""
    assert not STARTABLE & LEASED
    assert not LEASED & TERMINAL
    assert not NOT_STARTED & (LEASED | TERMINAL)


@pytest.mark.parametrize("move", list(Move))
@pytest.mark.parametrize("state", list(State))
def test_a_write_is_permitted_only_from_the_states_of_its_move(move: Move, state: State) -> None:
    """Without a guard, only the table decides whether a move is permitted from a state."""
    assert permits(Write(ID, move, "n"), task(state=state)) == (state in LEGAL[move].sources)


@pytest.mark.parametrize(
    ("guard", "met"),
    [
        (Guard(owner="me"), True),
        (Guard(owner="you"), False),
        (Guard(generation=0), True),
        (Guard(generation=1), False),
        (Guard(version=1), True),
        (Guard(version=2), False),
        (Guard(fence=0), True),
        (Guard(fence=1), False),
        (Guard(due_by=NOW), True),
        (Guard(due_by=NOW - 1), False),
        (Guard(generation=1, leased_until_before=NOW), False),
        (Guard(open=True), True),
    ],
)
def test_each_value_in_a_guard_can_reject_the_write(guard: Guard, met: bool) -> None:  # noqa: FBT001 - a test parameter
    """Each value in a guard can refuse the write on its own."""
    assert permits(Write(ID, Move.CLAIM, "n", guard), task()) == met


@pytest.mark.parametrize(
    ("guard", "changes"),
    [
        (Guard(open=True), {"finished_at": NOW}),
        (Guard(not_cancelled=True), {"requested_action": RequestedAction.CANCEL}),
        (Guard(alone=True), {"target": TopologyTarget()}),
        (Guard(alone=True), {"has_dependents": True}),
        (Guard(unawaited=True), {"has_dependents": True}),
        (Guard(acknowledged=True), {"unacknowledged": 1}),
    ],
)
def test_each_condition_of_a_guard_can_reject_the_write(guard: Guard, changes: dict[str, Any]) -> None:
    """Each condition of a guard that names no value can refuse the write on its own."""
    assert permits(Write(ID, Move.CLAIM, "n", guard), task())
    assert not permits(Write(ID, Move.CLAIM, "n", guard), task(**changes))


def test_only_the_end_of_a_lease_decides_about_a_takeover() -> None:
    """For a leased record, only the end of the lease decides, whatever generation the guard names."""
    leased = task(state=State.RUNNING, lease_expires_at=NOW, generation=5)
    guard = Guard(generation=0, due_by=NOW, leased_until_before=NOW)
    assert permits(Write(ID, Move.CLAIM, "n", guard), leased)
    assert not permits(Write(ID, Move.CLAIM, "n", guard), replace(leased, lease_expires_at=NOW + 1))


def test_an_applied_write_sets_its_values_and_raises_the_version() -> None:
    """One write sets the state, the nonce, values and first-time values, adds its sums, and raises the version."""
    write = Write(ID, Move.CLAIM, "mine", sets={"name": "x"}, sets_once={"started_at": NOW}, adds={"fence": 1})
    after = applied(write, task(version=4))
    assert (after.state, after.nonce, after.name, after.started_at, after.fence, after.version) == (
        State.RUNNING,
        "mine",
        "x",
        NOW,
        1,
        5,
    )
    assert applied(write, task(started_at=1)).started_at == 1
