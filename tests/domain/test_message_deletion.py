from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.domain.dispatch.message_deletion import (
    CheckTopology,
    DeleteMessage,
    FollowUp,
    RedeliverMessage,
    Undo,
    after_refusal,
    before_due,
)
from duetime.domain.operating_parameters import EARLY_MESSAGE_RETURN, LEASE_RETURN_MARGIN
from duetime.domain.tasks.states import LEASED, TERMINAL, State
from duetime.domain.tasks.targets import HandlerTarget, TopologyTarget
from duetime.domain.times import DAY, HOUR, SECOND
from tests.domain.factories import NOW, message, task

if TYPE_CHECKING:
    from duetime.domain.times import Millis


def test_a_message_of_an_unknown_task_is_deleted() -> None:
    """The message of an unknown task is deleted, because no task can need it."""
    assert isinstance(after_refusal(None, message(), NOW), DeleteMessage)


@pytest.mark.parametrize(("early", "back"), [(20 * SECOND, 19 * SECOND), (2 * HOUR, EARLY_MESSAGE_RETURN)])
def test_a_postponed_tasks_message_returns_just_before_the_due_time(early: Millis, back: Millis) -> None:
    """The message of a postponed task returns just before the due time; if a clock may be wrong, it returns sooner."""
    assert before_due(message(due=NOW + early), NOW) == RedeliverMessage(NOW + back, "not due")


@pytest.mark.parametrize("state", sorted(LEASED))
def test_a_leased_tasks_message_returns_after_the_lease(state: State) -> None:
    """A leased task's message returns after the lease, and starts the next attempt if the worker has vanished."""
    disposition = after_refusal(task(state=state, lease_expires_at=NOW + 30 * SECOND), message(), NOW)
    assert disposition == RedeliverMessage(NOW + 30 * SECOND + LEASE_RETURN_MARGIN, "leased")


def test_a_timer_of_the_current_generation_checks_a_running_topology() -> None:
    """For a running topology, a timer for the current generation leads to a check; other timers have no effect."""
    running = task(
        state=State.RUNNING, target=TopologyTarget(), fence=2, deferred_fence=2, lease_expires_at=NOW + 9 * SECOND
    )
    assert after_refusal(running, message(), NOW) == CheckTopology(running)
    assert isinstance(after_refusal(replace(running, generation=1), message(), NOW), DeleteMessage)
    assert isinstance(after_refusal(replace(running, deferred_fence=1), message(), NOW), RedeliverMessage)
    assert isinstance(after_refusal(replace(running, target=HandlerTarget()), message(), NOW), RedeliverMessage)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_message_of_a_finished_task_is_deleted(state: State) -> None:
    """A finished task's message is deleted, because the record needs no more work."""
    assert isinstance(after_refusal(task(state=state, finished_at=NOW), message(), NOW), DeleteMessage)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_message_completes_open_followups_of_an_outcome(state: State) -> None:
    """If a dead worker left follow-ups, the message makes another worker do them."""
    assert isinstance(after_refusal(task(state=state), message(), NOW), FollowUp)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_message_returns_after_the_lease_of_followups_in_progress(state: State) -> None:
    """While another worker does the follow-ups, the message returns after that worker's lease."""
    disposition = after_refusal(task(state=state, lease_expires_at=NOW + 9 * SECOND), message(), NOW)
    assert isinstance(disposition, RedeliverMessage)
    assert disposition.at > NOW + 9 * SECOND


def test_a_message_starts_a_due_rollback_without_a_valid_lease() -> None:
    """At the due time, the message starts a rollback that has no lease or whose worker is lost."""
    assert isinstance(after_refusal(task(state=State.ROLLING_BACK), message(), NOW), Undo)
    lost = task(state=State.ROLLING_BACK, lease_expires_at=NOW - 9 * SECOND)
    assert isinstance(after_refusal(lost, message(), NOW), Undo)
    later = task(state=State.ROLLING_BACK, next_at=NOW + 9 * SECOND)
    assert after_refusal(later, message(), NOW) == RedeliverMessage(NOW + 9 * SECOND, "not due")


@pytest.mark.parametrize("state", [State.SCHEDULED, State.WAITING, State.RUNNING])
def test_a_message_of_another_generation_is_deleted(state: State) -> None:
    """A message with an older generation is deleted, because the newer generation has its own message or timer."""
    assert isinstance(
        after_refusal(task(state=state, generation=1, lease_expires_at=NOW), message(), NOW), DeleteMessage
    )


@pytest.mark.parametrize("state", [State.PAUSED, State.BLOCKED])
def test_a_message_of_a_paused_task_is_deleted(state: State) -> None:
    """A paused task's message is deleted, because resuming the task sends a new message."""
    assert isinstance(after_refusal(task(state=state), message(), NOW), DeleteMessage)


def test_a_message_returns_at_the_due_time_if_a_clock_is_behind() -> None:
    """If a worker's clock is behind, the message returns at the due time, and the task is not lost."""
    disposition = after_refusal(task(next_at=NOW + 90 * SECOND), message(), NOW)
    assert disposition == RedeliverMessage(NOW + 90 * SECOND, "not due")


def test_a_timer_replaces_a_message_beyond_the_queues_maximum_delay() -> None:
    """A check that is a day ahead has a timer, because the queue cannot hold a message for that long."""
    assert isinstance(after_refusal(task(next_at=NOW + DAY), message(), NOW), DeleteMessage)
