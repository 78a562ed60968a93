from __future__ import annotations

import pytest

from duetime.domain.limits import ACTIONS_INLINE, ACTIONS_INLINE_BYTES
from duetime.domain.tasks.action_history import NO_ACTIONS, Action, ActionHistory, ActionRecord, Attribution
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord
from duetime.domain.tasks.attempt_run import ended_attempts
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_events import EventType, TaskEvent, events_of
from tests.domain.factories import NOW, task


def action(kind: Action, at: int, version: int | None = None, reason: str = "") -> ActionRecord:
    """An action by the owner."""
    return ActionRecord(kind, at, Attribution(reason=reason), version)


def attempt(fence: int, started_at: int, outcome: AttemptOutcome = AttemptOutcome.RETRIED) -> AttemptRecord:
    """An attempt that lasted 100 ms."""
    return AttemptRecord(fence, fence, "w", started_at, 0, 100, outcome)


def test_every_action_has_an_event_type() -> None:
    """Each action has an event type."""
    assert {each.value for each in Action} < {each.value for each in EventType}


def test_actions_stay_in_the_order_of_their_writes() -> None:
    """An action whose time is earlier, because a clock is behind, still comes after the previous action."""
    records = (action(Action.PAUSED, NOW + 5000, 2), action(Action.RESUMED, NOW + 100, 3))
    found = events_of(task(actions=ActionHistory(records)), [attempt(1, NOW + 6000)])
    assert [each.type.value for each in found] == ["created", "paused", "resumed", "attempt_started", "attempt_ended"]


def test_a_lost_attempt_is_listed_between_its_neighbors() -> None:
    """A lost attempt, whose end is unknown, is listed between the attempts before and after it."""
    lost = AttemptRecord(2, 2, "", 0, 0, 0, AttemptOutcome.LOST)
    found = events_of(task(), [attempt(1, NOW), lost, attempt(3, NOW + 500)])
    assert [(each.type, each.attempt.fence) for each in found if each.attempt] == [
        (EventType.ATTEMPT_STARTED, 1),
        (EventType.ATTEMPT_ENDED, 1),
        (EventType.ATTEMPT_ENDED, 2),
        (EventType.ATTEMPT_STARTED, 3),
        (EventType.ATTEMPT_ENDED, 3),
    ]
    assert found[3].at is None


def test_an_end_a_retry_and_a_start_in_one_millisecond_stay_ordered() -> None:
    """Events in the same millisecond are in order: the attempt's end, the retry, and the next start."""
    ended = [attempt(1, NOW, AttemptOutcome.FAILED), attempt(2, NOW + 100)]
    history = ActionHistory((action(Action.RETRIED, NOW + 100, 4),))
    found: list[TaskEvent] = list(events_of(task(actions=history), ended))
    assert [each.type.value for each in found][1:5] == [
        "attempt_started",
        "attempt_ended",
        "retried",
        "attempt_started",
    ]


@pytest.mark.parametrize("count", [1, ACTIONS_INLINE, ACTIONS_INLINE + 1, 100])
def test_the_latest_actions_are_kept_and_the_others_counted(count: int) -> None:
    """A task keeps the latest actions, up to a limit, and counts the others."""
    history = NO_ACTIONS
    for number in range(count):
        history = history.plus(action(Action.PAUSED, NOW + number))
    assert len(history.records) == min(count, ACTIONS_INLINE)
    assert history.dropped == count - len(history.records)
    assert history.records[-1].at == NOW + count - 1


def test_the_byte_limit_applies_to_all_actions_except_the_newest() -> None:
    """The limit on bytes applies to all actions except the newest."""
    history = NO_ACTIONS.plus(action(Action.PAUSED, NOW)).plus(action(Action.RESUMED, NOW, reason="\u754c" * 400))
    assert (len(history.records), history.dropped) == (1, 1)
    assert history.records[0].size > ACTIONS_INLINE_BYTES
    assert len(history.plus(action(Action.PAUSED, NOW)).records) == 1


def test_a_running_attempt_is_listed_with_only_its_start() -> None:
    """A running attempt is listed with only its start."""
    running = task(state=State.RUNNING, fence=1, attempt=1, lease_worker="w", lease_expires_at=NOW + 60_000, run_at=NOW)
    found = events_of(running, ended_attempts(running, ()))
    assert [each.type.value for each in found] == ["created", "attempt_started"]
