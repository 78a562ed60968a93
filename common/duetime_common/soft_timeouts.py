"""Raises an exception in a function that runs too long, so that the function can clean up before its attempt ends."""

from __future__ import annotations

import ctypes
from functools import wraps
from inspect import iscoroutinefunction
from threading import Lock, Timer, get_ident
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

P = ParamSpec("P")
R = TypeVar("R")


class SoftTimeout(TimeoutError):
    """A block or function did not end within its `soft_timeout`."""

    def __init__(self, message: str = "the soft time limit has passed") -> None:
        super().__init__(message)


class soft_timeout:  # noqa: N801 - used like a function
    """Raise `SoftTimeout` in a block or function that does not end within the given number of seconds.

        @handler("report", timeout_seconds=60)
        @soft_timeout(50)
        def make_report(context, payload): ...

    The exception is raised between two Python instructions, in the thread that entered the block. A call that waits
    outside Python, such as `time.sleep` or a socket read, is not interrupted; give this call a timeout of its own. In a
    coroutine, use `asyncio.timeout`. An uncaught exception fails the attempt, which is retried like any other failed
    attempt.

    Args:
        seconds: More than 0. Choose less than the task's `timeout_seconds`, after which the attempt fails anyway.

    Raises:
        TypeError: `seconds` is not a number, or the decorated function is a coroutine function.
        ValueError: `seconds` is not positive.
    """

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise TypeError(f"soft_timeout takes a number of seconds, not {seconds!r}")
        # This comparison also rejects NaN.
        if not seconds > 0:
            raise ValueError(f"soft_timeout takes more than 0 seconds, not {seconds!r}")
        self._seconds = seconds

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Limit each call of a function; calls may run in several threads."""
        if iscoroutinefunction(function):
            raise TypeError(
                f"soft_timeout cannot limit a coroutine such as {function.__name__}: use asyncio.timeout in it"
            )

        @wraps(function)
        def limited(*args: P.args, **kwargs: P.kwargs) -> R:
            with soft_timeout(self._seconds):
                return function(*args, **kwargs)

        return limited

    def __enter__(self) -> None:
        """Start a timer."""
        self._limit = _Limit(get_ident())
        self._timer = Timer(self._seconds, self._limit.interrupt)
        self._timer.daemon = True
        self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the timer."""
        self._limit.end()
        self._timer.cancel()


class _Limit:
    """The time limit of one block."""

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._lock = Lock()
        self._has_ended = False
        self._was_raised = False

    def interrupt(self) -> None:
        """Raise the exception in the thread, unless the block has ended."""
        with self._lock:
            if not self._has_ended:
                self._was_raised = True
                _raise_in(self._thread, SoftTimeout)

    def end(self) -> None:
        """End the limit when its block ends."""
        with self._lock:
            self._has_ended = True
        if self._was_raised:
            # If the block ended just before the exception, the exception must not reach the code after the block.
            _raise_in(self._thread, None)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an exception in a thread; `None` cancels a pending exception (Source: Python/C API docs)."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )
