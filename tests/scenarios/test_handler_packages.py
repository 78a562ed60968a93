"""Handlers in a package run in the package's own function; the worker waits for that function."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.domain.tasks.attempt_run import AttemptToken
from duetime.domain.tasks.type_defaults import HandlerDescription
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Batch, BatchItem, Unretriable, registered_as
from duetime.handlers.options import description
from duetime_testing.simulation.account import LEASE_SECONDS
from duetime_testing.simulation.machines import Machine
from tests.scenarios.scenario import MINUTE, PHASED, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, Tasks
from tests.simulation import works

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

BATCHED = "simulation-packaged-batch"
RETRIED = {"max_attempts": 2, "initial_seconds": 1}


class Packaged(Tasks):
    """An account whose handlers, except undoable ones, are in a package with its own function.

    Attributes:
        invoked: the functions that were invoked, in order.
        written: the functions that have written an item, in order, with the operation.
    """

    def __init__(self) -> None:
        super().__init__()
        self.environ[Variable.HANDLER_PACKAGES] = json.dumps({"simulation-p*": "handlers"})
        self.environ[Variable.ATTEMPTS_FUNCTION] = "attempts"
        self.generation += 1
        self.invoked: list[str] = []
        self.written: list[tuple[str, str]] = []
        self.before_call = self._note

    def handler_descriptions(self, known: Mapping[str, HandlerDescription]) -> Mapping[str, HandlerDescription]:
        """The phases of each handler, as known to the deployment."""
        del known
        return {name: HandlerDescription(**description(REGISTRY[name])) for name in (PLAIN, UNDONE, PHASED)}

    def _note(self, call: Call) -> None:
        if call.operation == "invoke":
            self.invoked.append(call.request["FunctionName"])
        if call.operation in {"put_item", "update_item"} and call.machine.function != "trigger":
            self.written.append((call.machine.function, call.operation))

    def perform(self, function: Callable[[Context], Any], kind: str = PLAIN, **more: Any) -> str:  # noqa: ANN401 - fields
        """Run a task with this function as its handler, until the task ends."""
        self.target = lambda _phase, context: function(context)
        task_id = self.create(kind=kind, **more)
        self.run(MINUTE)
        return task_id


@pytest.fixture
def tasks() -> Packaged:
    """An account with a package."""
    return Packaged()


def test_a_package_runs_the_types_of_its_pattern(tasks: Packaged) -> None:
    """A package's function is invoked once per task of the package's types; other types run in the worker."""
    with tasks:
        assert tasks.state(tasks.perform(lambda _context: "done")) == "succeeded"
        assert tasks.invoked == ["handlers"]
        assert tasks.state(tasks.perform(lambda _context: "done", kind=UNDONE)) == "succeeded"
        assert tasks.invoked == ["handlers"]


def versions(tasks: Packaged, task_id: str) -> list[str]:
    """The function version that ran each attempt of a task."""
    found = tasks.ask("GET", f"/v1/tasks/{task_id}/attempts").body["attempts"]
    return [attempt["function_version"] for attempt in found]


def test_attempts_name_the_version_of_the_function_that_ran_them(tasks: Packaged) -> None:
    """Attempts in a package have its function's version, even after a crash; others have the worker's version."""

    def crashed_once(context: Context) -> object:
        if context.attempt == 1:
            tasks.generation += 1
            tasks.time.kill(tasks.time.current())
        return "done"

    with tasks:
        before = str(tasks.generation + 1)
        task_id = tasks.perform(crashed_once, retry=RETRIED)
        after = str(tasks.generation + 1)
        assert before != after
        assert versions(tasks, task_id) == [before, after]
        other = tasks.perform(lambda _context: "done", kind=UNDONE)
        assert versions(tasks, other) == [after]


def test_with_a_canary_attempts_are_counted_by_version(tasks: Packaged) -> None:
    """With a canary, attempts and failures are counted per version, for the worker and for each package."""

    def fail(_context: Context) -> object:
        raise ValueError("always")

    with tasks:
        tasks.perform(fail, retry=RETRIED)
        assert not {"version_attempts", "version_failures"} & tasks.counts().keys()
        tasks.environ[Variable.CANARY] = "on"
        tasks.generation += 1
        version = tasks.generation + 1
        tasks.perform(fail, retry=RETRIED)
        tasks.perform(lambda _context: "done")
        tasks.perform(lambda _context: "done", kind=UNDONE)
        counted = tasks.counts()
    assert counted[f"version_attempts{{version=handlers:{version}}}"] == 3
    assert counted[f"version_failures{{version=handlers:{version}}}"] == 2
    assert counted[f"version_attempts{{version=worker:{version}}}"] == 1
    assert counted[f"version_failures{{version=worker:{version}}}"] == 0


def test_a_package_needs_no_additional_write(tasks: Packaged) -> None:
    """A task in a package takes as many writes as in the worker, and the package's function writes nothing."""
    with tasks:
        counted: list[list[tuple[str, str]]] = []
        for kind in (PLAIN, UNDONE):
            tasks.written.clear()
            tasks.perform(lambda _context: "done", kind=kind)
            counted.append([each for each in tasks.written if each[0] in {"worker", "handlers", "attempts"}])
        assert counted[0] == counted[1] == 2 * [("worker", "update_item")]


def test_every_phase_of_a_package_is_one_invocation(tasks: Packaged) -> None:
    """The worker invokes the package's function once for each phase."""
    with tasks:
        task_id = tasks.perform(lambda context: context.phase, kind=PHASED)
        assert tasks.phases() == ["prepare", "run", "clean"]
        assert tasks.invoked == 3 * ["handlers"]
        assert tasks.record(task_id).finished_at is not None


def test_the_context_in_a_package_is_the_same_as_in_the_worker(tasks: Packaged) -> None:
    """A handler in a package gets the same attempt, fence, tags, schedule and topology as in the worker."""
    seen: list[Any] = []

    def look(context: Context) -> None:
        assert context.topology is not None
        seen.append((context.attempt, context.fence, context.tags, context.schedule, context.topology.id))

    with tasks:
        tasks.target = lambda _phase, context: look(context)
        graph = {"nodes": {kind: {"type": kind, "tags": {"team": "dba"}} for kind in (PLAIN, UNDONE)}}
        task = {"type": "both", "target": {"kind": "topology"}, "payload": graph}
        assert tasks.ask("POST", "/v1/schedules", {"name": "often", "rate": "1 hour", "task": task}).status == 201
        tasks.run(MINUTE)
        assert tasks.invoked == ["handlers"]
        assert seen[0] == seen[1]
        assert (seen[0][2], seen[0][3].name) == ({"team": "dba"}, "often")


def test_an_error_in_a_package_keeps_type_message_and_traceback(tasks: Packaged) -> None:
    """An error in a package is passed on with its type, message and traceback, and `Unretriable` is honored."""

    def fail(_context: Context) -> None:
        raise Unretriable("no such order")

    with tasks:
        task_id = tasks.perform(fail, retry=RETRIED)
        task = tasks.record(task_id)
        assert task.error is not None
        assert (task.state, task.attempt, task.error.type) == ("failed", 1, "Unretriable")
        assert task.error.message == "no such order"
        assert "test_handler_packages.py" in str(tasks.ask("GET", f"/v1/tasks/{task_id}/attempts").body)


def test_a_batch_handler_in_a_package_gets_one_task(tasks: Packaged) -> None:
    """Each attempt in a package is a separate invocation, so a batch has one task."""
    sizes: list[int] = []

    def index(items: Sequence[BatchItem[Any]]) -> list[str]:
        sizes.append(len(items))
        return ["indexed" for _ in items]

    REGISTRY[BATCHED] = registered_as(BATCHED, index, batch=Batch(max_size=10))
    try:
        with tasks:
            ids = [tasks.create(kind=BATCHED) for _ in range(3)]
            tasks.run(MINUTE)
            assert sizes == [1, 1, 1]
            assert {result(tasks, each) for each in ids} == {b'"indexed"'}
    finally:
        del REGISTRY[BATCHED]


def test_a_dying_package_function_fails_the_attempt_with_handler_crashed(tasks: Packaged) -> None:
    """If a package's function dies, the attempt fails with `HandlerCrashed`, and the next attempt runs."""

    def die(context: Context) -> str:
        if context.attempt == 1:
            tasks.time.kill(tasks.time.current())
        return "done"

    with tasks:
        task_id = tasks.perform(die, retry=RETRIED)
        task = tasks.record(task_id)
        assert (task.state, task.attempt) == ("succeeded", 2)
        first = task.attempt_history[0].error
        assert first is not None
        assert first.type == "HandlerCrashed"


def test_progress_is_stored_while_the_handler_runs(tasks: Packaged) -> None:
    """The first progress is stored at once, later progress every five seconds, and the last with the result."""
    seen: list[object] = []

    def report(context: Context) -> None:
        for percent in range(10):
            context.progress(percent)
            tasks.take(SECOND)
            seen.append(tasks.record(context.task_id).progress)

    with tasks:
        task_id = tasks.perform(report)
        assert [getattr(each, "percent", None) for each in seen] == [0, 0, 0, 0, 0, 5, 5, 5, 5, 5]
        last = tasks.record(task_id).progress
        assert last is not None
        assert last.percent == 9
        assert tasks.invoked == ["handlers", "attempts", "attempts"]


def test_a_pause_request_ends_a_packages_attempt_with_a_checkpoint(tasks: Packaged) -> None:
    """A requested pause ends the attempt with a checkpoint, which the next attempt gets."""
    got: list[object] = []

    def wait(context: Context) -> str:
        got.append(context.checkpoint)
        if context.checkpoint is not None:
            return "done"
        for _ in range(30):
            tasks.take(SECOND)
            context.stop_if_requested({"row": 7})
        return "missed"

    with tasks:
        tasks.target = lambda _phase, context: wait(context)
        task_id = tasks.create()
        tasks.run(3 * SECOND)
        assert tasks.ask("POST", f"/v1/tasks/{task_id}/pause").status == 202
        tasks.run(20 * SECOND)
        assert tasks.state(task_id) == "paused"
        tasks.ask("POST", f"/v1/tasks/{task_id}/resume")
        tasks.run(20 * SECOND)
        assert got == [None, {"row": 7}]
        assert tasks.state(task_id) == "succeeded"


def test_a_step_runs_only_once_across_all_attempts(tasks: Packaged) -> None:
    """A step that succeeded in one attempt does not run again; the next attempt gets its stored result."""
    charged: list[int] = []

    def charge(attempt: int) -> str:
        charged.append(attempt)
        return "receipt"

    def order(context: Context) -> object:
        receipt = context.step("charge", charge, context.attempt)
        if context.attempt == 1:
            raise ConnectionError
        return receipt

    with tasks:
        task_id = tasks.perform(order, retry=RETRIED)
        assert (charged, tasks.state(task_id)) == ([1], "succeeded")
        # The first attempt stores a step, and the second attempt reads the step.
        assert tasks.invoked == ["handlers", "attempts", "handlers", "attempts"]


def test_a_saved_checkpoint_survives_a_crash(tasks: Packaged) -> None:
    """After a crash, the next attempt gets the last saved checkpoint."""
    got: list[object] = []

    def copy(context: Context) -> str:
        got.append(context.checkpoint)
        if context.attempt == 1:
            # The checkpoint is too large for the record, even when it is compressed.
            context.save_checkpoint(works.LARGE[:4_000])
            context.save_checkpoint(works.LARGE[4_000:8_000])
            tasks.time.kill(tasks.time.current())
        return "done"

    with tasks:
        task_id = tasks.perform(copy, retry=RETRIED)
        assert got == [None, works.LARGE[4_000:8_000]]
        assert tasks.state(task_id) == "succeeded"


def test_children_belong_to_the_owner_of_the_task(tasks: Packaged) -> None:
    """`context.client` can create children of the task, but cannot do anything else."""
    said: list[str] = []

    def start(context: Context) -> str | None:
        if context.tags.get("child"):
            return None
        child = context.client.tasks.create(PLAIN, tags={"child": "yes"}).id
        try:
            context.client.tasks.get(context.task_id)
        except Exception as error:  # noqa: BLE001 - its text is checked
            said.append(str(error))
        return child

    with tasks:
        task_id = tasks.perform(start)
        (parent, child) = (tasks.record(task_id), tasks.record(json.loads(result(tasks, task_id))))
        assert child.parent_task_id == parent.id
        assert (child.owner, child.state) == (parent.owner, "succeeded")
        assert "can only create tasks" in said[0]


def result(tasks: Packaged, task_id: str) -> bytes:
    """The result of a task."""
    content = tasks.record(task_id).result
    assert content is not None
    assert content.data is not None
    return content.data


def test_an_attempts_token_is_useless_after_its_end(tasks: Packaged) -> None:
    """An attempt's token is invalid after its end, and a token with a different nonce never works."""

    def asked(token: str) -> Any:  # noqa: ANN401 - any response
        event = {"attempt": token, "phase": "run", "operation": "report", "progress": (50, "forged")}
        return tasks.wait_for(tasks.invoke("attempts", event)).answer

    answers: list[Any] = []

    def run(context: Context) -> str:
        task = tasks.record(context.task_id)
        answers.append(asked(AttemptToken.of(task).text))
        answers.append(asked(f"{context.task_id} {context.fence} forged"))
        return AttemptToken.of(task).text

    with tasks:
        task_id = tasks.perform(run)
        tasks.time.start_process(lambda: answers.append(asked(json.loads(result(tasks, task_id)))))
        tasks.run(SECOND)
        assert answers[0]["requested_action"] is None
        assert 0 < answers[0]["leased_for"] <= LEASE_SECONDS * SECOND
        assert answers[1:] == [{"lost": True}, {"lost": True}]


def _is_of_package() -> bool:
    machine = composed().platform.process
    assert isinstance(machine, Machine)
    return machine.function == "handlers"


def test_a_broken_package_uses_no_attempt_and_affects_no_other_types(
    tasks: Packaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks of a broken package wait, show why, and use no attempt, while other types run."""
    monkeypatch.setattr(
        "duetime.adapters.targets.python_handlers.HandlersPackage.why_broken",
        lambda _package: "ImportError: no module named 'ledger'" if _is_of_package() else None,
    )
    with tasks:
        task_id = tasks.perform(lambda _context: "done", retry=ONCE)
        task = tasks.record(task_id)
        assert (task.state, task.attempt) == ("waiting", 0)
        assert "ledger" in str(task.waiting_for)
        other = tasks.perform(lambda _context: "done", kind=UNDONE)
        assert tasks.state(other) == "succeeded"
