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
            """Start the timer."""
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


def test_a_function_that_exceeds_its_soft_timeout_is_interrupted() -> None:
    """A real timer ends an endless loop with `SoftTimeout`."""

    @soft_timeout(0.001)
    def count() -> None:
        while True:
            pass

    with pytest.raises(SoftTimeout, match="the soft time limit has passed"):
        count()


def test_a_function_can_catch_the_soft_timeout_and_return(timers: Timers) -> None:
    """The limit raises its exception only once, so that the function can catch it and finish its work."""

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


def test_a_late_timer_raises_nothing_after_the_block(timers: Timers) -> None:
    """A timer that fires after the block, because it was cancelled too late, has no effect."""
    with soft_timeout(20):
        pass
    timers.made[0].call()
    assert sum(range(1000)) == 499_500


def test_a_pending_exception_is_dropped_at_the_end_of_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a block ends just when its limit passes, the code after the block is not interrupted."""
    sent: list[Any] = []
    monkeypatch.setattr(soft_timeouts, "_raise_in", lambda thread, error: sent.append((thread, error)))
    limit = soft_timeout(20)
    with limit:
        limit._limit.interrupt()
        limit._timer.cancel()
    assert sent == [(threading.get_ident(), SoftTimeout), (threading.get_ident(), None)]


def test_concurrent_calls_have_independent_time_limits(timers: Timers) -> None:
    """The end of one call does not end the limit of another call, which runs in another thread at the same time."""
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


def test_a_time_limit_applies_again_in_the_next_block(timers: Timers) -> None:
    """A limit can be used for a second block, in which the late timer of the first block has no effect."""
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


def test_a_time_limit_on_a_coroutine_is_an_import_error() -> None:
    """A limit on a coroutine is refused at import, because the limit would end before the coroutine begins."""

    async def work() -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match="cannot limit a coroutine such as work"):
        soft_timeout(20)(work)


@pytest.mark.parametrize("seconds", [True, "20", None])
def test_a_time_limit_that_is_not_a_number_is_an_import_error(seconds: object) -> None:
    """A limit that is not a number is an error at import."""
    with pytest.raises(TypeError, match="takes a number of seconds"):
        soft_timeout(cast("float", seconds))


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_limit_of_zero_or_less_is_an_import_error(seconds: float) -> None:
    """A limit that is not above zero is an error at import."""
    with pytest.raises(ValueError, match="takes more than 0 seconds"):
        soft_timeout(seconds)


def test_handlers_and_pull_workers_both_offer_the_soft_timeout(timers: Timers) -> None:
    """The modules for handlers and for pull workers offer the same limit."""
    assert (worker.soft_timeout, worker.SoftTimeout) == (handlers.soft_timeout, handlers.SoftTimeout)
    assert timers.made == []
