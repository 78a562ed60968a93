"""Tests handlers with a payload class, and handlers that are coroutines."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, assert_type

import pytest
from pydantic import BaseModel, Field

from duetime.adapters.targets.python_handlers import HandlerRunner
from duetime.domain.tasks.attempt_results import Deferred, Failed, Stopped, Succeeded, Yielded
from duetime.domain.tasks.task import RequestedAction
from duetime.handlers import REGISTRY, AttemptCancelled, Context, PayloadInvalid, TaskHandler, Unretriable, handler
from tests.adapters.targets.works import work

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.tasks.attempt_results import TargetEnding


class Charge(BaseModel):
    """A payload as a pydantic model."""

    id: int
    amount: int = Field(gt=0)
    at: datetime | None = None


@dataclass(frozen=True)
class Address:
    """A payload as a dataclass."""

    street: str
    since: datetime
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class Receipt:
    """A result as a dataclass."""

    amount: int
    at: datetime


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class NoPackage:
    """A package of handlers without an import error."""

    def why_broken(self) -> None:
        """Return the import error, which is `None`."""


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Start a test without registered handlers, and remove its registrations afterward."""
    before = dict(REGISTRY)
    REGISTRY.clear()
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def end(payload: object) -> TargetEnding:
    """Return how an attempt by the handler of `report` ends with a payload."""
    return HandlerRunner(REGISTRY, NoPackage()).run(replace(work(), payload=json.dumps(payload).encode()))


def test_payloads_are_converted_to_models_and_results_to_json() -> None:
    """A payload's fields are converted from JSON, and a result's fields are converted to JSON."""
    seen: list[object] = []

    @handler("report", payload=Charge)
    def charge(_context: Context, payload: Charge) -> Receipt:
        seen.append(payload)
        return Receipt(payload.amount, NOON)

    assert_type(charge, TaskHandler[Charge, Receipt])
    assert end({"id": 7, "amount": 5, "at": NOON.isoformat()}) == Succeeded(b'{"amount":5,"at":"2026-11-21T12:00:00Z"}')
    assert seen == [Charge(id=7, amount=5, at=NOON)]


def test_dataclasses_are_converted_like_models() -> None:
    """Fields of a dataclass are converted like those of a pydantic model."""
    seen: list[Address] = []

    @handler("report", payload=Address)
    def move(_context: Context, payload: Address) -> None:
        seen.append(payload)

    assert end({"street": "High St", "since": NOON.isoformat(), "lines": [1, 2]}) == Succeeded(b"null")
    assert seen == [Address("High St", NOON, (1, 2))]
    assert move.encode(seen[0]) == {"street": "High St", "since": "2026-11-21T12:00:00Z", "lines": [1, 2]}


@pytest.mark.parametrize("payload", [None, {}, {"id": 7, "amount": -5}, [1], {"id": "secret", "amount": 5}])
def test_an_invalid_payload_fails_the_task_at_once(payload: object) -> None:
    """For an invalid payload, the handler is not called, the task is not retried, and the message quotes no value."""

    @handler("report", payload=Charge)
    def charge(_context: Context, _payload: Charge) -> None:
        pytest.fail("was called")

    failed = end(payload)
    assert isinstance(failed, Failed)
    assert (failed.error.type, failed.retriable) == ("PayloadInvalid", False)
    assert "Charge" in failed.error.message
    assert "secret" not in failed.error.message
    assert "-5" not in failed.error.message
    assert "secret" not in (failed.traceback or "")


def test_an_invalid_payload_is_rejected_before_it_is_sent() -> None:
    """An invalid payload is rejected before it is sent."""

    @handler("report", payload=Charge)
    def charge(_context: Context, _payload: Charge) -> None: ...

    assert charge.encode(Charge(id=7, amount=5)) == {"id": 7, "amount": 5, "at": None}
    with pytest.raises(PayloadInvalid, match="amount"):
        charge.encode(Charge.model_construct(id=7, amount=-5))
    with pytest.raises(PayloadInvalid, match="amount"):
        charge.encode({"id": 7})  # type: ignore[arg-type]  # the error that is tested


def test_a_registered_function_can_be_called() -> None:
    """A registered function can be called with a test context, and keeps its name and documentation."""

    @handler("report")
    def double(context: Context, payload: int) -> int:
        """Double it."""
        context.stop_if_requested()
        context.progress(50)
        return payload * 2 * context.attempt

    assert (double(Context.for_test(), 4), double(Context.for_test(attempt=2), 4)) == (8, 16)
    assert (double.__doc__, double.task_type) == ("Double it.", "report")
    told: list[tuple[int | None, str]] = []
    double(Context.for_test(report=lambda percent, message: told.append((percent, message))), 4)
    assert told == [(50, "")]
    with pytest.raises(AttemptCancelled):
        double(Context.for_test(requested_action="cancel"), 4)


def _coroutine(outcome: Any) -> TargetEnding:  # noqa: ANN401 - a result, or an error
    @handler("report")
    async def run(context: Context, _payload: object) -> object:
        await asyncio.sleep(0)
        if outcome == "defer":
            return context.defer()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return end({})


def test_the_result_of_a_coroutine_is_stored() -> None:
    """A coroutine's result is stored like a function's."""
    assert _coroutine({"rows": 17}) == Succeeded(b'{"rows":17}')


@pytest.mark.parametrize(
    ("outcome", "kind", "retriable"),
    [
        (ConnectionError("nobody at home"), "ConnectionError", True),
        (TimeoutError("its own"), "TimeoutError", True),
        (Unretriable("never"), "Unretriable", False),
    ],
)
def test_an_exception_of_a_coroutine_fails_the_attempt(outcome: Exception, kind: str, *, retriable: bool) -> None:
    """A timeout raised inside the coroutine is not reported as the attempt's timeout."""
    failed = _coroutine(outcome)
    assert isinstance(failed, Failed)
    assert (failed.error.type, failed.retriable) == (kind, retriable)


def test_a_coroutine_can_defer() -> None:
    """A coroutine may defer its attempt, as a function may."""
    assert isinstance(_coroutine("defer"), Deferred)


@pytest.mark.parametrize(("requested", "ending"), [("pause", Yielded), ("cancel", Stopped)])
def test_a_coroutine_stops_if_requested(requested: str, ending: type) -> None:
    """A coroutine that was requested to stop ends when it calls `stop_if_requested`."""

    @handler("report")
    class Steps:
        async def run(self, context: Context, _payload: object) -> None:
            context.stop_if_requested({"row": 7})

    wanted = replace(work(), requested_action=lambda: RequestedAction(requested))
    assert isinstance(HandlerRunner(REGISTRY, NoPackage()).run(wanted), ending)


@dataclass(frozen=True)
class Counts:
    """A result whose keys can have any class."""

    by_number: dict[object, str]
    title: str = ""


@pytest.mark.parametrize("result", [Counts({1: "a", "1": "b"}), Counts({}, "\udce9"), Counts({1: object()})])  # type: ignore[dict-item]  # what is tested
def test_a_typed_result_that_cannot_be_stored_is_rejected(result: Counts) -> None:
    """Keys that JSON makes equal, lone surrogates and non-JSON values are rejected as in plain results."""

    @handler("tests.counts")
    def count(_context: Context, _payload: object) -> Counts:
        return result

    try:
        ending = HandlerRunner({"report": REGISTRY["tests.counts"]}, NoPackage()).run(work())
    finally:
        del REGISTRY["tests.counts"]
    assert isinstance(ending, Failed)
    assert (ending.error.type, ending.retriable) == ("ResultNotJson", False)


def test_a_coroutine_that_cancels_itself_fails_its_attempt() -> None:
    """If a coroutine awaits a task that it has cancelled, the attempt fails with `CancelledError` and is retried."""

    @handler("tests.cancelled")
    async def cancel(_context: Context, _payload: object) -> None:
        work = asyncio.ensure_future(asyncio.sleep(60))
        work.cancel()
        await work

    try:
        ending = HandlerRunner({"report": REGISTRY["tests.cancelled"]}, NoPackage()).run(work())
    finally:
        del REGISTRY["tests.cancelled"]
    assert isinstance(ending, Failed)
    assert (ending.error.type, ending.retriable) == ("CancelledError", True)
