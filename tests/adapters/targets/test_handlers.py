from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.targets.handlers import HandlerRunner, load
from duetime.domain.attempts import Failed, Succeeded
from duetime.domain.task import Progress
from duetime.domain.times import to_datetime
from duetime.handlers import REGISTRY, Context, HandlerTwice, Unretriable, handler
from tests.adapters.targets.works import work

if TYPE_CHECKING:
    from collections.abc import Callable


def run(function: Callable[[Context, Any], Any], payload: bytes = b'{"a":1}') -> Succeeded | Failed:
    """Run a function as the handler of the work's type."""
    return HandlerRunner({"report": function}).run(work(payload))


def test_a_handler_is_given_its_attempt_and_the_decoded_payload() -> None:
    """Id, type, attempt, fence, deadline and payload arrive; the result is JSON."""
    seen: list[tuple[Context, object]] = []

    def keep(context: Context, payload: object) -> object:
        seen.append((context, payload))
        return {"pages": [1, 2], "title": "é"}

    ending = run(keep)
    context, payload = seen[0]
    attempt = work()
    assert isinstance(ending, Succeeded)
    assert json.loads(ending.result) == {"pages": [1, 2], "title": "é"}
    assert payload == {"a": 1}
    assert (context.task_id, context.type, context.attempt, context.fence) == (attempt.task.id.text, "report", 2, 3)
    assert context.deadline == to_datetime(attempt.deadline)


def test_what_a_handler_raises_fails_the_attempt() -> None:
    """Class and message are kept, and another attempt may follow."""

    def boom(_context: Context, _payload: object) -> None:
        raise LookupError("no such row")

    ending = run(boom)
    assert isinstance(ending, Failed)
    assert (ending.error.kind, ending.error.message, ending.retriable) == ("LookupError", "no such row", True)


def test_an_unretriable_error_says_so() -> None:
    """A subclass of Unretriable keeps its own name."""

    class NoSuchReport(Unretriable):
        """The author's own error."""

    def refuse(_context: Context, _payload: object) -> None:
        raise NoSuchReport("gone")

    ending = run(refuse)
    assert isinstance(ending, Failed)
    assert (ending.error.kind, ending.retriable) == ("NoSuchReport", False)


def test_a_handler_that_exits_fails_only_its_attempt() -> None:
    """`sys.exit` in a handler is a failure like any other."""

    def leave(_context: Context, _payload: object) -> None:
        sys.exit(3)

    assert isinstance(run(leave), Failed)


@pytest.mark.parametrize("result", [object(), {1, 2}, float("nan"), "\ud800", {(1, 2): 3}])
def test_a_result_that_is_not_json_fails_for_good(result: object) -> None:
    """The same code would return the same again."""
    ending = run(lambda _context, _payload: result)
    assert isinstance(ending, Failed)
    assert (ending.error.kind, ending.retriable) == ("ResultNotJson", False)


def test_a_type_without_a_handler_fails_with_its_name() -> None:
    """The error names the type that nobody registered."""
    ending = HandlerRunner({}).run(work())
    assert isinstance(ending, Failed)
    assert "'report'" in ending.error.message
    assert not ending.retriable


def test_progress_is_told_within_its_bounds() -> None:
    """Percentages beyond the ends are taken to the ends, a heartbeat tells nothing, a long message is cut."""
    reports: list[Progress | None] = []

    def tell(context: Context, _payload: object) -> None:
        context.progress(-5)
        context.progress(150, "x" * 1000)
        context.heartbeat()

    HandlerRunner({"report": tell}).run(work(reports=reports))
    assert reports == [Progress(0), Progress(100, "x" * 64), None]


def test_a_type_can_have_one_handler_only() -> None:
    """A second registration is a mistake that names the type."""

    @handler("tests.twice")
    def first(_context: Context, _payload: object) -> None:
        """Do nothing."""

    with pytest.raises(HandlerTwice, match=r"tests\.twice"):
        handler("tests.twice")(lambda _context, _payload: None)
    assert REGISTRY["tests.twice"] is first


def test_a_missing_package_of_handlers_is_an_error_at_the_start() -> None:
    """A wrong setting is found when the function starts, not when the first task fails."""
    with pytest.raises(ImportError):
        load("no_such_package_of_handlers")
    assert load("") is REGISTRY
