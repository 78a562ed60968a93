"""Runs a handler's steps: functions that run once across all attempts of a task, because their results are stored.

Worker functions and pull workers use the same rules, but store results in different places.
"""

from __future__ import annotations

import inspect
import json
import re
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from duetime_common.limits import MAX_STEP_NAME_LENGTH, MAX_STEP_RESULT_BYTES, MAX_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping

    Millis = int

STEP_NAME_PATTERN = rf"^[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{MAX_STEP_NAME_LENGTH - 1}}}$"
_NAME = re.compile(STEP_NAME_PATTERN.strip("^$"))
RUN = "run"
"""The phase whose steps have the shortest keys, and whose results the other phases can read."""
_STEP: ContextVar[tuple[str, str] | None] = ContextVar("duetime_step", default=None)
"""The task id and the idempotency key of the step that runs in this thread or coroutine."""


class StepKeeper(Protocol):
    """Stores the step results of one phase of an attempt. Each result is JSON text in UTF-8."""

    def load(self) -> Mapping[str, bytes]:
        """The stored results of the phase by step name."""
        ...

    def load_run(self) -> Mapping[str, bytes]:
        """The stored results of the phase `run` by step name."""
        ...

    def begin(self) -> Millis | None:
        """The start time of a step; `None` if the attempt has lost its lease, so that the step must not start."""
        ...

    def keep(self, name: str, result: bytes, began: Millis) -> bytes:
        """Store a result, and return the stored result, which another attempt may have stored first."""
        ...


class MemorySteps:
    """Keeps step results in memory for a handler's unit tests.

    Args:
        results: the step results of earlier attempts, by step name; new results are added.
    """

    def __init__(self, results: MutableMapping[str, Any]) -> None:
        self._results = results

    def load(self) -> Mapping[str, bytes]:
        """The stored results by step name."""
        return {name: json.dumps(result).encode() for name, result in self._results.items()}

    load_run = load

    def begin(self) -> Millis | None:
        """Always return 0."""
        return 0

    def keep(self, name: str, result: bytes, _began: Millis) -> bytes:
        """Keep a result."""
        self._results[name] = json.loads(result)
        return result


class Steps:
    """The steps of one phase of an attempt. Threads and coroutines may share an instance.

    Args:
        task_id: id of the task.
        phase: name of the phase.
        keeper: stores the results.
        encode: encodes a result for storage; raises `ValueError` if the result is not JSON.
        decode: converts a stored result to JSON text.
        invalid: creates the error for an invalid call of a step.
        lost: creates the error for an attempt that has lost its lease.
    """

    def __init__(
        self,
        task_id: str,
        phase: str,
        keeper: StepKeeper,
        *,
        encode: Callable[[object], bytes],
        decode: Callable[[bytes], bytes],
        invalid: Callable[[str], Exception],
        lost: Callable[[], Exception],
    ) -> None:
        self._task_id = task_id
        self._prefix = task_id if phase == RUN else f"{task_id}:{phase}"
        self._keeper = keeper
        self._encode = encode
        self._decode = decode
        self._invalid = invalid
        self._lost = lost
        self._lock = Lock()
        self._stored: dict[str, bytes] | None = None
        self._used: set[str] = set()

    def call(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON, or a coroutine
        """Run a step, or return its stored result. For a coroutine function, return an awaitable."""
        if _is_coroutine_function(function):
            return self._awaited(name, function, args, kwargs)
        with self._once(name):
            if (stored := self._load().get(name)) is None:
                began = self._begin()
                with self._inside(name):
                    result = function(*args, **kwargs)
                if inspect.isawaitable(result):
                    if inspect.iscoroutine(result):
                        result.close()
                    raise self._invalid(f"the step {name!r} returned an awaitable: name the coroutine function itself")
                stored = self._keep(name, result, began)
            return json.loads(self._decode(stored))

    async def _awaited(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:  # noqa: ANN401 - any JSON
        with self._once(name):
            if (stored := self._load().get(name)) is None:
                began = self._begin()
                with self._inside(name):
                    result = await function(*args, **kwargs)
                stored = self._keep(name, result, began)
            return json.loads(self._decode(stored))

    def results(self) -> dict[str, Any]:
        """The stored results of the phase `run` by step name."""
        return {name: json.loads(self._decode(result)) for name, result in self._keeper.load_run().items()}

    @contextmanager
    def _once(self, name: str) -> Iterator[None]:
        """Reserve a step name for this attempt. If the step raises an exception, the name can be used again."""
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise self._invalid(
                f"{name!r} is not a valid name of a step: 1 to {MAX_STEP_NAME_LENGTH} letters, digits, _, . and -; "
                "the first one is not . or -"
            )
        if (outer := _STEP.get()) is not None and outer[0] == self._task_id:
            raise self._invalid(f"the step {name!r} is inside another step: call it outside of that")
        with self._lock:
            if name in self._used:
                raise self._invalid(f"the step {name!r} was used before in this attempt: number it, as {name}-1")
            stored = self._load()
            if name not in stored and len(stored.keys() | self._used) >= MAX_STEPS:
                raise self._invalid(f"a task can have {MAX_STEPS} steps")
            self._used.add(name)
        try:
            yield
        except BaseException:
            self._used.discard(name)
            raise

    def _load(self) -> dict[str, bytes]:
        """The stored results, which are loaded once, under the lock."""
        if self._stored is None:
            self._stored = dict(self._keeper.load())
        return self._stored

    def _begin(self) -> Millis:
        if (began := self._keeper.begin()) is None:
            raise self._lost()
        return began

    @contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        token = _STEP.set((self._task_id, f"{self._prefix}:{name}"))
        try:
            yield
        finally:
            _STEP.reset(token)

    def _keep(self, name: str, result: object, began: Millis) -> bytes:
        try:
            data = self._encode(result)
        except ValueError as error:
            raise self._invalid(f"the result of the step {name!r} is not JSON: {error}") from None
        if len(data) > MAX_STEP_RESULT_BYTES:
            raise self._invalid(
                f"the result of the step {name!r} has {len(data)} bytes; {MAX_STEP_RESULT_BYTES} are allowed"
            )
        stored = self._keeper.keep(name, data, began)
        self._load()[name] = stored
        return stored


def idempotency_key(task_id: str) -> str:
    """The idempotency key of the step that runs in this thread or coroutine, or the task's id outside of steps."""
    step = _STEP.get()
    return step[1] if step is not None and step[0] == task_id else task_id


def _is_coroutine_function(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - the method, not whether there is one
