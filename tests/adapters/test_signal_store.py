"""Tests the store of signals and of the tasks that wait for signals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.ids import TaskId
from duetime.domain.tasks.event_waits import AwaitedEvent, SentSignal, WaitingTask
from duetime.domain.times import DAY
from tests.adapters.examples import HOME

if TYPE_CHECKING:
    from duetime.ports.stores import SignalStore

PAID = AwaitedEvent("me", "order.paid", "o-17")
FIRST = TaskId.of(0, 0, 0)


def sent(at: int, payload: bytes = b"1") -> SentSignal:
    """Return a signal that was sent `at` milliseconds after the start."""
    return SentSignal(TaskId.of(HOME + at, 3, 4), payload)


def first_of(signals: SignalStore, event: AwaitedEvent, first: TaskId) -> SentSignal | None:
    """Return the first signal for an event after a given signal."""
    return next(signals.since(event, first, 1), None)


def test_the_first_signal_since_a_time_is_found(signal_store: SignalStore) -> None:
    """Signals are ordered by the time at which they were sent, and not at which they were stored."""
    for at in (2, 1, 3):
        signal_store.put(PAID, sent(at), HOME + DAY)
    assert first_of(signal_store, PAID, FIRST) == sent(1)
    assert first_of(signal_store, PAID, sent(2).id) == sent(2)
    assert first_of(signal_store, PAID, TaskId.of(HOME + 4, 0, 0)) is None


def test_signals_are_read_page_by_page(signal_store: SignalStore) -> None:
    """All signals are read once and in order, with any page size."""
    for at in range(5):
        signal_store.put(PAID, sent(at), HOME + DAY)
    for page in (1, 2, 5, 9):
        assert list(signal_store.since(PAID, sent(1).id, page)) == [sent(at) for at in range(1, 5)]


def test_signals_are_separated_by_owner_name_and_key(signal_store: SignalStore) -> None:
    """A key can have any characters, including those that separate the parts of a partition key."""
    for event in (AwaitedEvent("me", "order.paid", ""), AwaitedEvent("me", "order.paid", "o#17")):
        signal_store.put(event, sent(1), HOME + DAY)
        assert first_of(signal_store, event, FIRST) == sent(1)
    for event in (PAID, AwaitedEvent("you", "order.paid"), AwaitedEvent("me", "order", "o#17")):
        assert first_of(signal_store, event, FIRST) is None


def test_a_large_payload_is_stored_with_its_signal(signal_store: SignalStore) -> None:
    """A payload with the maximum size of a result can be stored even if its bytes do not compress."""
    payload = b'"' + b"".join(b"%08x" % (index * 2654435761 % 2**32) for index in range(32_700)) + b'"'
    signal_store.put(PAID, sent(1, payload), HOME + DAY)
    assert first_of(signal_store, PAID, FIRST) == sent(1, payload)


def test_waiting_tasks_are_listed_page_by_page(signal_store: SignalStore) -> None:
    """Each waiting task is listed once, in the order of ids, however often the task was noted."""
    noted = [WaitingTask(TaskId.of(HOME, 3, tail), 1) for tail in range(5)]
    for each in (*reversed(noted), noted[0]):
        signal_store.join(PAID, each, HOME + DAY)
    signal_store.put(PAID, sent(1), HOME + DAY)
    assert signal_store.waiting(PAID, FIRST, 3) == noted[:3]
    assert signal_store.waiting(PAID, noted[2].task_id, 3) == noted[3:]
    assert signal_store.waiting(PAID, noted[4].task_id, 3) == []


def test_a_task_that_waits_again_is_not_removed(signal_store: SignalStore) -> None:
    """A process that read a note does not remove it if a later claim has since written the note again."""
    task_id = TaskId.of(HOME, 3, 4)
    signal_store.join(PAID, WaitingTask(task_id, 1), HOME + DAY)
    signal_store.join(PAID, WaitingTask(task_id, 2), HOME + DAY)
    signal_store.leave(PAID, WaitingTask(task_id, 1))
    assert signal_store.waiting(PAID, FIRST, 3) == [WaitingTask(task_id, 2)]
    for _ in range(2):
        signal_store.leave(PAID, WaitingTask(task_id, 2))
    assert signal_store.waiting(PAID, FIRST, 3) == []
