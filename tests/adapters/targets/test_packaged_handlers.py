"""Tests handlers in separate functions from the worker's side and the package's side, without a store."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.targets.egress import EgressFailed, EgressUnavailable
from duetime.adapters.targets.package_function import AttemptChannel, PackageFunction
from duetime.adapters.targets.packaged_work import PackagedHandlers, packed_ending, packed_work
from duetime.adapters.targets.python_handlers import HandlerRunner
from duetime.domain.errors import Unavailable
from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_results import Failed, NotSent, SkipCode, Skipped, Succeeded
from duetime.domain.tasks.attempt_run import AttemptToken
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import Cause, NodeRef, Progress, ScheduleRef
from duetime.domain.tasks.type_defaults import HandlerDescription
from duetime.domain.times import SECOND, to_datetime
from duetime.domain.type_settings import PackagedTypes
from duetime.handlers import Context, LeaseLost, registered_as, use_codec
from duetime.ports.runtime import Runtime
from duetime_common.limits import MAX_UPLOAD_BYTES
from duetime_common.payload_codecs import decrypted_text, encrypted, json_of_bytes
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.virtual_time import SeededRandom
from tests.adapters.targets.works import work
from tests.clocks import NOW, StandingClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.ports.targets import Work


class World:
    """A worker and a package's function that call each other without Lambda.

    Attributes:
        asked: the requests to the attempts function.
        answers: the responses to these requests, in order; a response that is an exception is raised.
        timers: the delays of scheduled calls, in seconds.
        calls: the functions to be called after the delays.
        ends: how often the process was ended.
    """

    def __init__(self, handler: Callable[..., Any], why_broken: str | None = None) -> None:
        self.clock = StandingClock(NOW)
        self.telemetry = FakeTelemetry()
        self.asked: list[dict[str, Any]] = []
        self.answers: list[Any] = []
        self.timers: list[float] = []
        self.calls: list[Callable[[], None]] = []
        self.cancelled = self.ends = 0
        self._why = why_broken
        runner = HandlerRunner({"report": registered_as("report", handler)}, self)
        self.function = PackageFunction(lambda _channel: runner, self.ask, self.clock, self, self.at)
        self.failure: Exception | None = None
        self.reply: bytes | None = None

    def why_broken(self) -> str | None:
        """Return why the package cannot be imported."""
        return self._why

    def end(self) -> None:
        """End the process."""
        self.ends += 1

    def at(self, seconds: float, call: Callable[[], None]) -> Callable[[], None]:
        """Record a timer."""
        self.timers.append(seconds)
        self.calls.append(call)

        def cancel() -> None:
            self.cancelled += 1

        return cancel

    def ask(self, event: bytes) -> bytes:
        """Respond as the attempts function would."""
        self.asked.append(json.loads(event))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return json.dumps(answer).encode()

    def invoke(self, function: str, event: bytes, executed: Callable[[str], None]) -> bytes:
        """Respond as Lambda."""
        assert function == "handlers"
        executed("handlers:7")
        if self.failure is not None:
            raise self.failure
        return self.reply or json.dumps(self.function.answer(json.loads(event))).encode()

    def run(self, wanted: Work | None = None) -> TargetEnding:
        """Have the worker run a phase."""
        runtime = Runtime(self.clock, SeededRandom(), None, self.telemetry)  # type: ignore[arg-type]  # no threads
        handlers = PackagedHandlers(PackagedTypes({"*": "handlers"}), {}, self.invoke, runtime, 30 * SECOND)
        return handlers.run("handlers", wanted or work())


def channel(world: World, *, has_earlier_steps: bool = True) -> AttemptChannel:
    """Return the channel of an attempt."""
    return AttemptChannel(world.ask, "token", Phase.RUN, world.clock, has_earlier_steps, NOW)


def done(_context: Context, payload: object) -> object:
    """Return the payload."""
    return payload


def test_the_first_pattern_that_matches_decides() -> None:
    """The patterns in the settings are tried in their order, and the first match decides."""
    types = PackagedTypes({"billing.*": "billing", "billing.mail": "mail", "*.mail": "other"})
    found = [types.function_of(name) for name in ("billing.charge", "billing.mail", "a.mail", "billing", "echo")]
    assert found == ["billing", "billing", "other", None, None]
    assert types
    assert not PackagedTypes({})


@pytest.mark.slow
def test_a_payload_of_the_largest_upload_fits_into_one_event() -> None:
    """Five megabytes that do not compress reach the handler within the 6 MB of a Lambda event."""
    data = Random(1).randbytes(MAX_UPLOAD_BYTES)  # noqa: S311 - an example, not a secret
    sizes = list[bool]()
    world = World(lambda _context, payload: sizes.append(payload == data))
    given = replace(work(), payload=json.dumps(json_of_bytes(data), separators=(",", ":")).encode())
    assert len(json.dumps(packed_work(given, 20_000))) < 6 * 1024 * 1024
    assert world.run(given) == Succeeded(b"null")
    assert sizes == [True]


def test_the_context_has_the_schedule_topology_and_tags_of_the_task() -> None:
    """The context in the other function has the task's schedule, topology and tags."""
    seen: list[Context] = []
    world = World(lambda context, _payload: seen.append(context))
    wanted = work(checkpoint=b'{"row":1}')
    run = ScheduleRef("nightly", 3, NOW, Cause.BACKFILL, previous=NOW - 10, next=None)
    topology = TaskId("01KAJ0000000000000000TEST0")
    task = replace(wanted.task, schedule_ref=run, node_ref=NodeRef(topology, 2, "load"), tags={"team": "dba"})
    assert world.run(replace(wanted, task=task, inputs=b'{"a":[1]}')) == Succeeded(b"null")
    (context,) = seen
    assert context.schedule is not None
    assert (context.schedule.name, context.schedule.cause, context.schedule.next_at) == ("nightly", "backfill", None)
    assert context.topology is not None
    assert (context.topology.id, context.topology.run, context.topology.node) == (topology.text, 2, "load")
    assert (context.tags, context.checkpoint, context.inputs) == ({"team": "dba"}, {"row": 1}, {"a": [1]})
    assert (context.task_id, context.attempt, context.fence) == (task.id.text, 2, 3)
    assert (context.due_at, context.lateness_ms) == (to_datetime(task.due_at), task.lateness)


def test_the_process_of_a_hanging_handler_ends_before_its_deadline() -> None:
    """A process ends half a second, or a tenth of a short time, before the deadline unless the handler has returned."""
    world = World(done)
    world.run(work(seconds=60))
    world.run(work(seconds=1))
    assert world.timers == [59.5, 10, 0.9, 10]
    assert (world.cancelled, world.ends) == (4, 0)
    world.calls[0]()
    assert world.ends == 1


@pytest.mark.parametrize(
    ("answer", "ends", "again"),
    [
        ({"requested_action": None, "leased_for": 25_000}, 0, [10]),
        ({"requested_action": None, "leased_for": 4_000}, 0, [4]),
        ({"requested_action": None, "leased_for": -1}, 1, []),
        ({"lost": True}, 1, []),
    ],
)
def test_a_handler_ends_with_its_lease_if_its_worker_is_lost(
    answer: dict[str, Any], ends: int, again: list[float]
) -> None:
    """The process checks its lease at every third of the lease and ends with the lease, like a handler in a worker."""

    def work_long(_context: Context, _payload: object) -> None:
        world.clock.at += 10 * SECOND
        world.answers = [answer]
        world.calls[1]()
        assert (world.ends, world.timers[2:]) == (ends, again)

    world = World(work_long)
    assert world.run() == Succeeded(b"null")


def test_a_handler_continues_until_its_last_known_lease_ends() -> None:
    """If the attempts function does not respond, the process ends only at the end of the last known lease."""

    def work_long(_context: Context, _payload: object) -> None:
        world.clock.at += 10 * SECOND
        world.answers = 4 * [EgressFailed("gone")]
        world.calls[1]()
        assert (world.ends, world.timers[2:]) == (0, [3])
        world.clock.at += 3 * SECOND
        world.answers = 4 * [EgressFailed("gone")]
        world.calls[2]()
        assert world.ends == 1

    world = World(work_long)
    assert world.run() == Succeeded(b"null")


@pytest.mark.parametrize(
    ("at", "kind"), [(NOW + 30 * SECOND, "HandlerCrashed"), (NOW + 59_400, "Timeout"), (NOW + 70 * SECOND, "Timeout")]
)
def test_a_crash_and_a_deadline_are_distinguished_by_time(at: int, kind: str) -> None:
    """A crash and a deadline differ only in when the process ended; both are retried with the saved checkpoint."""
    world, read = World(done), list[str]()
    world.clock.at, world.failure = at, EgressFailed("Unhandled")
    ending = world.run(replace(work(), reload_checkpoint=lambda: read.append("again")))
    assert isinstance(ending, Failed)
    assert (ending.error.type, ending.retriable, read) == (kind, True, ["again"])


@pytest.mark.parametrize("reply", [b"null", b"[]", b"{}", b"no JSON", b'{"ended":"well"}', b'{"ended":"succeeded"}'])
def test_an_invalid_reply_counts_as_a_crash(reply: bytes) -> None:
    """An invalid reply counts as a crash and does not stop the worker."""
    world = World(done)
    world.reply = reply
    ending = world.run()
    assert isinstance(ending, Failed)
    assert ending.error.type == "HandlerCrashed"


def test_a_throttled_function_costs_no_attempt() -> None:
    """A throttled invocation did not run the handler, so it does not count as an attempt."""
    world = World(done)
    world.failure = EgressUnavailable("TooManyRequestsException")
    assert isinstance(world.run(), NotSent)
    assert world.telemetry.counts == {}


def test_a_broken_package_is_reported() -> None:
    """The alarm's metric counts a broken package, and the task shows the reason."""
    ending = World(done, why_broken="ImportError: ledger").run()
    assert ending == NotSent("HandlersUnavailable: ImportError: ledger")
    world = World(done, why_broken="ImportError: ledger")
    world.run()
    assert world.telemetry.counts["handlers_unavailable"] == 1


def test_a_result_too_large_for_a_response_fails_permanently() -> None:
    """A result too large for a response is not retried, because each attempt would do the work and then fail."""
    ending = World(lambda _context, _payload: "x" * 6_000_000).run()
    assert isinstance(ending, Failed)
    assert (ending.error.type, ending.retriable) == ("ResultTooLarge", False)


def test_an_impossible_handler_ending_raises_an_error() -> None:
    """An ending that no handler can produce raises an error instead of being converted."""
    with pytest.raises(TypeError):
        packed_ending(Skipped("paused", SkipCode.PAUSED))


def test_unknown_handlers_offer_only_run() -> None:
    """A known handler offers its phases, and an unknown handler offers only `run`."""
    known = {"report": HandlerDescription(("run", "rollback"))}
    handlers = PackagedHandlers(PackagedTypes({}), known, World(done).invoke, None, 30 * SECOND)  # type: ignore[arg-type]  # not used
    assert handlers.phases(work().task) == {Phase.RUN, Phase.ROLLBACK}
    assert handlers.phases(replace(work().task, type="other")) == {Phase.RUN}


def test_the_last_progress_is_sent_with_the_result() -> None:
    """Two reports in a row cause only one request, and the second report is sent with the reply."""

    def report(context: Context, _payload: object) -> None:
        context.progress(1)
        context.progress(2, "nearly")

    world, reports = World(report), list[Progress | None]()
    world.answers = [{"requested_action": None, "leased_for": 25_000}]
    world.run(work(reports=reports))
    assert [each["progress"] for each in world.asked] == [[1, ""]]
    assert reports == [Progress(2, "nearly")]


class Reversed:
    """A codec that reverses strings."""

    def encode(self, data: bytes) -> bytes:
        """Reverse the text."""
        return data[::-1]

    decode = encode


def test_with_a_codec_only_encrypted_values_leave_the_function() -> None:
    """The worker and the attempts function get steps, checkpoints, progress and errors only in encrypted form."""

    def charge(context: Context, _payload: object) -> None:
        context.progress(1, "secret")
        context.step("charge", lambda: ["secret"])
        context.save_checkpoint({"secret": 1})
        raise ConnectionError("secret")

    world = World(charge)
    world.answers = [
        {"requested_action": None, "leased_for": 25_000},
        {"results": {}},
        {"result": json.dumps(json_of_bytes(encrypted(Reversed(), ["secret"])))},
        {},
    ]
    use_codec(Reversed())
    try:
        ending = world.run(replace(work(), save_checkpoint=lambda _checkpoint: True))
    finally:
        use_codec(None)
    assert isinstance(ending, Failed)
    assert ending.error.type == "ConnectionError"
    assert decrypted_text(Reversed(), ending.error.message) == "secret"
    assert decrypted_text(Reversed(), ending.traceback).endswith("ConnectionError: secret\n")
    assert "secret" not in json.dumps(world.asked) + repr(ending)


def test_a_report_without_a_response_is_sent_with_the_next() -> None:
    """Progress whose report gets no response is sent again with the next report, and the handler notices nothing."""
    world = World(done)
    told = channel(world)
    world.answers = [*4 * [EgressFailed("gone")], {"requested_action": "cancel", "leased_for": 25_000}]
    told.report(Progress(5))
    told.report(None)
    assert world.asked[-1]["progress"] == [5, ""]
    assert told.ask() == "cancel"


def test_an_operation_without_a_response_is_tried_three_times() -> None:
    """An operation is tried three times; then the attempt fails and is retried."""
    world = World(done)
    world.answers = [EgressUnavailable("throttled"), EgressFailed("gone"), {"result": "1"}]
    assert channel(world).keep("charge", b"1", NOW) == b"1"
    world.answers = 4 * [EgressFailed("gone")]
    with pytest.raises(Unavailable, match="attempts function"):
        channel(world).keep("charge", b"1", NOW)


def test_a_first_attempt_does_not_request_earlier_steps() -> None:
    """A first attempt has no earlier steps to read, so its only requests are for storing results."""
    world = World(done)
    told = channel(world, has_earlier_steps=False)
    assert told.load() == {}
    assert told.begin() == NOW
    assert world.asked == []


def test_an_attempt_that_lost_its_task_stores_nothing() -> None:
    """Steps and checkpoints raise the same errors as in a worker, and the client's requests fail."""
    world = World(done)
    told = channel(world)
    world.clock.at += 10 * SECOND
    world.answers = [{"lost": True}, {"lost": True}, {"lost": True}, {"lost": True}, {"lost": True}]
    assert told.begin() is None
    for operation in (lambda: told.keep("charge", b"1", NOW), told.load, lambda: told.request(b"{}")):
        with pytest.raises((LeaseLost, EgressFailed)):
            operation()
    assert told.save_checkpoint(b"{}") is False


@pytest.mark.parametrize("text", ["", "x", "x 1 n", "01KAJ0000000000000000TEST0 one n", "01KAJ0000000000000000TEST0"])
def test_an_invalid_token_is_rejected(text: str) -> None:
    """An invalid string is not accepted as a token."""
    assert AttemptToken.parse(text) is None


def test_a_token_is_valid_for_one_attempt() -> None:
    """A token must match fence, nonce and state; an empty nonce, as in a pull worker's task, never matches."""
    task = replace(work().task, lease_nonce="secret", state=State.RUNNING)
    token = AttemptToken.of(task)
    assert AttemptToken.parse(token.text) == token
    assert token.is_of(task)
    assert not token.is_of(replace(task, fence=4))
    assert not token.is_of(replace(task, state=State.WAITING))
    assert not replace(token, nonce="other").is_of(task)
    assert not AttemptToken.of(work().task).is_of(work().task)
