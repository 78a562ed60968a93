"""Tests handlers' steps and checkpoints in virtual time; each step runs once over all attempts of a task."""

from __future__ import annotations

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import MAX_CHECKPOINT_BYTES, MAX_STEP_RESULT_BYTES, MAX_STEPS
from duetime.handlers import Context, RetryIn, StepInvalid, Unretriable

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_client import RetryPolicy, Task
    from duetime_testing import Duetime

NO_WAIT: RetryPolicy = {"max_attempts": 3, "initial_seconds": 0}


class Bank:
    """A service that records its calls and their idempotency keys."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def charge(self, context: Context, amount: int = 1) -> dict[str, int]:
        """Charge an amount."""
        self.calls.append(("charge", context.idempotency_key))
        return {"charged": amount, "call": len(self.calls)}

    def ship(self, context: Context) -> str:
        """Ship the goods; the first call fails."""
        self.calls.append(("ship", context.idempotency_key))
        if len(self.calls) < 3:
            raise ConnectionError("no carrier")
        return "shipped"

    @property
    def names(self) -> list[str]:
        """The names of the calls in order."""
        return [name for name, _ in self.calls]


@pytest.fixture
def bank() -> Bank:
    """Return a bank without calls."""
    return Bank()


def run(duetime: Duetime, handler: Callable[..., Any], payload: object = None) -> Task:
    """Run a task with a handler until the task ends."""
    duetime.register("order", handler)
    task = duetime.client.tasks.create("order", payload=payload, retry=NO_WAIT)
    duetime.run_until_idle()
    return duetime.client.tasks.get(task.id)


def test_a_step_runs_once_although_a_later_step_fails(duetime: Duetime, bank: Bank) -> None:
    """The second attempt gets the first step's stored result, and only repeats the step that failed."""

    def order(context: Context, payload: dict[str, int]) -> list[object]:
        receipt = context.step("charge", bank.charge, context, amount=payload["amount"])
        return [receipt, context.step("ship", bank.ship, context)]

    task = run(duetime, order, {"amount": 7})
    assert task.result == [{"charged": 7, "call": 1}, "shipped"]
    assert (bank.names, task.attempt) == (["charge", "ship", "ship"], 2)


def test_an_idempotency_key_is_stable_and_differs_between_steps(duetime: Duetime, bank: Bank) -> None:
    """Outside of steps, the idempotency key is the task's id; in a step, the step's name is appended."""
    outside = []

    def order(context: Context, _payload: object) -> None:
        outside.append(context.idempotency_key)
        context.step("charge", bank.charge, context)
        context.step("ship", bank.ship, context)
        outside.append(context.idempotency_key)

    task = run(duetime, order)
    assert set(outside) == {task.id}
    assert bank.calls == [("charge", f"{task.id}:charge"), *[("ship", f"{task.id}:ship")] * 2]


def test_a_lost_process_does_not_repeat_its_steps(duetime: Duetime, bank: Bank) -> None:
    """If the process is lost after a step, the step's result is stored although the attempt's outcome is not."""
    duetime.faults.crash_before_finish(attempt=1)
    task = run(duetime, lambda context, _payload: context.step("charge", bank.charge, context))
    assert (task.state, task.attempt, bank.names) == ("succeeded", 2, ["charge"])


def test_a_step_interrupted_by_a_crash_is_repeated_with_its_key(duetime: Duetime) -> None:
    """How far a lost process got in a step is unknown, so the called service recognizes the repeat by its key."""
    keys = []

    def charge(context: Context) -> int:
        keys.append(context.idempotency_key)
        if context.attempt == 1:
            raise SystemExit(9)
        return 1

    task = run(duetime, lambda context, _payload: context.step("charge", charge, context))
    assert (task.result, keys) == (1, [f"{task.id}:charge"] * 2)


def test_a_coroutine_awaits_its_steps(duetime: Duetime, bank: Bank) -> None:
    """Coroutine functions, partials and objects with an async `__call__` are awaited, unlike plain functions."""

    class Sender:
        async def __call__(self, text: str) -> str:
            await asyncio.sleep(1)
            return text

    async def pause(seconds: int) -> list[int]:
        await asyncio.sleep(seconds)
        return [seconds]

    async def order(context: Context, _payload: object) -> list[object]:
        done: list[object] = [context.step("charge", bank.charge, context)]
        done += await asyncio.gather(
            context.step("one", pause, 1),
            context.step("two", functools.partial(pause, 2)),
            context.step("three", Sender(), "x"),
        )
        done.append(context.step("ship", bank.ship, context))
        return done

    task = run(duetime, order)
    assert task.result == [{"charged": 1, "call": 1}, [1], [2], "x", "shipped"]
    assert bank.names == ["charge", "ship", "ship"]


def test_keys_of_concurrent_steps_do_not_mix(duetime: Duetime) -> None:
    """Each coroutine and each thread has the idempotency key of the step that it runs."""
    seen: dict[str, list[str]] = {}

    async def note(context: Context, name: str) -> None:
        before = context.idempotency_key
        await asyncio.sleep(1)
        seen[name] = [before, context.idempotency_key]

    async def order(context: Context, _payload: object) -> None:
        await asyncio.gather(*(context.step(name, note, context, name) for name in "ab"))

    task = run(duetime, order)
    assert seen == {name: [f"{task.id}:{name}"] * 2 for name in "ab"}
    context = Context.for_test(task_id="t")
    with ThreadPoolExecutor(2) as threads:
        keys = threads.map(lambda name: context.step(name, lambda: context.idempotency_key), "ab")
    assert list(keys) == ["t:a", "t:b"]


def test_a_rollback_reads_the_steps_of_run(duetime: Duetime) -> None:
    """Steps in different phases can have the same name, and `context.steps` has the steps of `run`."""
    seen: list[object] = []

    class Transfer:
        def prepare(self, context: Context, _payload: object) -> None:
            context.step("charge", seen.append, "prepare")

        def run(self, context: Context, _payload: object) -> None:
            seen.append(context.step("charge", lambda: context.idempotency_key))
            seen.append(context.steps)
            raise Unretriable("no")

        def rollback(self, context: Context, _payload: object) -> None:
            seen.append(context.steps)
            seen.append(context.step("charge", lambda: context.idempotency_key))

        def clean(self, context: Context, _payload: object) -> None:
            seen.append(context.steps)

    duetime.register("transfer", Transfer)
    task = duetime.client.tasks.create("transfer", rollback_on_failure=True)
    duetime.run_until_idle()
    done = {"charge": f"{task.id}:charge"}
    assert seen == ["prepare", done["charge"], done, done, f"{task.id}:rollback:charge", done]


@dataclass
class Receipt:
    """An instance of a class as a step's result."""

    number: int


@pytest.mark.parametrize(
    ("result", "decoded"), [(Receipt(7), {"number": 7}), ((1, 2), [1, 2]), (None, None), ("é", "é"), ({}, {})]
)
def test_every_attempt_gets_the_same_decoded_step_result(duetime: Duetime, result: object, decoded: object) -> None:
    """The attempt that runs the step and a later attempt get the same decoded value."""
    seen = []

    def order(context: Context, _payload: object) -> None:
        seen.append(context.step("one", lambda: result))
        if context.attempt == 1:
            raise ConnectionError

    assert run(duetime, order).state == "succeeded"
    assert seen == [decoded, decoded]


REFUSED: dict[str, tuple[Callable[[Context], object], str]] = {
    "object": (lambda context: context.step("one", object), "is not JSON"),
    "nan": (lambda context: context.step("one", float, "nan"), "is not JSON"),
    "large": (lambda context: context.step("one", lambda: "x" * (MAX_STEP_RESULT_BYTES - 1)), "32769 bytes; 32768"),
    "awaitable": (lambda context: context.step("one", lambda: asyncio.sleep(0)), "name the coroutine function"),
    "twice": (lambda context: [context.step("one", int) for _ in range(2)], "was used before in this attempt: number"),
    "nested": (lambda context: context.step("one", lambda: context.step("two", int)), "'two' is inside another step"),
    "many": (lambda context: [context.step(f"s-{n}", int) for n in range(MAX_STEPS + 1)], "a task can have 100 steps"),
    "empty name": (lambda context: context.step("", int), "is not a valid name of a step"),
    "long name": (lambda context: context.step("x" * 65, int), "is not a valid name of a step"),
    "slash": (lambda context: context.step("a/b", int), "is not a valid name of a step"),
    "no text": (lambda context: context.step(7, int), "is not a valid name of a step"),  # type: ignore[call-overload]  # is tested
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_step_that_cannot_be_stored_fails_the_task_at_once(duetime: Duetime, case: str) -> None:
    """A step whose name or result is invalid fails the task at once, because a retry would not help."""
    call, message = REFUSED[case]
    task = run(duetime, lambda context, _payload: call(context))
    assert task.error is not None
    assert (task.state, task.attempt, task.error.type) == ("failed", 1, "StepInvalid")
    assert message in task.error.message


def test_step_names_results_and_counts_at_the_limits_are_accepted(duetime: Duetime) -> None:
    """A result of the maximum size, the longest name and the last allowed step are accepted and read back."""

    def order(context: Context, _payload: object) -> int:
        names = ["x" * 64, *(f"s-{n}" for n in range(MAX_STEPS - 1))]
        sizes = [len(context.step(name, lambda: "x" * (MAX_STEP_RESULT_BYTES - 2))) for name in names]
        if context.attempt == 1:
            raise ConnectionError
        return sum(sizes)

    assert run(duetime, order).result == MAX_STEPS * (MAX_STEP_RESULT_BYTES - 2)


def test_an_exception_of_a_step_ends_the_attempt(duetime: Duetime) -> None:
    """`Unretriable` in a step fails the task and `RetryIn` sets the wait; neither exception is stored."""
    waits = []

    def busy() -> str:
        waits.append(duetime.now)
        if len(waits) == 1:
            raise RetryIn(90, "busy")
        raise Unretriable("closed")

    task = run(duetime, lambda context, _payload: context.step("one", busy))
    assert task.error is not None
    assert (task.state, task.error.type) == ("failed", "Unretriable")
    assert 90 <= (waits[1] - waits[0]).total_seconds() < 100


def test_a_step_that_raised_can_be_called_again_in_its_attempt(duetime: Duetime) -> None:
    """A handler can catch a step's exception and call the step again, or do something else."""
    calls = []

    def once() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError
        return 5

    def order(context: Context, _payload: object) -> Any:  # noqa: ANN401 - any JSON
        try:
            return context.step("one", once)
        except ConnectionError:
            return context.step("one", once)

    assert run(duetime, order).result == 5


def test_the_first_step_result_of_two_concurrent_attempts_is_kept(duetime: Duetime) -> None:
    """If a suspended process continues after losing its task, both get the same value and only one continues."""
    seen: list[tuple[int, object]] = []
    effects: list[int] = []

    def slow(context: Context) -> int:
        if context.attempt == 1:
            account = duetime.faults.account
            account.time.freeze(account.time.process(), account.time.now() + 300_000)
            account.take(300_000)
        return context.attempt

    def order(context: Context, _payload: object) -> None:
        seen.append((context.attempt, context.step("slow", slow, context)))
        context.step("after", effects.append, context.attempt)

    duetime.register("order", order)
    task = duetime.client.tasks.create("order", retry=NO_WAIT, timeout_seconds=840)
    duetime.run_until_idle()
    duetime.advance(hours=1)
    assert duetime.client.tasks.get(task.id).state == "succeeded"
    assert set(seen) == {(2, 2), (1, 2)}
    assert effects == [2]


def test_a_retry_by_the_user_does_not_repeat_stored_steps(duetime: Duetime, bank: Bank) -> None:
    """After a failed task is retried, even weeks later, its stored steps are not repeated."""

    def order(context: Context, _payload: object) -> object:
        receipt = context.step("charge", bank.charge, context)
        if duetime.now.month == 1:
            raise Unretriable("closed in January")
        return receipt

    task = run(duetime, order)
    duetime.advance(days=29)
    duetime.client.tasks.retry(task.id)
    duetime.run_until_idle()
    assert duetime.client.tasks.get(task.id).result == {"charged": 1, "call": 1}
    assert bank.names == ["charge"]


def test_a_paused_task_keeps_its_steps(duetime: Duetime, bank: Bank) -> None:
    """Steps are kept for half a year if attempts continue, because each attempt extends the expiry of its steps."""

    def order(context: Context, _payload: object) -> None:
        context.step("charge", bank.charge, context)
        if context.fence < 4:
            raise RetryIn(86_400)

    duetime.register("order", order)
    task = duetime.client.tasks.create("order", retry={"max_attempts": 9})
    for _ in range(3):
        duetime.advance(hours=1)
        duetime.client.tasks.pause(task.id)
        duetime.advance(days=80)
        duetime.client.tasks.resume(task.id)
    duetime.run_until_idle()
    assert duetime.client.tasks.get(task.id).state == "succeeded"
    assert bank.names == ["charge"]


def test_call_runs_a_handler_with_given_steps(duetime: Duetime, bank: Bank) -> None:
    """`call` takes earlier attempts' results and records this attempt's results; a second call is the next attempt."""

    def order(context: Context, _payload: object) -> object:
        charged = context.step("charge", bank.charge, context)
        return [charged, context.step("ship", bank.ship, context)]

    duetime.register("order", order)
    call = duetime.call("order", steps={"charge": {"charged": 3}})
    for _ in range(2):
        with pytest.raises(ConnectionError):
            duetime.perform("order", call=call)
    assert duetime.perform("order", call=call) == [{"charged": 3}, "shipped"]
    assert call.steps == {"charge": {"charged": 3}, "ship": "shipped"}
    steps: dict[str, Any] = {}
    context = Context.for_test(steps=steps)
    assert context.step("one", int) == 0
    assert (steps, context.steps) == ({"one": 0}, {"one": 0})
    with pytest.raises(StepInvalid):
        context.step("one", int)


def test_a_checkpoint_survives_a_failure_and_a_crash(duetime: Duetime) -> None:
    """The next attempt starts at the last saved checkpoint, however the earlier attempts ended."""
    seen = []

    def index(context: Context, _payload: object) -> None:
        seen.append(context.checkpoint)
        for row in range(context.checkpoint or 0, 9):
            if row == 3 * context.attempt:
                if context.attempt == 1:
                    raise ConnectionError
                return
            context.save_checkpoint(row + 1)

    duetime.faults.crash_before_finish(attempt=2)
    assert run(duetime, index).state == "succeeded"
    assert seen == [None, 3, 6]


def test_a_checkpoint_of_a_pause_survives_a_later_failure(duetime: Duetime) -> None:
    """If an attempt fails without saving a checkpoint, the earlier checkpoint is kept."""
    seen = []

    def index(context: Context, _payload: object) -> None:
        seen.append(context.checkpoint)
        if context.checkpoint is None:
            duetime.client.tasks.pause(context.task_id)
            context.heartbeat()
            context.stop_if_requested({"row": 1})
        if len(seen) == 2:
            raise ConnectionError

    task = run(duetime, index)
    duetime.client.tasks.resume(task.id)
    duetime.run_until_idle()
    assert seen == [None, {"row": 1}, {"row": 1}]


@pytest.mark.parametrize("value", ["x" * (MAX_CHECKPOINT_BYTES - 1), object(), float("inf")])
def test_a_checkpoint_that_cannot_be_saved_fails_the_task_at_once(duetime: Duetime, value: object) -> None:
    """A checkpoint that is too large or not JSON fails the task at once."""
    task = run(duetime, lambda context, _payload: context.save_checkpoint(value))
    assert task.error is not None
    assert (task.state, task.attempt, task.error.type) == ("failed", 1, "CheckpointInvalid")


def test_clean_saves_no_checkpoint(duetime: Duetime) -> None:
    """The phase `clean` cannot save a checkpoint, because no later attempt could read the checkpoint."""
    seen = []

    class Work:
        def run(self, _context: Context, _payload: object) -> None:
            """Do nothing."""

        def clean(self, context: Context, _payload: object) -> None:
            try:
                context.save_checkpoint(1)
            except ValueError as error:
                seen.append(str(error))

    run(duetime, Work)
    assert seen == ["the phase 'clean' cannot save a checkpoint"]


def test_saved_checkpoints_can_be_read_in_a_unit_test(duetime: Duetime) -> None:
    """A unit test with `perform` or `Context.for_test` can read the checkpoints that the handler has saved."""
    duetime.register("index", lambda context, _payload: context.save_checkpoint({"row": 2}))
    call = duetime.call("index")
    duetime.perform("index", call=call)
    assert call.saved_checkpoint == {"row": 2}
    saved: list[Any] = []
    Context.for_test(checkpoints=saved).save_checkpoint([1])
    assert saved == [[1]]
