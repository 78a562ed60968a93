"""Tests which handler exceptions are retried and when, with `RetryIn`, `retry_on` and `no_retry_on`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from duetime.adapters.targets.python_handlers import HandlerRunner
from duetime.domain.tasks.attempt_results import Failed
from duetime.domain.tasks.targets import Phase
from duetime.handlers import REGISTRY, Context, HandlerTimeout, RetryIn, Unretriable, handler
from duetime_client.worker import RetryIn as RetryInOfWorkers
from tests.adapters.targets.works import work

DAY_SECONDS = 86_400


class NoPackage:
    """A package of handlers without an import error."""

    def why_broken(self) -> None:
        """Return the import error, which is `None`."""


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Replace the registry during a test."""
    before = dict(REGISTRY)
    REGISTRY.clear()
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


_registered: Any = handler


def _function(error: BaseException, **options: Any) -> None:  # noqa: ANN401 - keywords of `handler`
    def run(_context: Context, _payload: object) -> None:
        raise error

    _registered("report", **options)(run)


def _coroutine(error: BaseException, **options: Any) -> None:  # noqa: ANN401 - same
    async def run(_context: Context, _payload: object) -> None:
        await asyncio.sleep(0)
        raise error

    _registered("report", **options)(run)


def _class(error: BaseException, **options: Any) -> None:  # noqa: ANN401 - same
    class Report:
        def run(self, _context: Context, _payload: object) -> None:
            raise error

    _registered("report", **options)(Report)


Register = Callable[..., None]
KINDS = pytest.mark.parametrize("register", [_function, _coroutine, _class])


def failed(phase: Phase = Phase.RUN) -> Failed:
    """Return the failure of an attempt by the registered handler."""
    ending = HandlerRunner(REGISTRY, NoPackage()).run(work(phase=phase))
    assert isinstance(ending, Failed)
    return ending


@KINDS
def test_a_handler_sets_the_wait_before_the_next_attempt(register: Register) -> None:
    """`RetryIn` takes seconds, which are rounded up to milliseconds; the error is stored with the handler's message."""
    register(RetryIn(2.0001, "the bank is closed"))
    ending = failed()
    assert (ending.retriable, ending.retry_in) == (True, 2_001)
    assert (ending.error.type, ending.error.message) == ("RetryIn", "the bank is closed")


@KINDS
@pytest.mark.parametrize(
    ("error", "retriable"),
    [
        (ConnectionError(), True),
        (ConnectionResetError(), True),
        (ConnectionRefusedError(), False),
        (LookupError(), False),
        (SystemExit(), False),
        (RetryIn(1), True),
        (HandlerTimeout(), True),
        (Unretriable(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_listed_exceptions_are_retried(register: Register, error: BaseException, *, retriable: bool) -> None:
    """`retry_on` includes subclasses unless they are in `no_retry_on`; `RetryIn` and timeouts are always retried."""
    register(error, retry_on=(ConnectionError, Unretriable), no_retry_on=(ConnectionRefusedError, RetryIn))
    assert failed().retriable == retriable


def test_without_retry_on_all_other_exceptions_are_retried() -> None:
    """`no_retry_on` alone excludes only the listed exceptions; an empty `retry_on` excludes all exceptions."""
    for error, options, retriable in (
        (KeyError(), {"no_retry_on": (LookupError,)}, False),
        (ValueError(), {"no_retry_on": (LookupError,)}, True),
        (ValueError(), {"retry_on": ()}, False),
        (ValueError(), {}, True),
    ):
        _function(error, **options)
        assert failed().retriable == retriable
        REGISTRY.clear()


def test_retry_rules_of_a_class_apply_to_every_phase() -> None:
    """A rollback that fails with an exception in its class's `no_retry_on` is not retried."""

    @handler("report", no_retry_on=(ValueError,))
    class Report:
        def run(self, _context: Context, _payload: object) -> None:
            raise RetryIn(3)

        def rollback(self, _context: Context, _payload: object) -> None:
            raise ValueError

    assert failed().retry_in == 3_000
    assert not failed(Phase.ROLLBACK).retriable


class _Meta(type):
    """A metaclass whose classes claim to equal every class and to be a base of every class."""

    def __instancecheck__(cls, _instance: object) -> bool:
        return True

    def __subclasscheck__(cls, _subclass: type) -> bool:
        return True

    def __eq__(cls, _other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        raise RuntimeError("no hash")


class Everything(Exception, metaclass=_Meta):
    """An exception whose class makes false claims about its bases."""


def test_exceptions_are_matched_as_in_an_except_clause() -> None:
    """Exceptions are matched by their real base classes, whatever a metaclass returns."""
    _function(ValueError(), no_retry_on=(Everything,))
    assert failed().retriable
    REGISTRY.clear()
    _function(Everything(), retry_on=(ValueError,))
    assert not failed().retriable


class Hasty(RetryIn):
    """A `RetryIn` whose constructor does not call the constructor of its base."""

    def __init__(self) -> None:
        """Omit the seconds."""


class Backwards(RetryIn):
    """A `RetryIn` whose seconds change after its construction."""

    def __init__(self) -> None:
        super().__init__(1)
        self.seconds = -1


@pytest.mark.parametrize("error", [Hasty(), Backwards()])
def test_a_retry_without_valid_seconds_waits_by_the_policy(error: RetryIn) -> None:
    """After a `RetryIn` without valid seconds, the attempt is retried after the policy's wait."""
    _function(error)
    ending = failed()
    assert (ending.retriable, ending.retry_in) == (True, None)


@pytest.mark.parametrize("seconds", [1, 0.5, DAY_SECONDS])
def test_valid_seconds_of_a_retry_are_kept(seconds: float) -> None:
    """Seconds up to a policy's longest wait are accepted; without a message, the error states the seconds."""
    error = RetryIn(seconds)
    assert (error.seconds, str(error)) == (seconds, f"the handler requested a retry in {seconds} s")


@pytest.mark.parametrize("seconds", [0, -1, DAY_SECONDS + 1, float("nan"), float("inf")])
def test_retry_seconds_out_of_range_are_rejected(seconds: float) -> None:
    """The error for seconds out of range names the range."""
    with pytest.raises(ValueError, match="RetryIn takes more than 0 and at most 86400 seconds"):
        RetryIn(seconds)


@pytest.mark.parametrize("seconds", ["5", None, True, timedelta(seconds=5)])
def test_retry_seconds_that_are_not_a_number_are_rejected(seconds: Any) -> None:  # noqa: ANN401 - what is tested
    """The error for seconds that are not a number names the allowed values."""
    with pytest.raises(TypeError, match="RetryIn takes a number of seconds, not"):
        RetryIn(seconds)


def test_pull_workers_and_worker_functions_share_the_retry_class() -> None:
    """Pull workers and worker functions use the same class, so a function can run in both."""
    assert RetryInOfWorkers is RetryIn


class Plain:
    """A class that is neither a pydantic model nor a dataclass."""


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        *(
            (keyword, value)
            for keyword in ("retry_on", "no_retry_on")
            for value in (ValueError, [ValueError], "ValueError", ("ValueError",), (ValueError(),), (int,), 1)
        ),
        ("no_retry_on", None),
        ("payload", Plain),
        ("payload", Plain()),
        ("payload", dict),
        ("payload", "Charge"),
    ],
)
def test_an_invalid_keyword_value_is_rejected_when_the_handler_is_imported(keyword: str, value: object) -> None:
    """A wrong keyword's error names the keyword and the allowed values, and no handler is registered."""
    options: Any = {keyword: value}
    with pytest.raises(TypeError, match=f"^{keyword} takes "):
        _function(ValueError(), **options)
    assert REGISTRY == {}


def test_an_unknown_keyword_is_rejected_when_the_handler_is_imported() -> None:
    """The error for an unknown keyword names the keyword."""
    options: Any = {"retry_in": 5}
    with pytest.raises(TypeError, match="'retry_in'"):
        _function(ValueError(), **options)


def test_a_handler_of_two_types_keeps_its_options() -> None:
    """A handler that is registered again for another type keeps its options unless other options are given."""

    @handler("second")
    @handler("first", no_retry_on=(ValueError,))
    def run(_context: Context, _payload: object) -> None:
        """Do nothing."""

    @handler("fifth", retry_on=(KeyError,))
    @handler("fourth")
    @handler("third", no_retry_on=(ValueError,))
    class Report:
        def run(self, _context: Context, _payload: object) -> None:
            """Do nothing."""

    assert run.task_type == "second"
    assert REGISTRY["second"].retry_rule == REGISTRY["first"].retry_rule == run.retry_rule
    assert REGISTRY["fourth"].retry_rule == REGISTRY["third"].retry_rule == run.retry_rule
    assert (REGISTRY["fifth"].retry_rule.retry_on, REGISTRY["fifth"].retry_rule.no_retry_on) == ((KeyError,), ())
