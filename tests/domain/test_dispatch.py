from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.dispatch.enqueue_plan import (
    HEADROOM,
    Entry,
    Precision,
    Timer,
    at_first_reading,
    delay_seconds,
    enqueue_plan,
    is_check_kept,
    is_direct,
    is_left_behind,
    is_open_past_due,
    rescan_timer,
)
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import (
    LATEST_ARRIVAL,
    MAX_CLOCK_DIFFERENCE,
    RECOVERY_SCAN_DELAYS,
    RESCAN_PATIENCE,
)
from duetime.domain.tasks.states import LEASED, STARTABLE, TERMINAL, State
from duetime.domain.tasks.targets import PullTarget
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, minute_of, start_of
from tests.domain.factories import task

NOW = 1_795_228_387_250
LOOK_AHEAD = 180 * SECOND
ENTRY = Entry(
    TaskId.of(NOW, 3, 9), "me", State.SCHEDULED, Priority.NORMAL, 0, NOW, sent=False, leased_until=None, finished=False
)

instants = st.integers(NOW - DAY, NOW + DAY)
soon = st.integers(NOW - 5 * SECOND, NOW + 1_000 * SECOND)


@given(soon | instants, st.just(NOW) | instants, st.sampled_from([Precision.NORMAL, Precision.EXACT]))
def test_a_message_arrives_before_its_due_time(due: int, now: int, precision: Precision) -> None:
    """A message's delay is a whole number of seconds, and leaves the worker the headroom and at most a second more."""
    delay = delay_seconds(due, now, precision)
    assert 0 <= delay <= 900
    if delay:
        assert now + delay * SECOND <= due - HEADROOM[precision]
        if delay < 900:
            assert due - (now + delay * SECOND) < HEADROOM[precision] + SECOND


@given(soon | instants, st.just(NOW) | instants)
def test_a_relaxed_message_arrives_within_a_second_after_the_due_time(due: int, now: int) -> None:
    """The delay of a relaxed message is rounded up, so that it arrives within a second after the due time."""
    delay = delay_seconds(due, now, Precision.RELAXED)
    if now < due <= now + 900 * SECOND:
        assert due <= now + delay * SECOND < due + SECOND


def _check_covered(home: int, at: int, now: int) -> None:
    plan = enqueue_plan(TaskId.of(home, 0, 0), at, now, LOOK_AHEAD)
    if plan.timer or minute_of(at) == minute_of(home):
        return
    first_recovery_scan = start_of(minute_of(home) + 1) + RECOVERY_SCAN_DELAYS[0]
    assert plan.direct
    assert max(at, now + LATEST_ARRIVAL) + MAX_CLOCK_DIFFERENCE < first_recovery_scan, (
        "the write may still be under way"
    )
    assert minute_of(at) > minute_of(home)


@given(instants, instants, instants)
def test_a_check_is_always_covered(home: int, at: int, now: int) -> None:
    """A check is covered by the record or a timer in the check's minute, or by a later recovery scan."""
    _check_covered(home, max(at, now), now)


@pytest.mark.parametrize("into_its_minute", [0, 1, 30 * SECOND, MINUTE - 1])
def test_a_check_around_the_records_minute_is_always_covered(into_its_minute: int) -> None:
    """A check is covered at each second from two minutes before the record's minute to five minutes after it."""
    home = start_of(minute_of(NOW)) + into_its_minute
    for at in range(home - 2 * MINUTE, home + 5 * MINUTE, SECOND):
        for wait in range(0, 6 * MINUTE, 15 * SECOND):
            _check_covered(home, at, at - wait)


@given(instants, st.integers(0, 30 * SECOND))
def test_a_writer_sends_the_message_if_the_minute_may_be_read(now: int, slowness: int) -> None:
    """If a trigger whose clock is up to 30 s ahead may already have read the minute, the writer sends the message."""
    read_up_to = minute_of(now + slowness + LOOK_AHEAD)
    assert is_direct(start_of(read_up_to), now, LOOK_AHEAD)
    assert is_direct(start_of(read_up_to + 1) - 1, now, LOOK_AHEAD)


def test_a_task_due_later_needs_no_message_from_the_writer() -> None:
    """A task that is due in twenty minutes needs no message yet; if its record is in its minute, it needs no timer."""
    at = NOW + 20 * MINUTE
    plan = enqueue_plan(TaskId.of(at, 0, 0), at, NOW, LOOK_AHEAD)
    assert (plan.timer, plan.direct) == (False, False)


def test_a_retry_in_seconds_needs_no_timer() -> None:
    """The first scan of the record's minute serves as the timer of a quick retry, which is sent directly."""
    plan = enqueue_plan(TaskId.of(NOW, 0, 0), NOW + 8 * SECOND, NOW + 2 * SECOND, LOOK_AHEAD)
    assert (plan.timer, plan.direct) == (False, True)


def test_a_far_retry_gets_a_timer() -> None:
    """A retry ten minutes from now gets a timer in its minute, where the trigger finds the timer."""
    plan = enqueue_plan(TaskId.of(NOW, 0, 0), NOW + 10 * MINUTE, NOW, LOOK_AHEAD)
    assert (plan.timer, plan.direct) == (True, False)


def test_a_change_to_an_earlier_minute_gets_a_timer() -> None:
    """A task that is moved from tomorrow to now needs a timer, because its record is in another minute."""
    plan = enqueue_plan(TaskId.of(NOW + DAY, 0, 0), NOW, NOW, LOOK_AHEAD)
    assert (plan.timer, plan.direct) == (True, True)


def test_the_first_reading_sends_tasks_that_are_due_in_its_minute() -> None:
    """For a waiting record in its own minute, a message with the due time is sent."""
    message = at_first_reading(ENTRY, minute_of(NOW))
    assert message is not None
    assert (message.task_id, message.generation, message.due) == (ENTRY.task_id, 0, NOW)


@pytest.mark.parametrize(
    "entry",
    [
        replace(ENTRY, sent=True),
        replace(ENTRY, next_at=NOW + HOUR),
        *(replace(ENTRY, state=state, leased_until=NOW) for state in State if state not in STARTABLE),
    ],
)
def test_the_first_reading_sends_no_tasks_already_sent_moved_or_not_waiting(entry: Entry) -> None:
    """Tasks that were already sent, were moved to another minute, or are not waiting get no message."""
    assert at_first_reading(entry, minute_of(NOW)) is None


def test_the_first_reading_sends_a_rollback_without_a_lease() -> None:
    """A task that waits for its rollback, and therefore holds no lease, gets a message."""
    assert at_first_reading(replace(ENTRY, state=State.ROLLING_BACK), minute_of(NOW)) is not None


def test_the_first_reading_sends_a_timers_message_for_its_generation() -> None:
    """For a timer, a message with the timer's generation is sent, unless the timer's creator has sent it."""
    timer = Timer(ENTRY.task_id, 4, NOW, Priority.HIGH, "me")
    message = at_first_reading(timer, minute_of(NOW))
    assert message is not None
    assert (message.generation, message.priority) == (4, Priority.HIGH)
    assert at_first_reading(replace(timer, sent=True), minute_of(NOW)) is None


@pytest.mark.parametrize("state", list(State))
def test_a_recovery_scan_sends_overdue_tasks_ended_leases_and_unfinished_outcomes(state: State) -> None:
    """A scan sends overdue tasks, ended leases and unfinished outcomes, but no paused or blocked tasks."""
    entry = replace(ENTRY, state=state, leased_until=NOW - MAX_CLOCK_DIFFERENCE, next_at=NOW)
    assert is_left_behind(entry, NOW) == (state in STARTABLE | LEASED | TERMINAL)


def test_a_recovery_scan_skips_finished_tasks_and_valid_leases() -> None:
    """A scan does not send finished tasks, or tasks with a future check or a lease that may be valid."""
    assert not is_left_behind(replace(ENTRY, next_at=NOW + 1), NOW)
    leased = replace(ENTRY, state=State.RUNNING, leased_until=NOW - MAX_CLOCK_DIFFERENCE + 1)
    assert not is_left_behind(leased, NOW)
    assert not is_left_behind(replace(ENTRY, state=State.SUCCEEDED, finished=True), NOW)


def test_the_last_recovery_scan_sets_another_timer_for_a_running_task() -> None:
    """A task that runs for days gets a timer for a later day; a waiting task with a future check gets no timer."""
    assert is_open_past_due(replace(ENTRY, state=State.RUNNING, leased_until=NOW + MINUTE), NOW)
    assert not is_open_past_due(replace(ENTRY, next_at=NOW + MINUTE), NOW)
    assert not is_open_past_due(replace(ENTRY, state=State.PAUSED), NOW)


def test_only_pulled_attempts_wait_for_pull_workers() -> None:
    """Pulled attempts wait for pull workers, while the work before and after them is for worker functions."""
    pulled = task(target=PullTarget(), type="resize")
    for state in State:
        is_of_workers = state in TERMINAL or state in {State.ROLLING_BACK, State.BLOCKED}
        assert replace(pulled, state=state).pull_queue == ("" if is_of_workers else "resize")
    assert task(type="resize").pull_queue == ""
    assert Entry.of(pulled).message(NOW).pull_queue == "resize"
    timer = Timer(pulled.id, 4, NOW, Priority.HIGH, "me", pull_queue="resize")
    sent = at_first_reading(timer, minute_of(NOW))
    assert sent is not None
    assert sent.pull_queue == "resize"


def test_records_entries_and_timers_have_the_same_fair_key_share() -> None:
    """A record, an entry and timers give the same share of a fair key, and no share without a key."""
    keyed = task(fair_key="customer-17", fair_weight=3)
    entry = Entry.of(keyed)
    rescan = rescan_timer(replace(entry, state=State.RUNNING, leased_until=NOW), NOW)
    assert rescan is not None
    assert keyed.fair_share in {f"{number}.customer-17" for number in range(3)}
    first = at_first_reading(entry.timer(NOW), minute_of(NOW))
    assert first is not None
    found = {entry.message(NOW).fair_share, entry.timer(NOW).fair_share, rescan.fair_share, first.fair_share}
    assert found == {keyed.fair_share}
    assert Entry.of(task()).message(NOW).fair_share == ""


def test_only_a_due_task_keeps_its_message_if_its_fair_key_changes() -> None:
    """If its fair key changes, a due task keeps its message, which may have been received; other tasks need another."""
    keyed = task(fair_key="customer-17", next_at=NOW + HOUR)
    assert is_check_kept(keyed, NOW + HOUR, NOW, {"fair_key": "customer-17"})
    assert not is_check_kept(keyed, NOW + HOUR, NOW, {"fair_key": "customer-18"})
    assert not is_check_kept(keyed, NOW + HOUR, NOW, {"fair_key": None})
    assert is_check_kept(keyed, NOW + HOUR, NOW + HOUR, {"fair_key": None})


def test_an_open_task_is_found_by_the_first_later_scan() -> None:
    """The first scan of a later minute, at least a minute from now, finds an open task."""
    for offset in range(0, 120, 7):
        now = NOW + offset * SECOND
        for left in (-60, 0, 30, 300, 900):
            running = replace(ENTRY, state=State.RUNNING, leased_until=now + left * SECOND)
            timer = rescan_timer(running, now)
            assert timer is not None
            assert timer.sent
            scanned_at = start_of(minute_of(timer.at) + 1) + RECOVERY_SCAN_DELAYS[0]
            assert scanned_at >= now + MINUTE
            assert scanned_at >= now + left * SECOND + MAX_CLOCK_DIFFERENCE
            assert scanned_at <= max(now + 2 * MINUTE, now + left * SECOND + MAX_CLOCK_DIFFERENCE + MINUTE)


def test_a_task_that_cannot_start_gets_no_other_timer() -> None:
    """A task that cannot start gets no other timer, nor does an asynchronous attempt with a timer at its deadline."""
    waiting = replace(ENTRY, state=State.WAITING, next_at=NOW)
    assert rescan_timer(waiting, NOW + RESCAN_PATIENCE) is not None
    assert rescan_timer(waiting, NOW + RESCAN_PATIENCE + 1) is None
    for overdue in (0, MINUTE, RESCAN_PATIENCE):
        timer = rescan_timer(waiting, NOW + overdue)
        assert timer is not None
        assert start_of(minute_of(timer.at) + 1) <= NOW + overdue + MINUTE
    assert rescan_timer(replace(ENTRY, state=State.RUNNING, leased_until=NOW + 20 * MINUTE), NOW) is None
