"""Defines batch handlers, which process several tasks of a type in one call and give each task its own outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from duetime_common.frozen_classes import frozen
from duetime_common.limits import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_BATCH_WAIT_SECONDS,
    MAX_HANDLER_BATCH,
    MAX_HANDLER_BATCH_WAIT_SECONDS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

C = TypeVar("C")
P = TypeVar("P")


@frozen
class Batch:
    """Defines how tasks of a type are batched into calls of a handler.

    Attributes:
        max_size: maximum number of tasks in one call, 1 to 1,000. A worker cannot pass more tasks than it holds: a
            worker function holds the tasks of one queue delivery, and a pull worker holds as many tasks as its
            `concurrency`.
        max_wait_seconds: how long the first task may wait for others, 0 to 60. The wait counts towards the task's
            timeout, and uses at most half of the timeout. A worker function does not wait if no other task could still
            join.
        key: a function of the payload, or the name of a payload field. Only tasks with the same key share a call;
            `None` lets all tasks share calls.

    Raises:
        TypeError: a value has a wrong type.
        ValueError: a value is out of range.
    """

    max_size: int = DEFAULT_BATCH_SIZE
    max_wait_seconds: float = DEFAULT_BATCH_WAIT_SECONDS
    key: Callable[[Any], Hashable] | str | None = None

    def __post_init__(self) -> None:
        """Check the values, because users write them."""
        if isinstance(self.max_size, bool) or not isinstance(self.max_size, int):
            raise TypeError(f"max_size takes a whole number, not {self.max_size!r}")
        if not 1 <= self.max_size <= MAX_HANDLER_BATCH:
            raise ValueError(f"max_size takes 1 to {MAX_HANDLER_BATCH}, not {self.max_size}")
        if isinstance(self.max_wait_seconds, bool) or not isinstance(self.max_wait_seconds, int | float):
            raise TypeError(f"max_wait_seconds takes a number of seconds, not {self.max_wait_seconds!r}")
        # This comparison also rejects NaN.
        if not 0 <= self.max_wait_seconds <= MAX_HANDLER_BATCH_WAIT_SECONDS:
            raise ValueError(
                f"max_wait_seconds takes 0 to {MAX_HANDLER_BATCH_WAIT_SECONDS}, not {self.max_wait_seconds}"
            )
        if self.key is not None and not isinstance(self.key, str) and not callable(self.key):
            raise TypeError(f"key takes a function of the payload, or the name of a field, not {self.key!r}")

    def key_of(self, payload: Any) -> Hashable:  # noqa: ANN401 - any payload
        """Return the batch key of a payload.

        Raises:
            Exception: the key function raises an exception, or the payload has no such field.
            TypeError: the key is not hashable.
        """
        if self.key is None:
            return None
        if not isinstance(self.key, str):
            key = self.key(payload)
        else:
            key = payload[self.key] if isinstance(payload, dict) else getattr(payload, self.key)
        hash(key)
        return key


def check_batch(value: object) -> None:
    """Check the keyword `batch` of a registration.

    Raises:
        TypeError: the value is neither a `Batch` nor `None`.
    """
    if value is not None and not isinstance(value, Batch):
        raise TypeError(f"batch takes a Batch, such as Batch(max_size=100), not {value!r}")


class BatchItem(Generic[C, P]):
    """One task of a batch.

    Attributes:
        context: the context of the task's attempt.
        payload: the task's payload.
        error: the error passed to `fail`; `None` if `fail` was not called.
    """

    __slots__ = ("context", "error", "payload")

    def __init__(self, context: C, payload: P) -> None:
        self.context = context
        self.payload = payload
        self.error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """Fail only this task's attempt, as if its handler had raised the error.

        If this method is called repeatedly, the last error counts.

        Raises:
            TypeError: `error` is not an exception.
        """
        if not _is_error(error):
            raise TypeError(f"fail takes an exception, not {error!r}")
        self.error = error


class BatchResultInvalid(TypeError):
    """A batch handler returned neither `None` nor one result for each task. A retry would not help."""

    def __init__(self, returned: object, size: int) -> None:
        kind = type.__dict__["__name__"].__get__(type(returned))
        length = f" of {len(returned)}" if isinstance(returned, list | tuple) else ""
        super().__init__(f"a batch handler must return a list of {size} results, or None, not a {kind}{length}")


def batch_outcomes(items: Sequence[BatchItem[Any, Any]], returned: object) -> list[object]:
    """The result of each item, or the exception with which the item's attempt failed."""
    results: Sequence[object] = [None] * len(items)
    if isinstance(returned, Sequence) and not isinstance(returned, str | bytes) and len(returned) == len(items):
        results = returned
    elif returned is not None:
        results = [BatchResultInvalid(returned, len(items))] * len(items)
    return [result if item.error is None else item.error for item, result in zip(items, results, strict=True)]


def _is_error(value: object) -> bool:
    # `type` returns the real class; an object's `__class__` may return anything.
    return issubclass(type(value), BaseException)


def error_of(outcome: object) -> BaseException | None:
    """The exception with which an item's attempt failed; `None` for a result."""
    return outcome if _is_error(outcome) else None  # type: ignore[return-value]  # see `_is_error`
