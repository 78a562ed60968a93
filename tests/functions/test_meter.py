"""Tests of the exact costs of a task, so that no change increases the costs unnoticed.

Write units are those of the embedded engine, which agree with the rules that DynamoDB documents. Requests are all calls
of AWS APIs, including the receive and delete calls of Lambda's poller.
"""

from __future__ import annotations

import json
import time
from base64 import b64encode
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest

from duetime import composition
from duetime.adapters.targets.aws_target import AwsRunner
from duetime.adapters.targets.http_messages import HttpResponse
from duetime.adapters.targets.job_calls import Resources
from duetime.composition import composed
from duetime.composition.api import ApiKeyServices, BulkExecutorServices, FilterActionServices, LinkServices
from duetime.composition.attempts import SwitchServices
from duetime.composition.core import BulkServices, CoreServices, QuotaServices
from duetime.composition.invoked_functions import HttpServices
from duetime.composition.tasks import TaskServices, TopologyServices
from duetime.composition.worker import TargetServices
from duetime.contract.bulk.bodies import read_stored
from duetime.contract.signals import request_of
from duetime.domain.api_keys import NewApiKey
from duetime.domain.bulk import BulkKind, FilterAction
from duetime.domain.callers import Caller, Role
from duetime.domain.dispatch.enqueue_plan import BulkTimer
from duetime.domain.limits import (
    INLINE_CONTENT_BYTES,
    MAX_LOCK_KEY_LENGTH,
    MAX_LOCKS,
    MAX_NAME_LENGTH,
    MAX_TAG_KEY_LENGTH,
    MAX_TAG_VALUE_LENGTH,
    MAX_TAGS,
    MAX_TYPE_LENGTH,
    MAX_URL_LENGTH,
)
from duetime.domain.links import LinkAction, LinkUse, NewLink
from duetime.domain.operating_parameters import CIRCUIT_THRESHOLD
from duetime.domain.switches import Switch, SwitchKey, SwitchScope
from duetime.domain.tasks.action_history import BY_SYSTEM
from duetime.domain.tasks.attempt_results import Postponed, Succeeded, failure
from duetime.domain.tasks.creation import IdempotencyKey, Order, TaskUpdate
from duetime.domain.tasks.dependencies import Dependencies, Dependency
from duetime.domain.tasks.event_waits import Signal
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import (
    ApprovalTarget,
    ArnPatterns,
    AwsService,
    AwsTarget,
    BodyKind,
    EventTarget,
    HttpRequest,
    HttpTarget,
    RequestBody,
)
from duetime.domain.tasks.task_options import LockMode, LockSpec, NotifyOn, Priority, Rate, RetryPolicy
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import MINUTE, SECOND
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Batch, Context, Registered
from duetime.ports.queues import Outgoing
from duetime.services.api_keys import ApiKeyAdmin
from duetime.services.enqueue import message_for
from duetime.services.tasks.approvals import Decision
from duetime_common.cost_estimate import lines_of
from duetime_testing.fakes.stepfunctions import FakeStepFunctions, Status
from tests.adapters.clouds import Cloud
from tests.adapters.targets.works import work
from tests.functions.meter import Meter
from tests.functions.stack import OWNER, Stack
from tests.services.worker.test_circuit_breaker import Endpoint
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.adapters.aws_clients import Clients
    from duetime.adapters.targets.http_messages import Call, Reply
    from duetime.domain.tasks.task import Task
    from duetime_local.emulator import Emulator

PAYLOAD = (
    b'{"table":"public.orders","action":"vacuum","threshold":0.2,"notify":["dba@example.org"],"dry_run":false,"n":17}'
)
"""A typical payload of 112 bytes."""
FOUR_BYTES = "\N{ANTENNA WITH BARS}"
"""A character with the longest UTF-8 encoding, four bytes."""


@pytest.fixture
def metered(engine: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Stack, Meter]]:
    """The Lambda functions over the embedded engine, with a meter of all calls, and a handler that does no work."""
    for name, value in engine.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda _context, _payload: {"rows": 3}}))
    session = boto3.Session()
    meter = Meter(session)
    stack = Stack(Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs")), session)
    meter.reset()
    yield stack, meter
    composition.use(None)


def orders(count: int, **fields: object) -> list[Order]:
    """Requests for ordinary tasks of the type `report`."""
    return [Order(TaskSpec("report", payload=PAYLOAD, **fields)) for _ in range(count)]  # type: ignore[arg-type]  # fields of TaskSpec


def create(stack: Stack, **fields: object) -> Task:
    """Create one ordinary task."""
    (order,) = orders(1, **fields)
    del stack
    return composed(TaskServices).creator.create(OWNER, order)


def test_a_task_costs_three_write_units_and_one_for_its_place_in_the_list(metered: tuple[Stack, Meter]) -> None:
    """Each of ten tasks in a batch costs three writes and one index write, and the worker reads the switches once."""
    stack, meter = metered
    composed(TaskServices).batch_creator.create_many(OWNER, orders(10))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (30, 10, 0.5)
    assert meter.requests == {
        "BatchExecuteStatement": 1,
        "SendMessageBatch": 1,
        "ReceiveMessage": 1,
        "ChangeMessageVisibilityBatch": 1,
        "Query": 1,
        "UpdateItem": 20,
        "DeleteMessageBatch": 1,
    }
    assert meter.total_requests == 26


def test_a_task_of_a_batch_handler_costs_as_much_as_any_other(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten tasks cost the same write units and the same requests in one call of a batch handler as in ten calls."""
    sizes: list[int] = []
    registered = Registered({"run": lambda items: sizes.append(len(items))}, batch=Batch())
    monkeypatch.setitem(REGISTRY, "report", registered)
    stack, meter = metered
    # The worker's threads need real time to join a call, while the test's clock does not advance.
    monkeypatch.setattr(stack.clock, "sleep_until", lambda _at: time.sleep(0.01))
    composed(TaskServices).batch_creator.create_many(OWNER, orders(10))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (30, 10, 0.5)
    assert meter.total_requests == 26
    assert sum(sizes) == 10


def test_a_task_of_a_batch_is_written_after_its_timer(metered: tuple[Stack, Meter]) -> None:
    """In a batch, tasks with a late-start timer are written after the timers, and all other tasks with one request."""
    _stack, meter = metered
    notify_on = NotifyOn("https://example.org/alerts", late_seconds=300)
    composed(TaskServices).batch_creator.create_many(OWNER, [*orders(2), *orders(2, notify_on=notify_on)])
    assert (meter.requests["BatchExecuteStatement"], meter.requests["PutItem"]) == (1, 2 * 2)
    assert (meter.table_units, meter.index_units) == (2 + 2 * 2, 4)


def test_a_single_creation_sends_its_own_message(metered: tuple[Stack, Meter]) -> None:
    """Ten single creations send ten messages.

    A task then costs 4.2 requests of the functions and 0.2 of Lambda's poller.
    """
    stack, meter = metered
    for _ in range(10):
        create(stack)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (30, 10, 0.5)
    polled = meter.requests["ReceiveMessage"] + meter.requests["DeleteMessageBatch"]
    assert (meter.total_requests - polled, polled) == (42, 2)


def test_a_task_found_by_the_trigger_costs_no_additional_write(metered: tuple[Stack, Meter]) -> None:
    """A tick writes its cursors twice, however many tasks are found, and only reads the tasks."""
    stack, meter = metered
    stack.call("trigger", {})
    composed(TaskServices).batch_creator.create_many(OWNER, orders(10, delay=8 * MINUTE))
    meter.reset()
    stack.clock.at += 5 * MINUTE
    stack.call("trigger", {})
    assert (meter.table_units, meter.index_units) == (2, 0)
    assert meter.requests["SendMessageBatch"] == 1
    assert meter.requests["UpdateItem"] == 2


def test_an_idle_tick_costs_two_writes_and_reads_of_each_shard(metered: tuple[Stack, Meter]) -> None:
    """A tick without due tasks costs 2 writes, 6 reads of each of the 4 shards, and one read of the shard count."""
    stack, meter = metered
    for _ in range(2):
        stack.call("trigger", {})
        stack.clock.at += MINUTE
    meter.reset()
    stack.call("trigger", {})
    assert meter.table_units == 2
    assert meter.requests == {"UpdateItem": 2, "Query": 24, "GetItem": 1}
    assert meter.read_units == 15


def test_an_estimate_has_the_write_units_of_a_run(metered: tuple[Stack, Meter]) -> None:
    """For tasks that succeed at once, the meter counts as many write units as estimated, whatever options they have."""
    stack, meter = metered
    composed(HttpServices).__dict__["caller"] = _Heard()
    plain = TaskSpec("report", payload=PAYLOAD)
    noise = b'"' + b"".join(b"%08x" % (index * 2654435761 % 2**32) for index in range(500)) + b'"'
    # The first task with a key costs more, because the key is added to a list.
    run(stack, replace(plain, locks=(LockSpec("db-17"), LockSpec("db-18")), rate=Rate("api", 100)))
    for spec in (
        plain,
        replace(plain, lock=LockSpec("db-17")),
        replace(plain, rate=Rate("api", 100)),
        replace(plain, notify_on=NotifyOn("https://example.org/late", late_seconds=600)),
        replace(plain, callback_url="https://example.org/ended"),
        replace(plain, callback_url="https://example.org/ended", name="close", tags={"team": "dba", "env": "prod"}),
        # These callbacks store their events outside the record.
        *(replace(plain, callback_url="https://example.org/ended", tags=dense_tags(count)) for count in (7, 9)),
        replace(plain, payload=noise),
        replace(plain, locks=(LockSpec("db-17"), LockSpec("db-18"))),
    ):
        meter.reset()
        found = composed(TaskServices).workloads_of(OWNER).of_tasks([spec], has_key=False)
        writes = next(line.quantity for line in lines_of(found.parts) if line.part == "table writes")
        run(stack, spec)
        assert meter.table_units + meter.index_units == writes, spec


def run(stack: Stack, spec: TaskSpec) -> None:
    """Create a task, and let the worker run the task and then its callback."""
    composed(TaskServices).creator.create(OWNER, Order(spec))
    stack.clock.at += 2_000
    for _ in range(2):
        assert stack.work(Priority.NORMAL) == []


def test_an_idempotency_key_costs_one_unit(metered: tuple[Stack, Meter]) -> None:
    """An idempotency key costs one write unit, for a separate item."""
    _stack, meter = metered
    order = Order(TaskSpec("report", payload=PAYLOAD), IdempotencyKey("key-1", "0" * 64))
    composed(TaskServices).creator.create(OWNER, order)
    assert (meter.table_units, meter.index_units) == (1 + 1, 1)
    meter.reset()
    composed(TaskServices).creator.create(OWNER, order)
    # The write costs one unit even though it is refused because the key's item exists. Then the task is read.
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 1)


def test_a_child_costs_one_index_unit_more(metered: tuple[Stack, Meter]) -> None:
    """A child costs one more index unit.

    The parent is read if the request names the parent, but not if a handler creates the child.
    """
    _stack, meter = metered
    creator = composed(TaskServices).creator
    parent = creator.create(OWNER, Order(TaskSpec("report", payload=PAYLOAD)))
    meter.reset()
    creator.create(OWNER, Order(TaskSpec("report", payload=PAYLOAD), parent=parent.id))
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 2, 0)
    meter.reset()
    child = TaskSpec("report", payload=PAYLOAD, parent_task_id=parent.id)
    creator.create(OWNER, Order(child))
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 2, 1)
    specs = (child, replace(child, parent_task_id=None))
    found = [composed(TaskServices).workloads_of(OWNER).of_tasks([spec], has_key=False) for spec in specs]
    estimated, without = (lines_of(each.parts)[0].quantity for each in found)
    assert estimated - without == 1


@pytest.mark.parametrize("count", [1, 2])
def test_a_task_after_others_costs_two_units_and_three_for_each_of_them(
    metered: tuple[Stack, Meter], count: int
) -> None:
    """A task after other tasks costs a refused claim, a release, and three units for each of the other tasks.

    The three units are for the note at the other task, for the other task's mark, and for its separate write of
    `finished_at`.
    """
    stack, meter = metered
    others = [create(stack) for _ in range(count)]
    # These deliveries are received now, but are processed after the task's own message.
    deliveries = stack.receive(Priority.NORMAL)["Records"]
    assert len(deliveries) == count
    meter.reset()
    plain = TaskSpec("report", payload=PAYLOAD)
    spec = replace(plain, after=Dependencies(tuple(Dependency(each.id) for each in others)))
    estimated, without = (
        lines_of(composed(TaskServices).workloads_of(OWNER).of_tasks([each], has_key=False).parts)[0].quantity
        for each in (spec, plain)
    )
    task = composed(TaskServices).creator.create(OWNER, Order(spec))
    assert stack.work(Priority.NORMAL) == []
    # These units are for the task's record, its refused claim, and a note and a mark for each of the other tasks.
    assert (meter.table_units, meter.index_units) == (1 + 1 + 2 * count, 1)
    assert meter.requests["BatchGetItem"] == 3
    for delivery in deliveries:
        assert stack.run(Priority.NORMAL, {"Records": [delivery]}) == []
    # Each of the other tasks is claimed, ended and closed, and the last of these tasks releases the waiting task.
    assert meter.table_units == 1 + 1 + 2 * count + 3 * count + 1
    assert stack.work(Priority.NORMAL) == []
    assert meter.table_units - 2 * count == 3 + 2 + 3 * count
    assert estimated - without == 2 + 3 * count
    ended = composed(CoreServices).stores.tasks.read(task.id)
    assert ended is not None
    assert ended.state is State.SUCCEEDED


def test_a_task_from_an_event_costs_as_much_as_a_posted_task(metered: tuple[Stack, Meter]) -> None:
    """A task from an event costs a record, a place in the list, and a tenth of a message.

    A repeated event costs one or two refused writes.
    """
    stack, meter = metered
    stack.environ[Variable.INTAKE_OWNER] = OWNER
    stack.environ[Variable.INTAKE_REJECTS] = stack.queues[Priority.LOW]
    body = json.dumps({"type": "report", "payload": json.loads(PAYLOAD)})
    delivered = {
        "body": body,
        "attributes": {"SentTimestamp": str(stack.clock.now())},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:intake",
    }
    records = [{"messageId": f"m{number}", **delivered} for number in range(10)]
    assert stack.call("intake", {"Records": records}) == {"batchItemFailures": []}
    assert (meter.table_units, meter.index_units, meter.read_units) == (10, 10, 0)
    assert meter.requests == {"BatchExecuteStatement": 1, "SendMessageBatch": 1}
    meter.reset()
    assert stack.call("intake", {"Records": records}) == {"batchItemFailures": []}
    # Each task is written again in a separate request, because the records may come from a batch whose response was
    # lost.
    assert (meter.table_units, meter.index_units, meter.read_units) == (20, 0, 0)
    assert meter.requests == {"BatchExecuteStatement": 1, "PutItem": 10}
    meter.reset()
    assert stack.call("intake", {"Records": records[:1]}) == {"batchItemFailures": []}
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 0)


@pytest.mark.parametrize(("tracebacks", "units"), [("log", 2), ("keep", 3)])
def test_a_retry_costs_two_units_and_a_message(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch, tracebacks: str, units: int
) -> None:
    """A retry costs a unit each for the failed attempt's end, the next claim and, if kept, the traceback."""
    stack, meter = metered
    stack.environ[Variable.TRACEBACKS] = tracebacks

    def boom(context: Context, _payload: object) -> None:
        if context.attempt == 1:
            raise LookupError("no such row")

    monkeypatch.setitem(REGISTRY, "report", Registered({"run": boom}))
    create(stack)
    assert stack.work(Priority.NORMAL) == []
    stack.clock.at += 2 * SECOND
    assert until(lambda: not stack.waiting(Priority.NORMAL)["delayed"])
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + units, 1)
    assert meter.requests["SendMessageBatch"] == 2


def test_a_step_costs_one_unit(metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch) -> None:
    """A step costs one unit for its result.

    The first attempt queries only the switches, and a later attempt also queries the steps.
    """
    stack, meter = metered
    stack.environ[Variable.TRACEBACKS] = "log"

    def stepping(context: Context, _payload: object) -> None:
        for number in range(3):
            context.step(f"one-{number}", lambda: {"id": "0" * 36})
        if context.attempt == 1:
            raise LookupError

    monkeypatch.setitem(REGISTRY, "report", Registered({"run": stepping}))
    create(stack)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.requests["Query"]) == (3 + 3, 1, 1)
    stack.clock.at += 10 * SECOND
    assert until(lambda: not stack.waiting(Priority.NORMAL)["delayed"])
    meter.reset()
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (2, 0)
    assert (meter.requests["Query"], meter.requests["PutItem"]) == (2, 0)


def test_a_saved_checkpoint_costs_one_unit(metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch) -> None:
    """A saved checkpoint costs one unit if the checkpoint is small enough for the record."""
    stack, meter = metered

    def saving(context: Context, _payload: object) -> None:
        for row in range(3):
            context.save_checkpoint({"row": row})

    monkeypatch.setitem(REGISTRY, "report", Registered({"run": saving}))
    create(stack)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 3, 1)


def test_a_heartbeat_costs_one_unit(metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat extends the lease and stores the progress in one write."""
    stack, meter = metered

    def beating(context: Context, _payload: object) -> None:
        for step in range(3):
            context.progress(step * 30, "on its way")
            context.heartbeat()

    monkeypatch.setitem(REGISTRY, "report", Registered({"run": beating}))
    create(stack)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 3, 1)


def test_a_fair_key_costs_nothing(metered: tuple[Stack, Meter]) -> None:
    """A fair key costs no extra units.

    It fits into the record, and the message group is derived from the record without a read.
    """
    stack, meter = metered
    create(stack, fair_key="customer-17", fair_weight=3)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (3, 1, 0.5)


def test_a_lock_costs_two_units_and_its_first_use_two_more(metered: tuple[Stack, Meter]) -> None:
    """A lock costs a write and a read when it is taken, and again when it is released.

    A new key is also added to the owner's list.
    """
    stack, meter = metered
    create(stack, lock=LockSpec("db-17"))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 2, 1 + 1)
    meter.reset()
    create(stack, lock=LockSpec("db-17"))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (3 + 2, 1, 2)


def test_each_additional_lock_costs_as_much_as_the_first(metered: tuple[Stack, Meter]) -> None:
    """Each lock of a task costs two write units and two reads, whether the lock is shared or exclusive."""
    stack, meter = metered
    locks = (LockSpec("a"), LockSpec("b", None, mode=LockMode.SHARED), LockSpec("c"))
    for _ in range(2):
        meter.reset()
        create(stack, locks=locks)
        assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (3 + 3 * 2, 1, 3 * 2)


def test_a_prepared_task_costs_two_units_more(metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch) -> None:
    """A `prepare` phase costs two more writes, which check the lease and the state before `prepare` and `run`."""
    stack, meter = metered
    phases = {"prepare": lambda _context, _payload: None, "run": lambda _context, _payload: None}
    monkeypatch.setitem(REGISTRY, "report", Registered(phases))
    create(stack)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 2, 1)


@pytest.mark.slow
def test_a_deferred_task_costs_its_deadline_and_its_notification(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deferral costs the timer at the deadline, the long lease, the outcome, and the follow-up by a worker."""
    stack, meter = metered
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda context, _payload: context.defer()}))
    task = create(stack)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (2 + 2, 1)
    composed(TaskServices).attempt_reports.notify(OWNER, task.id, 1, Succeeded(b"1"))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (2 + 2 + 1 + 3, 1)


@pytest.mark.parametrize(("end", "units", "listed"), [("approved", 4, 0), ("timed_out", 2, 1)])
def test_an_approval_costs_its_wait_and_the_decision(
    metered: tuple[Stack, Meter], end: str, units: int, listed: int
) -> None:
    """An approval costs a record, a claim, a wait and a timer.

    Its end costs a decision with a worker's follow-up, or a claim and a failure at the timeout.
    """
    stack, meter = metered
    task = create(stack, target=ApprovalTarget(timeout_seconds=600))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (4, 1)
    if end == "approved":
        composed(TaskServices).approvals.decide(OWNER, task.id, Decision(approve=True), None, BY_SYSTEM)
    else:
        stack.clock.at += 600 * SECOND
        waiting = composed(TaskServices).reader.get(OWNER, task.id)
        composed(CoreServices).queues.send([Outgoing(message_for(waiting), 0)])
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (4 + units, 1 + listed)


class _States:
    """AWS clients that support only Step Functions."""

    def __init__(self) -> None:
        self.fake = FakeStepFunctions()

    def step_functions(self, region: str) -> FakeStepFunctions:
        """Return the same Step Functions client for every Region."""
        del region
        return self.fake


def test_a_job_costs_its_check_and_its_long_lease(metered: tuple[Stack, Meter]) -> None:
    """A job costs a timer and a lease at its start and the outcome at its end.

    Each check costs a timer and a refused claim.
    """
    stack, meter = metered
    machine, states = "arn:aws:states:us-east-1:123456789012:stateMachine:jobs", _States()
    stack.environ[Variable.AWS_TARGETS] = machine
    runner = AwsRunner(Resources(cast("Clients", states)), ArnPatterns((machine,)))
    composed(TargetServices).__dict__["aws_runner"] = runner
    target = AwsTarget(AwsService.STEP_FUNCTIONS, machine, is_job=True)
    task = stack.create(TaskSpec("report", target=target, notify_within_seconds=86_400))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (2 + 2, 1)
    (execution,) = states.fake.running()
    core = composed(CoreServices)
    core.queues.send([Outgoing(message_for(stack.get(task)), 0)])
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (2 + 2 + 2, 1)
    execution.end(Status.SUCCEEDED, 0)
    url = stack.environ[Variable.QUEUE_HIGH]
    stack.cloud.sqs.send_message(QueueUrl=url, MessageBody=json.dumps({"j": execution.name}))
    assert stack.work(Priority.HIGH) == []
    assert stack.get(task).state is State.SUCCEEDED
    assert (meter.table_units, meter.index_units) == (2 + 2 + 2 + 1, 1)


class _Heard:
    """An HTTP caller whose calls always succeed."""

    def call(self, call: Call) -> Reply:
        """Return a successful response."""
        del call
        return HttpResponse(200)


def test_a_custom_request_costs_nothing_if_its_record_is_below_a_kilobyte(
    metered: tuple[Stack, Meter],
) -> None:
    """A custom request costs no extra units while its record is below 1 KB.

    A request of 3 KB triples the cost of each write.
    """
    stack, meter = metered
    composed(HttpServices).__dict__["caller"] = _Heard()
    small = HttpRequest(
        "POST",
        (("Accept", "application/json"),),
        body=RequestBody(BodyKind.JSON, '{"text":"done"}'),
        success=(200, 404),
    )
    create(stack, target=HttpTarget("https://example.org/rows", request=small))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3, 1)
    meter.reset()
    large = HttpRequest("POST", body=RequestBody(BodyKind.TEXT, dense(3_000)))
    create(stack, target=HttpTarget("https://example.org/rows", request=large))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 * 3, 1)


@pytest.mark.parametrize("described", [{}, {"name": "nightly close", "tags": {"team": "dba", "env": "prod"}}])
def test_a_callback_costs_four_units_and_its_place_in_the_list(
    metered: tuple[Stack, Meter], described: dict[str, Any]
) -> None:
    """A callback costs a separate write of `finished_at`, a lookup, and the three units for the callback's task."""
    stack, meter = metered
    composed(HttpServices).__dict__["caller"] = _Heard()
    create(stack, callback_url="https://example.org/ended", **described)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 1 + 1, 1 + 1)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 1 + 3, 1 + 1)


def test_a_callback_event_outside_the_record_costs_four_units_more(metered: tuple[Stack, Meter]) -> None:
    """A callback event outside the record costs four units.

    Three units are for an item that is written three times, and one unit is for a separate write of `finished_at`.
    """
    stack, meter = metered
    composed(HttpServices).__dict__["caller"] = _Heard()
    create(stack, callback_url="https://example.org/ended", tags=dense_tags(9))
    for _ in range(2):
        assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (7 + 4, 2)


def test_a_notice_costs_nothing_unless_the_task_fails(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`notify_on` costs no extra units if the task succeeds, and a separate write of `finished_at` if it fails."""
    stack, meter = metered
    composed(HttpServices).__dict__["caller"] = _Heard()
    failures = NotifyOn("https://example.org/alerts", failed=True)
    create(stack, notify_on=failures)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3, 1)
    meter.reset()
    monkeypatch.delitem(REGISTRY, "report")
    create(stack, notify_on=failures)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 1, 1 + 1)


def test_a_notice_of_a_late_start_costs_one_timer(metered: tuple[Stack, Meter]) -> None:
    """A notice of a late start costs one timer, which is written with the record, even if the task starts in time."""
    stack, meter = metered
    create(stack, notify_on=NotifyOn("https://example.org/alerts", late_seconds=300))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 1, 1)


def test_a_notice_of_a_long_run_costs_a_timer_only_outside_workers(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notice of a long run costs no extra units, because the worker watches its attempts.

    A deferred attempt costs a timer for the trigger.
    """
    stack, meter = metered
    long = NotifyOn("https://example.org/alerts", running_seconds=300)
    create(stack, notify_on=long)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3, 1)
    meter.reset()
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda context, _payload: context.defer()}))
    create(stack, notify_on=long)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (2 + 2 + 1, 1)


@pytest.mark.parametrize(("expires_seconds", "state", "index_units"), [(600, State.SUCCEEDED, 1), (1, State.FAILED, 2)])
def test_an_expiry_costs_nothing(
    metered: tuple[Stack, Meter], expires_seconds: int, state: State, index_units: int
) -> None:
    """An expiry costs no extra units. A task that expires costs as much as another failed task."""
    stack, meter = metered
    task = create(stack, expires_seconds=expires_seconds)
    if state is State.FAILED:
        stack.clock.at += 5 * SECOND
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3, index_units)
    assert composed(TaskServices).reader.record(OWNER, task.id).state is state


def test_a_failed_task_costs_one_unit_more_for_the_list_of_failures(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed task costs one additional unit, for its entry in the sparse index of failed tasks."""
    stack, meter = metered
    monkeypatch.delitem(REGISTRY, "report")
    create(stack)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3, 1 + 1)


def test_a_change_of_the_due_time_costs_a_timer_and_a_write(metered: tuple[Stack, Meter]) -> None:
    """Moving the due time to another minute costs a timer, a write of the record, and one consistent read."""
    stack, meter = metered
    task = create(stack, delay=20 * MINUTE)
    meter.reset()
    composed(TaskServices).updater.update(OWNER, task.id, TaskUpdate({}, delay=40 * MINUTE), None)
    assert (meter.table_units, meter.index_units, meter.read_units) == (2, 0, 1)


def test_a_poll_costs_one_read_and_many_tasks_are_one_request(metered: tuple[Stack, Meter]) -> None:
    """Many tasks are read in one request.

    Each task costs one unit, or half a unit with an eventually consistent read.
    """
    stack, meter = metered
    ids = [create(stack, delay=20 * MINUTE).id for _ in range(3)]
    meter.reset()
    composed(TaskServices).reader.record(OWNER, ids[0])
    assert (meter.requests, meter.read_units) == ({"GetItem": 1}, 1)
    meter.reset()
    composed(TaskServices).reader.get_many(OWNER, ids, consistent=True)
    assert (meter.requests, meter.read_units) == ({"BatchGetItem": 1}, 3)
    meter.reset()
    composed(TaskServices).reader.get_many(OWNER, ids)
    assert (meter.requests, meter.read_units) == ({"BatchGetItem": 1}, 1.5)


def test_a_query_costs_whole_items_even_with_a_projection(metered: tuple[Stack, Meter]) -> None:
    """A query for three items of 3 KB costs three units, or half as many if it is eventually consistent.

    A projection does not lower the cost.
    """
    stack, meter = metered
    table, client = stack.environ[Variable.TABLE], stack.cloud.dynamodb
    for name in ("1", "2", "3"):
        client.put_item(TableName=table, Item={"p": {"S": "p"}, "s": {"S": name}, "n": {"S": "x" * 3_000}})
    query: Any = {
        "TableName": table,
        "KeyConditionExpression": "#p = :p",
        "ExpressionAttributeNames": {"#p": "p"},
        "ExpressionAttributeValues": {":p": {"S": "p"}},
    }
    projected = query | {"ProjectionExpression": "#s", "ExpressionAttributeNames": {"#p": "p", "#s": "s"}}
    for request, units in ((query, 1.5), (projected, 1.5), (query | {"ConsistentRead": True}, 3)):
        meter.reset()
        client.query(**request)
        assert (meter.read_units, meter.requests) == (units, {"Query": 1})
        assert meter.read_units == units, "asked twice"


def test_a_cancel_costs_one_unit_and_no_read(metered: tuple[Stack, Meter]) -> None:
    """Cancelling a task costs one conditional write and no read."""
    stack, meter = metered
    task = create(stack, delay=20 * MINUTE)
    meter.reset()
    composed(TaskServices).updater.cancel(OWNER, task.id, None)
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 0)


def test_a_deletion_costs_one_unit_and_two_reads(metered: tuple[Stack, Meter]) -> None:
    """Deletion costs a read of the record, a read of the contents, and a write; an open task must also be cancelled."""
    stack, meter = metered
    ended, waiting = create(stack), create(stack, delay=20 * MINUTE)
    assert stack.work(Priority.NORMAL) == []
    meter.reset()
    composed(TopologyServices).eraser.erase(OWNER, ended.id)
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 2)
    meter.reset()
    composed(TopologyServices).eraser.erase(OWNER, waiting.id)
    assert (meter.table_units, meter.index_units, meter.read_units) == (2, 0, 2)


def test_a_duplicate_message_costs_one_refused_claim(metered: tuple[Stack, Meter]) -> None:
    """A second copy of a message costs one unit for a refused claim; the task is neither read nor run."""
    stack, meter = metered
    task = create(stack)
    assert stack.work(Priority.NORMAL) == []
    composed(CoreServices).queues.send([Outgoing(message_for(task), 0)])
    meter.reset()
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 0)


def dense_tags(count: int) -> dict[str, str]:
    """Tags that make a callback event too large for the record."""
    return {f"key-{key}": dense(20 + key) for key in range(count)}


def dense(length: int) -> str:
    """A string that cannot be compressed."""
    return b64encode(Random(length).randbytes(length)).decode()[:length]  # noqa: S311 - an example, not a secret


def test_the_largest_record_costs_a_unit_for_each_kilobyte(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If all strings have the maximum length, and payload and result are in the record, each write costs 7 units."""
    stack, meter = metered
    composed(HttpServices).__dict__["caller"] = _Heard()
    kind, content = "t" * MAX_TYPE_LENGTH, dense(INLINE_CONTENT_BYTES * 3 // 4)
    monkeypatch.setitem(REGISTRY, kind, Registered({"run": lambda _context, _payload: content}))
    spec = TaskSpec(
        kind,
        payload=json.dumps(content).encode(),
        callback_url=("https://example.org/" + dense(MAX_URL_LENGTH))[:MAX_URL_LENGTH],
        name=FOUR_BYTES * MAX_NAME_LENGTH,
        tags={f"{key:x>{MAX_TAG_KEY_LENGTH}}": FOUR_BYTES * MAX_TAG_VALUE_LENGTH for key in range(MAX_TAGS)},
        locks=tuple(LockSpec(f"{number:k>{MAX_LOCK_KEY_LENGTH}}") for number in range(MAX_LOCKS)),
    )
    composed(TaskServices).creator.create(OWNER, Order(spec))
    assert (meter.table_units, meter.index_units) == (7, 1)
    assert stack.work(Priority.NORMAL) == []
    # These units are for the claim, the outcome with its result, `finished_at`, taking and releasing each lock, the
    # callback's record, and two writes of the callback's payload, which is outside the record.
    assert (meter.table_units, meter.index_units) == (7 + 7 + 7 + 7 + 5 * 2 + 12, 1 + 1 + 5)


def test_a_payload_outside_the_record_costs_its_size_three_times(metered: tuple[Stack, Meter]) -> None:
    """A payload of 20 KB outside the record is written with an expiry, again without expiry, and finally with one."""
    stack, meter = metered
    payload = b'"' + b"".join(b"%08x" % (index * 2654435761 % 2**32) for index in range(5000)) + b'"'
    composed(TaskServices).creator.create(OWNER, Order(TaskSpec("report", payload=payload)))
    written = (meter.table_units - 1) // 2
    assert 15 <= written <= 45
    assert meter.table_units == 1 + 2 * written
    assert stack.work(Priority.NORMAL) == []
    # These units are for the claim, the outcome, the expiry of the payload's item, and the separate write of
    # `finished_at`.
    assert meter.table_units == 1 + 2 * written + 1 + 1 + written + 1


def test_a_result_outside_the_record_costs_its_size_once(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result outside the record is written once, with its final expiry, because the outcome is the last write."""
    stack, meter = metered
    rows = [f"{index * 2654435761 % 2**32:08x}" for index in range(5000)]
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda _context, _payload: rows}))
    create(stack)
    assert stack.work(Priority.NORMAL) == []
    written = meter.table_units - 3
    assert 15 <= written <= 45
    assert meter.requests["PutItem"] == 2


def test_old_lines_of_the_history_cost_two_units_each(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of nine attempts, the record keeps five. Older attempts are separate items, whose expiry is a second write."""
    stack, meter = metered

    def fail(_context: Context, _payload: object) -> None:
        raise ValueError

    monkeypatch.setitem(REGISTRY, "report", Registered({"run": fail}))
    create(stack, retry=RetryPolicy(max_attempts=9, initial_seconds=0))
    for _ in range(9):
        stack.work(Priority.NORMAL)
    lines, attempts, tracebacks, closing = 4, 9, 9, 1
    assert meter.table_units == 1 + 2 * attempts + tracebacks + 2 * lines + closing


def test_switches_cost_a_worker_one_small_read_every_five_seconds(metered: tuple[Stack, Meter]) -> None:
    """A worker reads the switches at most once every five seconds, and not once per batch or task."""
    stack, meter = metered
    for _ in range(20):
        stack.work(Priority.NORMAL)
    assert (meter.requests["Query"], meter.read_units) == (1, 0.5)
    for _ in range(10):
        stack.clock.at += SECOND
        stack.work(Priority.NORMAL)
    assert (meter.requests["Query"], meter.read_units) == (3, 1.5)


def test_a_link_costs_two_reads_and_a_write(metered: tuple[Stack, Meter]) -> None:
    """Creating a link costs two reads and a write.

    Using a link costs two more reads and one more write than the decision alone.
    """
    stack, meter = metered
    task = create(stack, target=ApprovalTarget(timeout_seconds=600))
    assert stack.work(Priority.NORMAL) == []
    meter.reset()
    links = composed(LinkServices)
    _, token = links.admin.create(Caller(OWNER), task.id, NewLink((LinkAction.APPROVE,), 600 * SECOND))
    assert meter.requests == {"GetItem": 1, "Query": 1, "PutItem": 1}
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 2)
    meter.reset()
    links.holders.use(token, LinkUse())
    by_link = (meter.requests["GetItem"], meter.requests["UpdateItem"], meter.table_units, meter.read_units)
    other = create(stack, target=ApprovalTarget(timeout_seconds=600))
    assert stack.work(Priority.NORMAL) == []
    meter.reset()
    composed(TaskServices).approvals.decide(OWNER, other.id, Decision(approve=True), None, BY_SYSTEM)
    decision = (meter.requests["GetItem"], meter.requests["UpdateItem"], meter.table_units, meter.read_units)
    # A link also reads its own item, and the task whose version the decision names.
    assert by_link == (decision[0] + 2, decision[1] + 1, decision[2] + 1, decision[3] + 2)


def test_a_request_with_a_key_costs_a_read_and_an_hourly_write(metered: tuple[Stack, Meter]) -> None:
    """Each request with a key reads the key's item, so that revocation takes effect.

    Only the first request records the key's use.
    """
    stack, meter = metered
    admin = ApiKeyAdmin(composed(ApiKeyServices).check.store, composed().runtime, is_on=True)
    _, text = admin.create(Caller(OWNER), NewApiKey("n", (Role.WRITER,)))
    meter.reset()
    for _ in range(3):
        assert stack.call("authorizer", {"headers": {"authorization": f"Bearer {text}"}})["isAuthorized"]
        stack.clock.at += SECOND
    assert (meter.requests, meter.read_units) == ({"GetItem": 3, "UpdateItem": 1}, 3)
    assert (meter.table_units, meter.index_units) == (1, 0)


def test_a_check_of_a_stopped_task_costs_two_units(metered: tuple[Stack, Meter]) -> None:
    """A check of a stopped task costs a claim and its reversal, and a message for the next check."""
    stack, meter = metered
    operator = Caller(OWNER, frozenset({Role.OPERATOR}))
    composed(SwitchServices).admin.put(operator, Switch(SwitchKey(SwitchScope.TYPE, "report"), stopped=True))
    task = create(stack)
    meter.reset()
    assert stack.work(Priority.NORMAL) == []
    assert stack.get(task).state is State.WAITING
    assert (meter.table_units, meter.index_units) == (2, 0)
    assert meter.requests["SendMessageBatch"] == 1


@pytest.fixture
def quotas(metered: tuple[Stack, Meter]) -> tuple[QuotaServices, Stack, Meter]:
    """The quota services, with quotas of a thousand creations a second and ten concurrent attempts."""
    stack, meter = metered
    limits = {"creates_per_second": 1_000, "payload_bytes_per_second": 1_000_000, "concurrent_attempts": 10}
    stack.environ[Variable.QUOTAS] = json.dumps(limits)
    meter.reset()
    return composed(QuotaServices), stack, meter


def test_a_caller_within_its_quotas_pays_one_write_for_fifty_creations(
    quotas: tuple[QuotaServices, Stack, Meter],
) -> None:
    """A process reports its use after every twentieth of the limit, and reads the total use once a second."""
    services, _, meter = quotas
    for _ in range(500):
        services.guard.admit_tasks(OWNER, 1, 112)
    # There are ten reports for the creations, and one report for the bytes, because 56,000 exceeds a report's 50,000.
    assert meter.requests["UpdateItem"] in range(10, 13)
    assert (meter.table_units, meter.index_units) == (meter.requests["UpdateItem"], 0)
    assert (meter.requests["Query"], meter.requests["GetItem"], meter.read_units) == (1, 1, 1)


def test_an_attempt_within_a_quota_costs_two_units_more(quotas: tuple[QuotaServices, Stack, Meter]) -> None:
    """An attempt within a quota costs a write at its start and at its end.

    If the owner is far from the limit, the attempt costs no read.
    """
    _, stack, meter = quotas
    create(stack)
    meter.reset()
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (2 + 2, 0)
    assert (meter.requests["UpdateItem"], meter.requests["DeleteItem"]) == (3, 1)
    # This unit is for reading the switches. The process already read the quotas when it created the task.
    assert meter.read_units == 0.5


def test_a_healthy_host_costs_one_small_read_every_five_seconds(metered: tuple[Stack, Meter]) -> None:
    """Calls to a healthy host cost no write.

    Opening the host's circuit costs a read, a write and a place in the list.
    """
    stack, meter = metered
    endpoint = Endpoint()
    circuit_breakers = replace(composed(TargetServices).circuit_breakers, targets=endpoint)
    for _ in range(20):
        circuit_breakers.run(work(url="https://example.org/"))
    assert (meter.requests, meter.read_units) == ({"GetItem": 1}, 0.5)
    stack.clock.at += 5 * SECOND
    circuit_breakers.run(work(url="https://example.org/"))
    assert (meter.requests, meter.read_units) == ({"GetItem": 2}, 1)
    meter.reset()
    endpoint.ending = failure("Http503", "")
    for _ in range(CIRCUIT_THRESHOLD):
        circuit_breakers.run(work(url="https://example.org/"))
    assert (meter.requests, meter.read_units) == ({"GetItem": 1, "PutItem": 1}, 1)
    assert (meter.table_units, meter.index_units) == (1, 1)
    meter.reset()
    assert isinstance(circuit_breakers.run(work(url="https://example.org/")), Postponed)
    assert meter.total_requests == 0


def test_cancelling_by_filter_costs_as_much_as_single_cancels(metered: tuple[Stack, Meter]) -> None:
    """Cancelling by a filter costs one write unit for each cancelled task, and none if no task matches."""
    _stack, meter = metered
    composed(TaskServices).batch_creator.create_many(OWNER, orders(30, delay=20 * MINUTE))
    meter.reset()
    swept = composed(FilterActionServices).requests.filtered_tasks.cancel(
        OWNER, FilterAction(TaskFilter(type="report")), force=False
    )
    assert (swept.affected, meter.table_units, meter.index_units) == (30, 30, 0)
    meter.reset()
    nothing = composed(FilterActionServices).requests.filtered_tasks.cancel(
        OWNER, FilterAction(TaskFilter(type="report")), force=False
    )
    assert nothing.matched == 0
    assert meter.table_units == 0


def test_a_bulk_operation_costs_a_unit_for_each_step(metered: tuple[Stack, Meter]) -> None:
    """A bulk operation costs one unit for each step, and three units for its item, its timer and its start.

    Each minute's check of a running operation costs a write and a read.
    """
    stack, meter = metered
    composed(TaskServices).batch_creator.create_many(OWNER, orders(30, delay=20 * MINUTE))
    meter.reset()
    request = read_stored(BulkKind.CANCEL, b'{"filter": {"type": "report"}, "per_second": 2}')
    operation = composed(FilterActionServices).requests.take(OWNER, request, None).value
    assert operation.progress.affected == 2
    composed(BulkExecutorServices).executor.carry_out(operation.id, "holder")
    ended = composed(BulkServices).operations.get(OWNER, operation.id)
    assert (ended.state, ended.progress.affected) == ("succeeded", 30)
    assert (meter.table_units - 30, meter.index_units) == (6, 1)
    going_on = composed(BulkServices).operations.start(composed(BulkServices).operations.new(OWNER, BulkKind.CANCEL))
    meter.reset()
    assert composed(BulkServices).operations.resume([BulkTimer(going_on.id, stack.clock.now())])
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 1)


_PAID = EventTarget("order.paid", "o-17", timeout_seconds=600)


@pytest.mark.parametrize(("end", "units", "listed"), [("signalled", 2, 0), ("timed_out", 2, 1)])
def test_a_wait_for_an_event_costs_its_place_and_its_checks(
    metered: tuple[Stack, Meter], end: str, units: int, listed: int
) -> None:
    """A wait for an event costs a record, a claim, a note, a timer, the wait, and two reads.

    Its end costs a claim, the outcome and two reads.
    """
    stack, meter = metered
    task = create(stack, target=_PAID)
    assert stack.work(Priority.NORMAL) == []
    # A third query reads the switches.
    assert (meter.table_units, meter.index_units, meter.requests["Query"], meter.read_units) == (5, 1, 3, 2.5)
    stack.clock.at += (500 if end == "signalled" else 600) * SECOND
    if end == "signalled":
        meter.reset()
        send(Signal("order.paid", "o-17"))
        # These units are for the signal's item, and for the task with a timer in the current minute.
        assert (meter.table_units, meter.index_units) == (1 + 2, 0)
    else:
        waiting = composed(TaskServices).reader.get(OWNER, task.id)
        composed(CoreServices).queues.send([Outgoing(message_for(waiting), 0)])
    meter.reset()
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.requests["Query"], meter.read_units) == (units, listed, 3, 2.5)


def test_the_first_start_of_a_rate_costs_its_place_in_the_list(metered: tuple[Stack, Meter]) -> None:
    """Only the first start with a rate costs a place in the list.

    Each start costs one unit, and a task without a rate costs no extra unit.
    """
    stack, meter = metered
    spec = TaskSpec("report", payload=PAYLOAD)
    units: list[tuple[float, float]] = []
    for rate in (None, Rate("crm", 100), Rate("crm", 100)):
        meter.reset()
        run(stack, replace(spec, rate=rate))
        units.append((meter.table_units, meter.index_units))
    assert units == [(3, 1), (4, 2), (4, 1)]


def test_a_condition_on_a_signal_costs_reads_and_no_write(metered: tuple[Stack, Meter]) -> None:
    """A signal that does not meet a task's condition costs a read of the task.

    Later, the task examines all signals at the cost of a single signal.
    """
    stack, meter = metered
    create(stack, target=replace(_PAID, when="payload > `9`"))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.requests["Query"], meter.read_units) == (5, 1, 3, 2.5)
    stack.clock.at += 500 * SECOND
    meter.reset()
    for number in range(9):
        assert send(Signal("order.paid", "o-17", b"%d" % number)) == 0
    assert (meter.table_units, meter.index_units, meter.read_units) == (9, 0, 9 * 3)
    assert send(Signal("order.paid", "o-17", b"10")) == 1
    meter.reset()
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.requests["Query"], meter.read_units) == (2, 0, 3, 2.5)


def send(signal: Signal, key: IdempotencyKey | None = None) -> int:
    """Send a signal, and return the number of tasks that the signal woke."""
    request = request_of(signal, b"{}")
    return composed(FilterActionServices).requests.take(OWNER, request, key).value.progress.affected


def test_a_signal_costs_its_item_and_a_check_of_each_task(metered: tuple[Stack, Meter]) -> None:
    """A signal costs its item and a query for waiting tasks.

    An idempotency key costs another unit, and each woken task costs a read and a write.
    """
    stack, meter = metered
    meter.reset()
    assert send(Signal("order.paid", "o-17")) == 0
    assert (meter.table_units, meter.index_units, meter.requests["Query"], meter.read_units) == (1, 0, 1, 1)
    meter.reset()
    assert send(Signal("order.paid", "o-18"), IdempotencyKey("key-1", "0" * 64)) == 0
    assert (meter.table_units, meter.index_units, meter.read_units) == (2, 0, 1)
    for _ in range(3):
        create(stack, target=replace(_PAID, key="o-19"))
    assert stack.work(Priority.NORMAL) == []
    meter.reset()
    assert send(Signal("order.paid", "o-19")) == 3
    assert (meter.table_units, meter.index_units, meter.requests["Query"], meter.read_units) == (1 + 3, 0, 2, 2 + 3)
