"""Tests which arguments the batch decorator accepts, and with which members of a group a batch handler is called."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.targets.python_handlers import HandlerRunner
from duetime.domain.tasks.attempt_results import NotSent, Stopped, Succeeded
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.times import SECOND
from duetime.handlers import REGISTRY, Batch, BatchItem, Context, handler, registered_as
from tests.adapters.targets.test_handlers import Package
from tests.adapters.targets.works import work

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.times import Millis
    from duetime.ports.targets import Work


class Together:
    """Collects the members that a test adds, and calls the handler when the last member has joined."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.members: list[Any] = []
        self.keys: list[Hashable] = []
        self.limits: list[tuple[int, Millis]] = []
        self.endings: Sequence[TargetEnding] = ()

    def join(
        self,
        key: Hashable,
        member: Any,  # noqa: ANN401 - any member
        call: Callable[[Sequence[Any], Millis], Sequence[Any]],
        *,
        max_size: int,
        max_wait: Millis,
    ) -> Any:  # noqa: ANN401 - any ending
        """Add a member, and call the handler if the group is complete."""
        self.keys.append(key)
        self.limits.append((max_size, max_wait))
        self.members.append(member)
        if len(self.members) == self.size:
            self.endings = call(self.members, member[0].deadline - 5 * SECOND)
        return None


def gathered(function: Callable[..., Any], *works: Work, batch: Batch | None = None) -> Together:
    """Return the group of the given attempts after the handler was called."""
    together = Together(len(works))
    runner = HandlerRunner({"report": registered_as("report", function, batch=batch or Batch())}, Package())
    for each in works:
        runner.run(replace(each, batch_groups=lambda: together))
    return together


@pytest.mark.parametrize(
    ("options", "error", "keyword"),
    [
        ({"max_size": 0}, ValueError, "max_size"),
        ({"max_size": 1_001}, ValueError, "max_size"),
        ({"max_size": 2.0}, TypeError, "max_size"),
        ({"max_size": True}, TypeError, "max_size"),
        ({"max_wait_seconds": -1}, ValueError, "max_wait_seconds"),
        ({"max_wait_seconds": 61}, ValueError, "max_wait_seconds"),
        ({"max_wait_seconds": float("nan")}, ValueError, "max_wait_seconds"),
        ({"max_wait_seconds": "5"}, TypeError, "max_wait_seconds"),
        ({"key": 7}, TypeError, "key"),
    ],
)
def test_the_error_for_an_invalid_batch_setting_names_the_keyword(
    options: dict[str, Any], error: type[Exception], keyword: str
) -> None:
    """An invalid batch setting raises an error at import, and not only when the first task is due."""
    with pytest.raises(error, match=rf"^{keyword} takes "):
        Batch(**options)


def test_the_batch_decorator_accepts_only_a_batch_and_a_function() -> None:
    """A number instead of a `Batch`, or a batch setting on a class, is an error, and no handler is registered."""
    wrong: Any = 100
    with pytest.raises(TypeError, match=r"^batch takes a Batch, such as"):
        handler("test.batch", batch=wrong)

    class Indexer:
        def run(self, items: object) -> None: ...

    decorate: Any = handler("test.batch", batch=Batch())
    with pytest.raises(TypeError, match=r"^batch takes a function: the class 'Indexer'"):
        decorate(Indexer)
    assert "test.batch" not in REGISTRY


def test_a_second_registration_keeps_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a handler is registered a second time, it keeps its batch."""
    monkeypatch.setattr("duetime.handlers.REGISTRY", {})

    @handler("test.one", batch=Batch(max_size=7))
    def add(items: Sequence[BatchItem[int]]) -> None: ...

    assert registered_as("test.two", add).batch == Batch(max_size=7)


def test_an_item_can_only_be_failed_with_an_exception() -> None:
    """An item can only be failed with an exception, because a string would not say whether the task is retried."""
    wrong: Any = "busy"
    with pytest.raises(TypeError, match=r"^fail takes an exception"):
        BatchItem[None](Context.for_test(), None).fail(wrong)


def test_a_batch_member_without_a_lease_is_not_called() -> None:
    """A member whose process was suspended during the wait is not called, because another worker may have the task."""
    seen: list[int] = []
    lost = replace(work(), is_leased=lambda: False)
    together = gathered(lambda items: seen.append(len(items)), work(), lost, work())
    assert [type(ending) for ending in together.endings] == [Succeeded, NotSent, Succeeded]
    assert seen == [2]


def test_a_batch_member_cancelled_while_waiting_is_not_called() -> None:
    """If all members of a batch are cancelled while they wait, the handler is not called."""
    seen: list[int] = []
    cancelled = replace(work(), requested_action=lambda: RequestedAction.CANCEL)
    assert gathered(lambda items: seen.append(len(items)), cancelled).endings == [Stopped()]
    assert seen == []


def test_the_wait_takes_at_most_half_of_the_time_left() -> None:
    """At most half of the remaining time is used for waiting; the rest is left for the handler."""
    together = gathered(lambda _items: None, replace(work(), seconds=3.0), batch=Batch(max_wait_seconds=50))
    assert together.limits == [(100, 1_500)]


def test_the_last_of_several_attempts_is_called_alone() -> None:
    """A task's last of several attempts is called alone, but a task with only one attempt shares calls."""
    task = work().task
    last = replace(work(), task=replace(task, attempt=3, retry=replace(task.retry, max_attempts=3)))
    only = replace(work(), task=replace(task, attempt=1, retry=replace(task.retry, max_attempts=1)))
    together = gathered(lambda _items: None, last, only, work())
    assert [size for size, _ in together.limits] == [1, 100, 100]
    assert together.keys[0] != together.keys[1] == together.keys[2]
