"""A soft time limit raises an exception in a function that runs too long, which then has time to finish."""

from __future__ import annotations

import threading
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, cast

import pytest

from duetime import handlers
from duetime_client import worker
from duetime_common import soft_timeouts
from duetime_common.soft_timeouts import SoftTimeout, soft_timeout

if TYPE_CHECKING:
    from collections.abc import Callable


class Timers:
    """Timers that fire when a test chooses."""

    def __init__(self) -> None:
        self.made: list[Timers.Timer] = []

    class Timer:
        """One timer."""

        def __init__(self, seconds: float, call: Callable[[], None]) -> None:
            self.seconds = seconds
            self.call = call
            self.is_running = False
            self.daemon = False

        def start(self) -> None:
            """Begin to wait."""
            self.is_running = True

        def cancel(self) -> None:
            """Stop waiting."""
            self.is_running = False

    def make(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Make a timer."""
        self.made.append(self.Timer(seconds, call))
        return self.made[-1]


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    """The timers that soft time limits start."""
    timers = Timers()
    monkeypatch.setattr(soft_timeouts, "Timer", timers.make)
    return timers


def test_a_function_that_is_late_is_interrupted() -> None:
    """A real timer ends an endless loop with `SoftTimeout`."""

    @soft_timeout(0.001)
    def count() -> None:
        while True:
            pass

    with pytest.raises(SoftTimeout, match="the soft time limit has passed"):
        count()


def test_a_function_can_catch_it_and_return(timers: Timers) -> None:
    """The limit raises only once, so that the function can finish its work."""

    @soft_timeout(20)
    def work() -> str:
        (timer,) = timers.made
        try:
            timer.call()
            while True:
                pass
        except SoftTimeout:
            return "cleaned up"

    assert work() == "cleaned up"
    assert (timers.made[0].seconds, timers.made[0].is_running) == (20, False)


def test_nothing_is_raised_after_the_block(timers: Timers) -> None:
    """A timer that fires after the block, because it was cancelled too late, has no effect."""
    with soft_timeout(20):
        pass
    timers.made[0].call()
    assert sum(range(1000)) == 499_500


def test_an_exception_that_was_not_yet_raised_ends_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a block ends just when its limit passes, the code after the block is not interrupted."""
    sent: list[Any] = []
    monkeypatch.setattr(soft_timeouts, "_raise_in", lambda thread, error: sent.append((thread, error)))
    limit = soft_timeout(20)
    with limit:
        limit._limit.interrupt()
        limit._timer.cancel()
    assert sent == [(threading.get_ident(), SoftTimeout), (threading.get_ident(), None)]


def test_each_call_has_a_limit_of_its_own(timers: Timers) -> None:
    """The end of one call does not end the limit of a concurrent call in another thread."""
    has_begun, may_end = Event(), Event()
    ended: list[str] = []

    @soft_timeout(20)
    def work(*, is_long: bool) -> None:
        has_begun.set()
        try:
            while is_long and not may_end.is_set():
                pass
            ended.append("in time")
        except SoftTimeout:
            ended.append("late")

    long = Thread(target=work, kwargs={"is_long": True})
    long.start()
    has_begun.wait()
    work(is_long=False)
    timers.made[0].call()
    long.join(timeout=60)
    may_end.set()
    long.join()
    assert ended == ["in time", "late"]
    assert [timer.is_running for timer in timers.made] == [False, False]


def test_a_limit_holds_again_in_the_next_block(timers: Timers) -> None:
    """A limit that was kept applies again in the next block, in which the first block's late timer has no effect."""
    limit = soft_timeout(20)
    with limit:
        pass
    with limit:
        timers.made[0].call()
        assert sum(range(1000)) == 499_500
        with pytest.raises(SoftTimeout):
            interrupted(timers.made[1])


def interrupted(timer: Timers.Timer) -> None:
    """Let a limit's time pass, and continue until the limit raises its exception."""
    timer.call()
    while True:
        pass


def test_a_coroutine_cannot_be_limited() -> None:
    """A limit on a coroutine is an error at import with advice, as it would end before the coroutine begins."""

    async def work() -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match="cannot limit a coroutine such as work"):
        soft_timeout(20)(work)


@pytest.mark.parametrize("seconds", [True, "20", None])
def test_the_limit_is_a_number(seconds: object) -> None:
    """A limit that is not a number is an error at import."""
    with pytest.raises(TypeError, match="takes a number of seconds"):
        soft_timeout(cast("float", seconds))


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_the_limit_is_positive(seconds: float) -> None:
    """A limit of zero or less is an error at import."""
    with pytest.raises(ValueError, match="takes more than 0 seconds"):
        soft_timeout(seconds)


def test_pull_workers_have_the_same(timers: Timers) -> None:
    """The modules for handlers and for pull workers both offer the limit."""
    assert (worker.soft_timeout, worker.SoftTimeout) == (handlers.soft_timeout, handlers.SoftTimeout)
    assert timers.made == []
