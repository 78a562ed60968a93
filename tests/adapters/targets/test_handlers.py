from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.targets.python_handlers import HandlerRunner, HandlersPackage, known_types
from duetime.domain.operating_parameters import HANDLERS_RETRY
from duetime.domain.tasks.attempt_results import Deferred, Failed, Stopped, Succeeded, TargetEnding, Yielded
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import Progress, RequestedAction
from duetime.domain.times import to_datetime
from duetime.handlers import (
    REGISTRY,
    Context,
    DuplicateHandler,
    HandlerIncomplete,
    Registered,
    TaskTypeMissing,
    Unretriable,
    handler,
    registered_as,
)
from tests.adapters.targets.works import work
from tests.clocks import StandingClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from duetime.ports.targets import Work


class Package:
    """A package of handlers that can be imported, or that reports why it cannot be imported."""

    def __init__(self, why: str | None = None) -> None:
        self.why = why

    def why_broken(self) -> str | None:
        """Return why the package cannot be imported."""
        return self.why


def run(decorated: Callable[..., Any], wanted: Work | None = None) -> TargetEnding:
    """Run a function or class as the handler of its type."""
    return HandlerRunner({"report": registered_as("report", decorated)}, Package()).run(wanted or work())


def test_a_handler_receives_its_attempt_and_the_decoded_payload() -> None:
    """A handler gets id, type, attempt, fence, due time, deadline and decoded payload, and its result becomes JSON."""
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
    assert context.due_at == to_datetime(attempt.task.due_at)


def test_an_exception_of_a_handler_fails_the_attempt() -> None:
    """The exception's class and message are stored, and another attempt can follow."""

    def boom(_context: Context, _payload: object) -> None:
        raise LookupError("no such row")

    ending = run(boom)
    assert isinstance(ending, Failed)
    assert (ending.error.type, ending.error.message, ending.retriable) == ("LookupError", "no such row", True)


def test_a_subclass_of_unretriable_keeps_its_name() -> None:
    """A subclass of `Unretriable` keeps its own name."""

    class NoSuchReport(Unretriable):
        """An error that the handler's author defined."""

    def refuse(_context: Context, _payload: object) -> None:
        raise NoSuchReport("gone")

    ending = run(refuse)
    assert isinstance(ending, Failed)
    assert (ending.error.type, ending.retriable) == ("NoSuchReport", False)


def test_a_handler_that_exits_fails_only_its_attempt() -> None:
    """`sys.exit` in a handler fails the attempt like other exceptions."""

    def leave(_context: Context, _payload: object) -> None:
        sys.exit(3)

    assert isinstance(run(leave), Failed)


@pytest.mark.parametrize("result", [object(), {1, 2}, float("nan"), "\ud800", {(1, 2): 3}])
def test_a_result_that_is_not_json_fails_permanently(result: object) -> None:
    """A result that is not JSON is not retried, because the same code would return the same result again."""
    ending = run(lambda _context, _payload: result)
    assert isinstance(ending, Failed)
    assert (ending.error.type, ending.retriable) == ("ResultNotJson", False)


def test_a_type_without_a_handler_fails_with_its_name() -> None:
    """The error for a type without a handler names the type."""
    ending = HandlerRunner({}, Package()).run(work())
    assert isinstance(ending, Failed)
    assert "'report'" in ending.error.message
    assert not ending.retriable


def test_progress_is_clamped_and_its_message_is_cut() -> None:
    """Percentages are clamped, a heartbeat reports no progress, and a long message is truncated."""
    reports: list[Progress | None] = []

    def tell(context: Context, _payload: object) -> None:
        context.progress(-5)
        context.progress(150, "x" * 1000)
        context.heartbeat()

    run(tell, work(reports=reports))
    assert reports == [Progress(0), Progress(100, "x" * 64), None]


def test_a_type_can_have_only_one_handler() -> None:
    """Registering a second handler for a type is an error that names the type."""

    @handler("tests.twice")
    def first(_context: Context, _payload: object) -> None:
        """Do nothing."""

    with pytest.raises(DuplicateHandler, match=r"tests\.twice"):
        handler("tests.twice")(lambda _context, _payload: None)
    assert REGISTRY["tests.twice"] == Registered({"run": first.function})


def test_a_handler_decorator_without_a_type_is_rejected() -> None:
    """A decorator without parentheses, or with empty parentheses, raises an error that shows the correct form."""
    before = dict(REGISTRY)

    def make_report(_context: Context, _payload: object) -> None:
        """Do nothing."""

    bare: Any = handler
    for arguments in ([make_report], [Transfer], [], [""], [None]):
        with pytest.raises(TaskTypeMissing, match=r"write @handler\(\"(make_report|Transfer|report)\"\)"):
            bare(*arguments)
    assert before == REGISTRY


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the source of an importable package of handlers."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    folder = tmp_path / "own_handlers"
    folder.mkdir()
    yield folder / "__init__.py"
    REGISTRY.pop("tests.own", None)
    sys.modules.pop("own_handlers", None)


SOUND = 'from duetime.handlers import handler\n\n\n@handler("tests.own")\ndef own(context, payload):\n    return 1\n'


def test_a_package_of_handlers_is_imported_once(package: Path) -> None:
    """Importing a package registers its handlers without errors; without a package there are no handlers."""
    package.write_text(SOUND)
    own = HandlersPackage("own_handlers", StandingClock())
    assert own.why_broken() is None
    package.write_text("raise ValueError")
    assert own.why_broken() is None
    assert "tests.own" in REGISTRY
    assert HandlersPackage("", StandingClock()).why_broken() is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("import nosuchmodule", "ModuleNotFoundError: No module named 'nosuchmodule'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        (r"raise GeneratorExit('caf\udce9.txt')", r"GeneratorExit: caf\udce9.txt"),
        ("raise ImportError('x' * 9_999)", "xxx [cut]"),
        ("def broken(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_broken_package_is_reported_and_imported_again(package: Path, line: str, why: str) -> None:
    """An import error is reported and not raised; after a minute, the import is repeated without duplicate handlers."""
    clock = StandingClock()
    package.write_text(f"{SOUND}\n\n{line}\n")
    own = HandlersPackage("own_handlers", clock)
    assert why in (own.why_broken() or "")
    assert "tests.own" not in REGISTRY
    package.write_text(SOUND)
    assert why in (own.why_broken() or "")
    clock.at += HANDLERS_RETRY
    assert own.why_broken() is None
    assert "tests.own" in REGISTRY


def test_cleanup_and_rollback_of_a_broken_package_are_not_skipped() -> None:
    """While the package cannot be imported, a cleanup and a rollback are assumed, and each call fails temporarily."""
    runner = HandlerRunner({}, Package("importing 'x' raised ImportError"))
    assert runner.phases(work().task) == {Phase.RUN, Phase.CLEAN, Phase.ROLLBACK}
    ending = runner.run(work())
    assert isinstance(ending, Failed)
    assert (ending.error.type, ending.retriable) == ("HandlersUnavailable", True)


def test_known_types_are_read_from_their_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """The known types are read from a module; without the setting or the module, the types are unknown."""
    module = ModuleType("own_types")
    module.TYPES = ("a", "b")  # type: ignore[attr-defined]  # as it is written when the layers are built
    monkeypatch.setitem(sys.modules, "own_types", module)
    assert known_types("own_types") == frozenset({"a", "b"})
    assert known_types("") is None
    assert known_types("no_such_module_of_types") is None


class Transfer:
    """A handler with every phase, which returns the phase that was called."""

    def prepare(self, _context: Context, _payload: object) -> str:
        """Return the name of the phase."""
        return "prepared"

    def run(self, _context: Context, _payload: object) -> str:
        """Return the name of the phase."""
        return "ran"

    def clean(self, _context: Context, _payload: object) -> str:
        """Return the name of the phase."""
        return "cleaned"

    def rollback(self, _context: Context, _payload: object) -> str:
        """Return the name of the phase."""
        return "rolled back"


@pytest.mark.parametrize(
    ("phase", "result"),
    [
        (Phase.PREPARE, b'"prepared"'),
        (Phase.RUN, b'"ran"'),
        (Phase.CLEAN, b'"cleaned"'),
        (Phase.ROLLBACK, b'"rolled back"'),
    ],
)
def test_a_handler_class_has_a_method_for_each_phase(phase: Phase, result: bytes) -> None:
    """Each phase calls the class's method with the phase's name."""
    assert run(Transfer, work(phase=phase)) == Succeeded(result)


def test_a_handler_class_offers_the_phases_of_its_methods() -> None:
    """A class offers the phases for which it defines methods; a function and an unregistered type offer only `run`."""
    runner = HandlerRunner(
        {"report": registered_as("report", Transfer), "other": registered_as("other", lambda _context, _payload: None)},
        Package(),
    )
    task = work().task
    assert runner.phases(task) == frozenset(Phase)
    assert runner.phases(replace(task, type="other")) == {Phase.RUN}
    assert runner.phases(replace(task, type="unknown")) == {Phase.RUN}


def test_a_handler_class_without_run_is_an_error() -> None:
    """A class without `run` is an error at import that names the type."""

    class Idle:
        """Offers nothing."""

    with pytest.raises(HandlerIncomplete, match=r"tests\.idle"):
        handler("tests.idle")(Idle)


def test_a_handler_can_defer_its_attempt() -> None:
    """`return context.defer()` defers the attempt in `run`; other phases cannot be deferred."""

    def accept(context: Context, _payload: object) -> object:
        return context.defer()

    assert run(accept) == Deferred()
    runner = HandlerRunner({"report": Registered({"run": accept, "prepare": accept})}, Package())
    ending = runner.run(work(phase=Phase.PREPARE))
    assert isinstance(ending, Failed)
    assert not ending.retriable


def test_a_handler_stops_if_a_pause_or_cancel_is_requested() -> None:
    """A pause saves a checkpoint for the next attempt, a cancel saves no checkpoint, and otherwise `run` continues."""

    def step(context: Context, _payload: object) -> object:
        context.stop_if_requested({"row": 17})
        return context.checkpoint

    assert run(step, work(asked=RequestedAction.PAUSE)) == Yielded(b'{"row":17}')
    assert run(step, work(asked=RequestedAction.CANCEL)) == Stopped()
    assert run(step) == Succeeded(b"null")
    assert run(step, work(checkpoint=b'{"row":17}')) == Succeeded(b'{"row":17}')
