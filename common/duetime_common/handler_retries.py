"""Lets handlers decide which exceptions are retried, and when."""

from __future__ import annotations

from duetime_common.frozen_classes import frozen
from duetime_common.limits import MAX_RETRY_WAIT_SECONDS

Classes = tuple[type[BaseException], ...]
HANDLER_DEFINITION = "_duetime_definition"
"""Attribute of a handler class that contains the handler's task type, so that the client can create tasks for the
handler."""


class RetryIn(Exception):
    """Raise this to fail the attempt and start the next attempt after the given time.

    The retry policy's wait is ignored.

    The failed attempt counts, so the retry policy's `max_attempts` and `max_duration_seconds` apply.

    Args:
        seconds: More than 0 and at most 86,400, the longest wait of a retry policy.
        message: Message of the attempt's error.

    Raises:
        TypeError: `seconds` is not a number.
        ValueError: `seconds` is out of range.
    """

    def __init__(self, seconds: float, message: str = "") -> None:
        self.seconds = _checked(seconds)
        super().__init__(message or f"the handler requested a retry in {seconds} s")


def _checked(seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"RetryIn takes a number of seconds, not {seconds!r}")
    # This comparison also rejects NaN.
    if not 0 < seconds <= MAX_RETRY_WAIT_SECONDS:
        raise ValueError(f"RetryIn takes more than 0 and at most {MAX_RETRY_WAIT_SECONDS} seconds, not {seconds!r}")
    return seconds


def _check_classes(keyword: str, value: object) -> None:
    if not isinstance(value, tuple) or not all(
        isinstance(each, type) and issubclass(each, BaseException) for each in value
    ):
        raise TypeError(f"{keyword} takes a tuple of exception classes, such as (ConnectionError,), not {value!r}")


def _is_any(error: BaseException, classes: Classes) -> bool:
    """Whether an `except` clause with these classes would catch the exception.

    Classes are compared by identity, because an exception's metaclass may override `isinstance` and equality.
    """
    ancestors = type.mro(type(error))
    return any(ancestor is each for ancestor in ancestors for each in classes)


def requested_wait(error: BaseException) -> float | None:
    """The seconds of a `RetryIn`; `None` for other exceptions, and for a subclass without valid seconds."""
    if not _is_any(error, (RetryIn,)):
        return None
    try:
        return _checked(getattr(error, "seconds", None))
    except BaseException:  # noqa: BLE001 - a subclass may raise anything here
        return None


@frozen
class RetryRule:
    """Defines which exceptions of a handler are retried. By default, all are retried; `RetryIn` is always retried.

    Attributes:
        retry_on: only these exceptions and their subclasses are retried; `None` for all.
        no_retry_on: these exceptions and their subclasses are not retried, even if `retry_on` includes them.

    Raises:
        TypeError: a value is not a tuple of exception classes.
    """

    retry_on: Classes | None = None
    no_retry_on: Classes = ()

    def __post_init__(self) -> None:
        """Check the values, because users write them."""
        if self.retry_on is not None:
            _check_classes("retry_on", self.retry_on)
        _check_classes("no_retry_on", self.no_retry_on)

    def allows(self, error: BaseException) -> bool:
        """Whether an attempt that raised this exception may be retried."""
        if _is_any(error, (RetryIn,)):
            return True
        if _is_any(error, self.no_retry_on):
            return False
        return self.retry_on is None or _is_any(error, self.retry_on)


RETRY_ALL = RetryRule()
"""The default rule."""
