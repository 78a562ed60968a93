"""Whatever errors, strings and results a handler produces, its attempt ends with a valid outcome."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import MAX_ERROR_MESSAGE_LENGTH, MAX_PROGRESS_MESSAGE_LENGTH
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN
from duetime.handlers import AttemptPaused, Unretriable
from tests.scenarios.scenario import MINUTE, PHASED, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, RECOVERY, Tasks
from tests.simulation.users import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable

FILE = "caf\udce9.txt"
"""The value of `os.fsdecode(b"caf\xe9.txt")`, which cannot be encoded as UTF-8."""
WRITTEN = "caf\\udce9.txt"
NO_WAIT = {"max_attempts": 2, "initial_seconds": 0}


class Silent(Exception):
    """An error whose message cannot be read."""

    def __str__(self) -> str:
        raise KeyboardInterrupt

    __repr__ = __str__

    def __reduce__(self) -> str:
        raise GeneratorExit

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]  # what is tested
        raise ValueError(FILE)


class _Odd(type):
    def __getattribute__(cls, name: str) -> Any:  # noqa: ANN401 - any attribute
        if name in {"__name__", "__qualname__"}:
            raise LookupError
        return super().__getattribute__(name)


class Nameless(Exception, metaclass=_Odd):
    """An error whose class hides its name."""


BASE_ERRORS = [
    SystemExit(3),
    asyncio.CancelledError("gone"),
    KeyboardInterrupt(),
    GeneratorExit(),
    BaseException("x"),
    BaseExceptionGroup("many", [KeyboardInterrupt()]),
    Silent(),
    Nameless(),
    type("Line\nbreak", (Exception,), {})("x"),
    type("Long" * 99, (BaseException,), {})("y" * 1_000_000),
    ValueError(f"cannot read {FILE}"),
    ValueError(b"\xff", FILE, object()),
    RecursionError(),
    SyntaxError("torn", ("f.py", 1, 1, 5)),  # type: ignore[arg-type]  # what is tested
]


def raising(error: BaseException, phase: str = "run", times: int = 99) -> Callable[[str, Any], str]:
    """A target that raises in one of its phases during the first `times` calls."""
    left = [times]

    def behave(called: str, _context: Any) -> str:  # noqa: ANN401 - a handler's or an endpoint's
        if called == phase and left[0]:
            left[0] -= 1
            raise error
        return "done"

    return behave


@pytest.mark.parametrize("error", BASE_ERRORS, ids=range(len(BASE_ERRORS)))
def test_any_error_of_a_handler_fails_its_attempt_at_once(error: BaseException) -> None:
    """Any handler error fails the attempt at once with the error's class, and the retry policy applies."""
    with Tasks() as tasks:
        tasks.target = raising(error)
        task_id = tasks.create(retry=NO_WAIT)
        tasks.run(3 * SECOND)
        task = tasks.record(task_id)
        assert (task.state, task.attempt, tasks.outcomes(task_id)) == ("failed", 2, ["retried", "failed"])
        assert task.error is not None
        name = type.__dict__["__name__"].__get__(type(error))
        assert task.error.type == name[:64].replace("\n", "\\n")
        assert len(task.error.message) <= MAX_ERROR_MESSAGE_LENGTH
        assert tasks.messages() == []
        told = tasks.ask("GET", f"/v1/tasks/{task_id}/attempts").body["attempts"]
        assert [line["error"]["type"] for line in told] == 2 * [task.error.type]
        assert tasks.notes().count("an attempt failed") == 2


@pytest.mark.parametrize("phase", ["prepare", "run", "clean"])
@pytest.mark.parametrize("error", [asyncio.CancelledError(), GeneratorExit(FILE)], ids=["cancelled", "closed"])
def test_any_error_in_prepare_or_run_is_retried_at_once(error: BaseException, phase: str) -> None:
    """Errors in `prepare` and `run` are retried at once, but errors in `clean` do not change the outcome."""
    with Tasks() as tasks:
        tasks.target = raising(error, phase, times=1)
        task_id = tasks.create(kind=PHASED, retry=NO_WAIT)
        tasks.run(5 * SECOND)
        assert tasks.done(task_id).attempt == (1 if phase == "clean" else 2)
        assert tasks.record(task_id).finished_at is not None


def test_a_rollback_is_retried_after_any_error() -> None:
    """A rollback is retried after any error."""
    with Tasks() as tasks:
        fail, undo = raising(Unretriable(FILE)), raising(KeyboardInterrupt(), "rollback", times=1)
        tasks.target = lambda phase, context: undo(phase, context) if phase == "rollback" else fail(phase, context)
        task_id = tasks.create(kind=UNDONE, rollback_on_failure=True, retry=NO_WAIT)
        tasks.run(10 * SECOND)
        assert tasks.state(task_id) == "rolled_back"
        assert tasks.phases(task_id) == ["run", "rollback", "rollback"]


def test_characters_that_utf_8_cannot_encode_are_escaped_in_errors() -> None:
    """In an error's message and traceback, characters that UTF-8 cannot encode are escaped."""
    with Tasks() as tasks:
        tasks.target = raising(Unretriable(f"cannot read {FILE}"))
        task_id = tasks.create()
        tasks.run(SECOND)
        shown = tasks.ask("GET", f"/v1/tasks/{task_id}").body
        assert (shown["state"], shown["attempt"]) == ("failed", 1)
        assert shown["error"] == {"type": "Unretriable", "message": f"cannot read {WRITTEN}"}
        attempt = tasks.ask("GET", f"/v1/tasks/{task_id}/attempts").body["attempts"][0]
        assert f"Unretriable: cannot read {WRITTEN}" in attempt["error"]["traceback"]


def test_an_invalid_progress_message_does_not_fail_its_attempt() -> None:
    """A progress message is converted to a string, escaped and cut if necessary; the attempt succeeds."""
    with Tasks() as tasks:

        def behave(_phase: str, context: Any) -> int:  # noqa: ANN401 - a handler's context
            context.progress(33.3, FILE * 20)
            context.heartbeat()
            tasks.take(15 * SECOND)
            context.progress(50, {"file": FILE})
            tasks.take(15 * SECOND)
            return 1

        tasks.target = behave
        task_id = tasks.create()
        tasks.run(12 * SECOND)
        progress = tasks.ask("GET", f"/v1/tasks/{task_id}").body["progress"]
        assert progress == {"percent": 33, "message": (WRITTEN * 20)[:MAX_PROGRESS_MESSAGE_LENGTH]}
        tasks.run(MINUTE)
        assert tasks.done(task_id).attempt == 1
        progress = tasks.ask("GET", f"/v1/tasks/{task_id}").body["progress"]
        assert progress == {"percent": 50, "message": str({"file": FILE})}


class Loud(dict[str, object]):
    """A value that raises when it is read."""

    def items(self) -> Any:  # noqa: ANN401 - it returns nothing
        """Raise an error that `except Exception` does not catch."""
        raise GeneratorExit(FILE)


UNKEPT: list[object] = [
    {"file": FILE},
    {FILE: 1},
    {1: "a", "1": "b"},
    {None: 1, "null": 2},
    {True: 1, "true": 2},
    10**60,
    {"a": [10**38]},
    float("nan"),
    {1, 2},
    Loud(a=1),
    json.loads("[" * 64 + "]" * 64),
]


@pytest.mark.parametrize("value", UNKEPT, ids=range(len(UNKEPT)))
def test_an_attempt_with_a_result_that_is_not_json_fails(value: object) -> None:
    """An attempt whose result is not JSON fails with `ResultNotJson` and is not retried."""
    with Tasks() as tasks:
        tasks.target = lambda _phase, _context: value
        task_id = tasks.create()
        tasks.run(SECOND)
        task = tasks.record(task_id)
        assert (task.state, task.attempt) == ("failed", 1)
        assert task.error is not None
        assert task.error.type == "ResultNotJson", task.error


@pytest.mark.parametrize("value", UNKEPT, ids=range(len(UNKEPT)))
def test_an_attempt_with_a_checkpoint_that_is_not_json_fails(value: object) -> None:
    """An attempt whose checkpoint is not JSON also fails with `ResultNotJson`."""
    with Tasks() as tasks:

        def behave(_phase: str, _context: Any) -> None:  # noqa: ANN401 - a handler's context
            tasks.take(20 * SECOND)
            raise AttemptPaused(value)

        tasks.target = behave
        task_id = tasks.create()
        tasks.run(SECOND)
        tasks.do(task_id, "pause")
        tasks.run(MINUTE)
        task = tasks.record(task_id)
        assert task.error is not None
        assert (task.state, task.error.type) == ("failed", "ResultNotJson")


@pytest.mark.parametrize("attempts", [1, 2, 3, 4])
@pytest.mark.parametrize("after", [0, 70, 130])
def test_every_lost_attempt_is_replaced_within_the_time_limit(attempts: int, after: int) -> None:
    """If an attempt's worker and message vanish, the next attempt begins within three minutes after the lease."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.hang(attempts)
        task_id = tasks.create(timeout_seconds=800)
        for attempt in range(1, attempts + 1):
            assert tasks.run_until(lambda: len(tasks.effects) == attempt, within=LEASE + RECOVERY)  # noqa: B023 - called at once
            tasks.run(SECOND + after * SECOND)
            tasks.kill()
            tasks.lose_messages()
        assert tasks.run_until(lambda: tasks.state(task_id) == "succeeded", within=LEASE + RECOVERY)
        assert tasks.outcomes(task_id) == [*["lost"] * attempts, "succeeded"][-5:]


def test_a_killed_worker_is_replaced_after_its_lease_by_redelivery() -> None:
    """After every attempt whose worker is killed, the queue delivers the message again after the lease."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.hang(3)
        task_id = tasks.create(timeout_seconds=800)
        for attempt in (1, 2, 3):
            within = LEASE + LEASE_RETURN_MARGIN + 6 * SECOND
            assert tasks.run_until(lambda: len(tasks.effects) == attempt, within=within)  # noqa: B023 - called at once
            tasks.run(SECOND)
            tasks.kill()
        tasks.run(LEASE + LEASE_RETURN_MARGIN + 6 * SECOND)
        assert tasks.done(task_id).attempt == 4


def test_a_task_whose_only_attempt_is_lost_fails_in_time() -> None:
    """A task whose only attempt lost its worker and message fails within the time limit."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.hang(9)
        task_id = tasks.create(kind=PLAIN, retry=ONCE, timeout_seconds=800)
        tasks.run(3 * MINUTE)
        tasks.kill()
        tasks.lose_messages()
        tasks.run(LEASE + RECOVERY)
        assert tasks.state(task_id) == "failed"
