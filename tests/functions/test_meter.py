"""The exact costs of a task: the design's promises cannot erode unseen.

Write units are those of the embedded engine, which were found right by DynamoDB's documented rules; requests are
every call of an AWS API, those included that Lambda's poller makes (receive, delete).
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
"""An ordinary payload, 112 bytes."""
FOUR_BYTES = "\N{ANTENNA WITH BARS}"
"""A character that is as long in UTF-8 as any."""


@pytest.fixture
def metered(engine: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Stack, Meter]]:
    """The functions over the embedded engine with every call counted, and a handler that does nothing."""
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
    """Ordinary orders of the type `report`."""
    return [Order(TaskSpec("report", payload=PAYLOAD, **fields)) for _ in range(count)]  # type: ignore[arg-type]  # fields of TaskSpec


def create(stack: Stack, **fields: object) -> Task:
    """Accept one ordinary task."""
    (order,) = orders(1, **fields)
    del stack
    return composed(TaskServices).creator.create(OWNER, order)


def test_a_task_costs_three_write_units_and_one_for_its_place_in_the_list(metered: tuple[Stack, Meter]) -> None:
    """Ten tasks accepted in a batch and run: record, lease and outcome each; and one look at the switches."""
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


def test_a_task_of_a_batch_handler_costs_what_any_other_does(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten tasks in one call: the same write units, and no request more."""
    sizes: list[int] = []
    registered = Registered({"run": lambda items: sizes.append(len(items))}, batch=Batch())
    monkeypatch.setitem(REGISTRY, "report", registered)
    stack, meter = metered
    # Its threads take real time to join a call, while the clock stands still.
    monkeypatch.setattr(stack.clock, "sleep_until", lambda _at: time.sleep(0.01))
    composed(TaskServices).batch_creator.create_many(OWNER, orders(10))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (30, 10, 0.5)
    assert meter.total_requests == 26
    assert sum(sizes) == 10


def test_a_task_of_a_batch_that_needs_a_timer_is_written_after_it(metered: tuple[Stack, Meter]) -> None:
    """A timer for a late start is written first, and the record after it; the others go together."""
    _stack, meter = metered
    notify_on = NotifyOn("https://example.org/alerts", late_seconds=300)
    composed(TaskServices).batch_creator.create_many(OWNER, [*orders(2), *orders(2, notify_on=notify_on)])
    assert (meter.requests["BatchExecuteStatement"], meter.requests["PutItem"]) == (1, 2 * 2)
    assert (meter.table_units, meter.index_units) == (2 + 2 * 2, 4)


def test_a_task_accepted_by_itself_is_sent_by_itself(metered: tuple[Stack, Meter]) -> None:
    """Ten single requests: a message each, so 4.2 requests a task by our functions and 0.2 by Lambda's poller."""
    stack, meter = metered
    for _ in range(10):
        create(stack)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (30, 10, 0.5)
    polled = meter.requests["ReceiveMessage"] + meter.requests["DeleteMessageBatch"]
    assert (meter.total_requests - polled, polled) == (42, 2)


def test_a_task_found_by_the_trigger_costs_no_write_more(metered: tuple[Stack, Meter]) -> None:
    """A tick writes its cursors twice, however many tasks it reads; the tasks themselves are only read."""
    stack, meter = metered
    stack.call("trigger", {})
    composed(TaskServices).batch_creator.create_many(OWNER, orders(10, delay=8 * MINUTE))
    meter.reset()
    stack.clock.at += 5 * MINUTE
    stack.call("trigger", {})
    assert (meter.table_units, meter.index_units) == (2, 0)
    assert meter.requests["SendMessageBatch"] == 1
    assert meter.requests["UpdateItem"] == 2


def test_an_idle_tick_costs_two_writes_and_a_reading_of_each_shard(metered: tuple[Stack, Meter]) -> None:
    """A minute without due tasks: 2 write units, 6 reads of each of the 4 shards, and one of their number."""
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
    """For a task that succeeds at once, with any options: the estimate of its order is what the meter counts."""
    stack, meter = metered
    composed(HttpServices).__dict__["caller"] = _Heard()
    plain = TaskSpec("report", payload=PAYLOAD)
    noise = b'"' + b"".join(b"%08x" % (index * 2654435761 % 2**32) for index in range(500)) + b'"'
    # The first use of a key costs more.
    run(stack, replace(plain, locks=(LockSpec("db-17"), LockSpec("db-18")), rate=Rate("api", 100)))
    for spec in (
        plain,
        replace(plain, lock=LockSpec("db-17")),
        replace(plain, rate=Rate("api", 100)),
        replace(plain, notify_on=NotifyOn("https://example.org/late", late_seconds=600)),
        replace(plain, callback_url="https://example.org/ended"),
        replace(plain, callback_url="https://example.org/ended", name="close", tags={"team": "dba", "env": "prod"}),
        # The events of these callbacks are outside their records.
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
    """Have a task run, and its callback."""
    composed(TaskServices).creator.create(OWNER, Order(spec))
    stack.clock.at += 2_000
    for _ in range(2):
        assert stack.work(Priority.NORMAL) == []


def test_an_idempotency_key_costs_one_unit(metered: tuple[Stack, Meter]) -> None:
    """The key's own item; the list costs nothing more."""
    _stack, meter = metered
    order = Order(TaskSpec("report", payload=PAYLOAD), IdempotencyKey("key-1", "0" * 64))
    composed(TaskServices).creator.create(OWNER, order)
    assert (meter.table_units, meter.index_units) == (1 + 1, 1)
    meter.reset()
    composed(TaskServices).creator.create(OWNER, order)
    # Refused by the key's item (one unit), and the task is read.
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 1)


def test_a_child_costs_its_place_among_the_children_of_its_parent(metered: tuple[Stack, Meter]) -> None:
    """One unit more than another task; a parent that the request names is read, one whose handler asks is known."""
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
    """A refused claim and its release; for each other the note, the mark, and a write of its own for `finished_at`."""
    stack, meter = metered
    others = [create(stack) for _ in range(count)]
    # Received now, and delivered after the task's own message.
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
    # The record; the refused claim; for each other the note and the mark.
    assert (meter.table_units, meter.index_units) == (1 + 1 + 2 * count, 1)
    assert meter.requests["BatchGetItem"] == 3
    for delivery in deliveries:
        assert stack.run(Priority.NORMAL, {"Records": [delivery]}) == []
    # Each of the others is claimed, ended and closed; the last one releases the task.
    assert meter.table_units == 1 + 1 + 2 * count + 3 * count + 1
    assert stack.work(Priority.NORMAL) == []
    assert meter.table_units - 2 * count == 3 + 2 + 3 * count
    assert estimated - without == 2 + 3 * count
    ended = composed(CoreServices).stores.tasks.read(task.id)
    assert ended is not None
    assert ended.state is State.SUCCEEDED


def test_a_task_made_of_an_event_costs_what_a_posted_one_does(metered: tuple[Stack, Meter]) -> None:
    """Record and place in the list, and a tenth of a message; a repeat is refused by the record, once or twice."""
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
    # Each separately again: existing records may come from a batch whose first response was lost.
    assert (meter.table_units, meter.index_units, meter.read_units) == (20, 0, 0)
    assert meter.requests == {"BatchExecuteStatement": 1, "PutItem": 10}
    meter.reset()
    assert stack.call("intake", {"Records": records[:1]}) == {"batchItemFailures": []}
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 0)


@pytest.mark.parametrize(("tracebacks", "units"), [("log", 2), ("keep", 3)])
def test_a_retry_costs_two_units_and_a_message(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch, tracebacks: str, units: int
) -> None:
    """The failed attempt's end and the next one's claim, and its traceback if it is kept; no timer."""
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
    """A step's result is one small item. A first attempt queries only the switches, and a later one the steps, too."""
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
    """A small one is in the record."""
    stack, meter = metered

    def saving(context: Context, _payload: object) -> None:
        for row in range(3):
            context.save_checkpoint({"row": row})

    monkeypatch.setitem(REGISTRY, "report", Registered({"run": saving}))
    create(stack)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 3, 1)


def test_a_heartbeat_costs_one_unit(metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lease and progress in one write."""
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
    """A key of the usual length fits into the record, and the message's group is derived from it without a read."""
    stack, meter = metered
    create(stack, fair_key="customer-17", fair_weight=3)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (3, 1, 0.5)


def test_a_lock_costs_two_units_and_its_first_use_two_more(metered: tuple[Stack, Meter]) -> None:
    """Taken and released, with a read of its line each time; a new key is added to the owner's list."""
    stack, meter = metered
    create(stack, lock=LockSpec("db-17"))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 2, 1 + 1)
    meter.reset()
    create(stack, lock=LockSpec("db-17"))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (3 + 2, 1, 2)


def test_each_further_lock_costs_the_same_again(metered: tuple[Stack, Meter]) -> None:
    """Two units and two reads, whether it is shared or not."""
    stack, meter = metered
    locks = (LockSpec("a"), LockSpec("b", None, mode=LockMode.SHARED), LockSpec("c"))
    for _ in range(2):
        meter.reset()
        create(stack, locks=locks)
        assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (3 + 3 * 2, 1, 3 * 2)


def test_a_prepared_task_costs_two_units_more(metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease and the state are checked, by a write, before `prepare` and before `run`."""
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
    """The timer at the deadline and the long lease; then the end, and a worker's follow-up of a handler's task."""
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
    """Record, claim, wait, timer; then the decision and a worker's follow-up, or a claim and a failure."""
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
    """The clients of a machine that runs no more than executions of state machines."""

    def __init__(self) -> None:
        self.fake = FakeStepFunctions()

    def step_functions(self, region: str) -> FakeStepFunctions:
        """The client for any region."""
        del region
        return self.fake


def test_a_job_costs_its_check_and_its_long_lease(metered: tuple[Stack, Meter]) -> None:
    """A timer and a lease when it starts, the outcome when it ends; each check besides a timer and a refused claim."""
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
    """A caller that is always heard."""

    def call(self, call: Call) -> Reply:
        """Say so."""
        del call
        return HttpResponse(200)


def test_a_request_of_ones_own_costs_nothing_until_its_record_is_larger_than_a_kilobyte(
    metered: tuple[Stack, Meter],
) -> None:
    """Headers, a secret's name and a short body are in the record: 3 units; one of 3 KB, compressed, makes it 3 KB."""
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
    """`finished_at` has a write of its own; the callback is a task of three, looked up before it is created."""
    stack, meter = metered
    composed(HttpServices).__dict__["caller"] = _Heard()
    create(stack, callback_url="https://example.org/ended", **described)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 1 + 1, 1 + 1)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 1 + 3, 1 + 1)


def test_an_event_outside_the_record_of_its_callback_costs_four_units_more(metered: tuple[Stack, Meter]) -> None:
    """Its own item, written again without its expiry, and with one again at the end, with a `finished_at`."""
    stack, meter = metered
    composed(HttpServices).__dict__["caller"] = _Heard()
    create(stack, callback_url="https://example.org/ended", tags=dense_tags(9))
    for _ in range(2):
        assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (7 + 4, 2)


def test_a_notice_costs_nothing_unless_the_task_fails(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`notify_on` of a task that succeeds writes nothing more; after a failure `finished_at` is a separate write."""
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


def test_a_late_start_to_be_told_costs_one_timer(metered: tuple[Stack, Meter]) -> None:
    """One write together with the record's; nothing more for a task that starts in time."""
    stack, meter = metered
    create(stack, notify_on=NotifyOn("https://example.org/alerts", late_seconds=300))
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3 + 1, 1)


def test_a_long_run_to_be_told_costs_nothing_in_a_worker_and_one_timer_elsewhere(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker watches its attempts anyway; of a deferred one, the trigger has to find that it runs long."""
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
    """A task that starts in time pays nothing; an expired one costs as much as any failed one."""
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
    """The sparse index of failed tasks is written only for them."""
    stack, meter = metered
    monkeypatch.delitem(REGISTRY, "report")
    create(stack)
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (3, 1 + 1)


def test_a_change_of_the_due_time_costs_a_wake_and_a_write(metered: tuple[Stack, Meter]) -> None:
    """To another minute: the timer and the record, and one consistent read."""
    stack, meter = metered
    task = create(stack, delay=20 * MINUTE)
    meter.reset()
    composed(TaskServices).updater.update(OWNER, task.id, TaskUpdate({}, delay=40 * MINUTE), None)
    assert (meter.table_units, meter.index_units, meter.read_units) == (2, 0, 1)


def test_a_poll_costs_one_read_and_many_tasks_are_one_request(metered: tuple[Stack, Meter]) -> None:
    """A hundred at most, each charged separately: one unit, or half for an eventually consistent read."""
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


def test_a_read_is_charged_for_whole_items_whatever_is_asked_of_them(metered: tuple[Stack, Meter]) -> None:
    """Three items of three kilobytes are nine: three units, half of them if they may be a moment old."""
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
    """One conditional write decides everything."""
    stack, meter = metered
    task = create(stack, delay=20 * MINUTE)
    meter.reset()
    composed(TaskServices).updater.cancel(OWNER, task.id, None)
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 0)


def test_a_deletion_costs_one_unit_and_two_reads(metered: tuple[Stack, Meter]) -> None:
    """One for the record and one for its contents; an open task costs its cancellation besides."""
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
    """A second copy of a message: one unit, no read, no effect."""
    stack, meter = metered
    task = create(stack)
    assert stack.work(Priority.NORMAL) == []
    composed(CoreServices).queues.send([Outgoing(message_for(task), 0)])
    meter.reset()
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 0)


def dense_tags(count: int) -> dict[str, str]:
    """Tags that make an event larger than its record may keep."""
    return {f"key-{key}": dense(20 + key) for key in range(count)}


def dense(length: int) -> str:
    """A text that does not compress."""
    return b64encode(Random(length).randbytes(length)).decode()[:length]  # noqa: S311 - an example, no secret


def test_the_hardest_legal_task_costs_a_unit_for_each_kilobyte_of_its_record(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every text as long as it may be, payload and result in the record: each write costs as much as the first."""
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
    # Claim, outcome with its result, `finished_at`; each lock is taken and released; the callback's record and its
    # payload outside, twice.
    assert (meter.table_units, meter.index_units) == (7 + 7 + 7 + 7 + 5 * 2 + 12, 1 + 1 + 5)


def test_a_payload_outside_the_record_costs_its_size_three_times(metered: tuple[Stack, Meter]) -> None:
    """20 KB that do not compress: written with an expiry, again without it, and with one again at the end."""
    stack, meter = metered
    payload = b'"' + b"".join(b"%08x" % (index * 2654435761 % 2**32) for index in range(5000)) + b'"'
    composed(TaskServices).creator.create(OWNER, Order(TaskSpec("report", payload=payload)))
    written = (meter.table_units - 1) // 2
    assert 15 <= written <= 45
    assert meter.table_units == 1 + 2 * written
    assert stack.work(Priority.NORMAL) == []
    # Claim, outcome, the item's expiry, and a separate write of `finished_at`.
    assert meter.table_units == 1 + 2 * written + 1 + 1 + written + 1


def test_a_result_outside_the_record_costs_its_size_once(
    metered: tuple[Stack, Meter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written with its final expiry: nothing follows, and the outcome is the last write."""
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
    """Nine attempts, of which the record keeps five: each other line is an item, which expires with a second write."""
    stack, meter = metered

    def fail(_context: Context, _payload: object) -> None:
        raise ValueError

    monkeypatch.setitem(REGISTRY, "report", Registered({"run": fail}))
    create(stack, retry=RetryPolicy(max_attempts=9, initial_seconds=0))
    for _ in range(9):
        stack.work(Priority.NORMAL)
    lines, attempts, tracebacks, closing = 4, 9, 9, 1
    assert meter.table_units == 1 + 2 * attempts + tracebacks + 2 * lines + closing


def test_switches_cost_a_worker_one_small_reading_every_five_seconds(metered: tuple[Stack, Meter]) -> None:
    """Not per task: twenty batches in a moment read them once, and one a second for ten seconds reads them twice."""
    stack, meter = metered
    for _ in range(20):
        stack.work(Priority.NORMAL)
    assert (meter.requests["Query"], meter.read_units) == (1, 0.5)
    for _ in range(10):
        stack.clock.at += SECOND
        stack.work(Priority.NORMAL)
    assert (meter.requests["Query"], meter.read_units) == (3, 1.5)


def test_a_link_costs_two_reads_and_a_write(metered: tuple[Stack, Meter]) -> None:
    """To create it; a use costs a read and a write more than the decision, which reads and writes its task."""
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
    # The link, and the task whose version the decision names.
    assert by_link == (decision[0] + 2, decision[1] + 1, decision[2] + 1, decision[3] + 2)


def test_a_request_with_a_key_costs_a_consistent_reading_and_a_write_an_hour(metered: tuple[Stack, Meter]) -> None:
    """One item is read, so that a revoked key is found revoked; its use is written with the first request only."""
    stack, meter = metered
    admin = ApiKeyAdmin(composed(ApiKeyServices).check.store, composed().runtime, is_on=True)
    _, text = admin.create(Caller(OWNER), NewApiKey("n", (Role.WRITER,)))
    meter.reset()
    for _ in range(3):
        assert stack.call("authorizer", {"headers": {"authorization": f"Bearer {text}"}})["isAuthorized"]
        stack.clock.at += SECOND
    assert (meter.requests, meter.read_units) == ({"GetItem": 3, "UpdateItem": 1}, 3)
    assert (meter.table_units, meter.index_units) == (1, 0)


def test_a_look_at_a_stopped_task_costs_two_units(metered: tuple[Stack, Meter]) -> None:
    """A claim, and back: about once a minute; beyond the home minute's scan a timer is one more."""
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
    """The same with quotas of a thousand a second, and of ten attempts at once."""
    stack, meter = metered
    limits = {"creates_per_second": 1_000, "payload_bytes_per_second": 1_000_000, "concurrent_attempts": 10}
    stack.environ[Variable.QUOTAS] = json.dumps(limits)
    meter.reset()
    return composed(QuotaServices), stack, meter


def test_a_caller_within_its_quotas_pays_one_write_for_fifty_creations(
    quotas: tuple[QuotaServices, Stack, Meter],
) -> None:
    """A process reports every twentieth of a second's limit, and reads the use once a second: 3 + 1 stays 3 + 1."""
    services, _, meter = quotas
    for _ in range(500):
        services.guard.admit_tasks(OWNER, 1, 112)
    # Of the creations, and of the bytes: 56 000 of 50 000 a report.
    assert meter.requests["UpdateItem"] in range(10, 13)
    assert (meter.table_units, meter.index_units) == (meter.requests["UpdateItem"], 0)
    assert (meter.requests["Query"], meter.requests["GetItem"], meter.read_units) == (1, 1, 1)


def test_an_attempt_within_a_quota_costs_two_units_more(quotas: tuple[QuotaServices, Stack, Meter]) -> None:
    """It takes a place and releases it; an owner far from its limit reads nothing for it."""
    _, stack, meter = quotas
    create(stack)
    meter.reset()
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (2 + 2, 0)
    assert (meter.requests["UpdateItem"], meter.requests["DeleteItem"]) == (3, 1)
    # The switches; the process had read the quotas for the creation.
    assert meter.read_units == 0.5


def test_a_healthy_host_costs_one_small_reading_every_five_seconds(metered: tuple[Stack, Meter]) -> None:
    """No write, however often it is called; opening its circuit is a reading, a write and a place in the list."""
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


def test_cancelling_by_filter_costs_what_single_cancels_cost(metered: tuple[Stack, Meter]) -> None:
    """A unit for each cancelled task; the list and the records are read, and nothing else is written."""
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
    """And one each for its item, its timer and its start; a minute of it is a write and a read."""
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
def test_a_wait_for_an_event_costs_its_place_and_its_looks(
    metered: tuple[Stack, Meter], end: str, units: int, listed: int
) -> None:
    """Record, claim, note, timer, wait and two reads; then a claim, the outcome and two reads."""
    stack, meter = metered
    task = create(stack, target=_PAID)
    assert stack.work(Priority.NORMAL) == []
    # One more query for the switches.
    assert (meter.table_units, meter.index_units, meter.requests["Query"], meter.read_units) == (5, 1, 3, 2.5)
    stack.clock.at += (500 if end == "signalled" else 600) * SECOND
    if end == "signalled":
        meter.reset()
        send(Signal("order.paid", "o-17"))
        # Its item; the task with a timer of this minute.
        assert (meter.table_units, meter.index_units) == (1 + 2, 0)
    else:
        waiting = composed(TaskServices).reader.get(OWNER, task.id)
        composed(CoreServices).queues.send([Outgoing(message_for(waiting), 0)])
    meter.reset()
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units, meter.requests["Query"], meter.read_units) == (units, listed, 3, 2.5)


def test_the_first_start_of_a_rate_costs_its_place_in_the_list(metered: tuple[Stack, Meter]) -> None:
    """Once: each later start is one unit, and a task without a rate pays nothing."""
    stack, meter = metered
    spec = TaskSpec("report", payload=PAYLOAD)
    units: list[tuple[float, float]] = []
    for rate in (None, Rate("crm", 100), Rate("crm", 100)):
        meter.reset()
        run(stack, replace(spec, rate=rate))
        units.append((meter.table_units, meter.index_units))
    assert units == [(3, 1), (4, 2), (4, 1)]


def test_a_condition_on_a_signal_costs_reads_and_no_write(metered: tuple[Stack, Meter]) -> None:
    """A signal that does not meet it reads the task; the task later reads all signals, a hundred in a request."""
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
    """Send a signal; how many tasks it has woken."""
    request = request_of(signal, b"{}")
    return composed(FilterActionServices).requests.take(OWNER, request, key).value.progress.affected


def test_a_signal_costs_its_item_and_a_check_of_each_task(metered: tuple[Stack, Meter]) -> None:
    """Its own item and a search for tasks; a key is one more; each task is read and written once."""
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
