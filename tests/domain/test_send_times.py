from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.dispatch.enqueue_plan import HEADROOM, Message, Precision, delay_seconds, send_groups
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import MAX_DELAY, MOST_SENT_IN_TIME, SEND_STEP, SHORTEST_WAIT_SENT_IN_TIME
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import SECOND

NOW = 1_795_228_387_250
EARLY = HEADROOM[Precision.NORMAL]


def message(due: int) -> Message:
    """The message of a task that is due at the given time."""
    return Message(TaskId.of(due, 3, 9), 0, due, Priority.NORMAL, "me")


def arrivals(dues: list[int], precision: Precision = Precision.NORMAL) -> dict[int, int]:
    """The arrival times of messages that are sent as planned, by their due times."""
    return {
        each.due: group.at + delay_seconds(each.due, group.at, precision) * SECOND
        for group in send_groups([message(due) for due in dues], NOW, precision)
        for each in group.messages
    }


dues = st.lists(st.integers(NOW - 5 * SECOND, NOW + 2 * MAX_DELAY), min_size=1, max_size=30, unique=True)


@given(dues)
def test_every_message_is_sent_once_within_a_second_and_early_enough(each: list[int]) -> None:
    """Each message is sent once, within a second, and arrives before its headroom begins, or at once."""
    groups = send_groups([message(due) for due in each], NOW, Precision.NORMAL)
    assert sorted(one.due for group in groups for one in group.messages) == sorted(each)
    assert all(0 <= group.at - NOW < SECOND for group in groups)
    assert all(earlier.at < later.at for earlier, later in pairwise(groups))
    for due, at in arrivals(each).items():
        assert at <= max(due - EARLY, NOW)


@given(st.lists(st.integers(NOW + SHORTEST_WAIT_SENT_IN_TIME + EARLY, NOW + 180 * SECOND), min_size=2, unique=True))
def test_messages_arrive_a_tenth_of_a_second_before_their_headroom_at_most(each: list[int]) -> None:
    """Messages arrive at most a tenth of a second before their headroom; only the last may be a second early."""
    held = sorted(due - EARLY - at for due, at in arrivals(each[:MOST_SENT_IN_TIME]).items())
    assert all(0 <= rest < SEND_STEP for rest in held[:-1])
    assert held[-1] < SECOND


def test_the_trigger_does_not_wait_for_a_single_message() -> None:
    """The trigger does not wait for a single message, because its own time costs more than the worker's time."""
    (only,) = send_groups([message(NOW + 60_950)], NOW, Precision.NORMAL)
    assert only.at == NOW
    first, second = send_groups(
        [message(NOW + 60_400), message(NOW + 60_700), message(NOW + 60_900)], NOW, Precision.NORMAL
    )
    assert (first.at - NOW, second.at - NOW) == (300, 600)
    assert [each.due - NOW for each in second.messages] == [60_700, 60_900]


@pytest.mark.parametrize(
    ("precision", "count"),
    [(Precision.EXACT, 5), (Precision.RELAXED, 5), (Precision.NORMAL, MOST_SENT_IN_TIME + 1)],
)
def test_many_messages_and_other_precisions_are_sent_at_once(precision: Precision, count: int) -> None:
    """The trigger does not wait if there are many messages, or if messages are `relaxed` or `exact`."""
    (group,) = send_groups([message(NOW + 60_000 + 37 * n) for n in range(count)], NOW, precision)
    assert (group.at, len(group.messages)) == (NOW, count)


def test_messages_due_within_three_seconds_are_sent_at_once() -> None:
    """Messages that are due within three seconds are sent at once, while others wait for their time."""
    soon, later, latest = NOW + 2_900, NOW + 60_950, NOW + 61_950
    first, second = send_groups([message(due) for due in (later, soon, latest)], NOW, Precision.NORMAL)
    assert (first.at, [each.due for each in first.messages]) == (NOW, [soon])
    assert (second.at - NOW, len(second.messages)) == (800, 2)
