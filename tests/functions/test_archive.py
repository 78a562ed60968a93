"""Tests of the archive function over AWS fakes: its metrics and its exact costs."""

from __future__ import annotations

import gzip
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import key_of
from duetime.composition import Composition, Platform
from duetime.composition.stream import ArchiveServices
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.environment_variables import Variable
from duetime_testing.fakes.stream import FakeStream
from duetime_testing.fakes.telemetry import FakeTelemetry
from tests.functions.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.tasks.task import Task

pytestmark = pytest.mark.usefixtures("noop")

BUCKET = "archive"
PLAIN = TaskSpec(type="canary.noop")


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The Lambda functions, with an archive bucket."""
    made = Stack.faked({Variable.ARCHIVE_BUCKET: BUCKET})
    made.cloud.s3.create_bucket(Bucket=BUCKET)
    yield made
    composition.use(None)


def ended(stack: Stack, number: int, spec: TaskSpec = PLAIN) -> list[Task]:
    """Create this many tasks, run them to success, and return them."""
    tasks = [stack.create(spec) for _ in range(number)]
    while stack.waiting(Priority.NORMAL)["ready"]:
        stack.call("worker", stack.receive(Priority.NORMAL))
    found = [stack.get(task) for task in tasks]
    assert {task.state for task in found} == {State.SUCCEEDED}
    return found


def removal_of(stack: Stack, tasks: Sequence[Task], *, by_ttl: bool = True) -> dict[str, Any]:
    """The stream event for tasks that TTL deleted, or that were deleted in another way if `by_ttl` is false."""
    fakes: Any = stack.cloud.dynamodb
    stream = FakeStream(stack.clock.now, by_ttl=by_ttl, filters=[schema.REMOVED_TASKS_FILTER])
    (table,) = fakes.fake.tables.values()
    stream.watch(table)
    for task in tasks:
        key = key_of(task.id)
        table.write(stack.clock.now(), (key[schema.PARTITION_KEY]["S"], key[schema.SORT_KEY]["S"]), None)
    return stream.event()


def objects(stack: Stack) -> dict[str, bytes]:
    """The objects in the archive bucket."""
    fakes: Any = stack.cloud.s3
    return {key: body for (bucket, key), body in fakes.fake.objects.items() if bucket == BUCKET}


def spent_on(stack: Stack, event: dict[str, Any]) -> Counter[str]:
    """The AWS calls that the archive function makes for an event."""
    calls: Counter[str] = Counter()
    session: Any = stack.cloud.dynamodb
    session._session.heard = lambda operation, _request: calls.update([operation])
    stack.call("archive", event)
    session._session.heard = lambda _operation, _request: None
    return calls


def test_a_hundred_tasks_of_one_day_are_archived_in_one_object(stack: Stack) -> None:
    """A hundred tasks that ended on one day cost one PUT and no read, and take up under 300 compressed bytes each."""
    event = removal_of(stack, ended(stack, 100))
    assert spent_on(stack, event) == {"put_object": 1}
    ((key, body),) = objects(stack).items()
    assert key.startswith("archive/day=")
    assert gzip.decompress(body).count(b"\n") == 100
    assert len(body) / 100 < 300


def test_a_payload_in_an_item_of_its_own_is_read_once(stack: Stack) -> None:
    """A payload that is stored in a separate item is read once."""
    payload = b'"' + b"".join(b"%d-" % (number * 7_919) for number in range(1_000)) + b'"'
    event = removal_of(stack, ended(stack, 3, TaskSpec(type="canary.noop", payload=payload)))
    assert spent_on(stack, event) == {"put_object": 1, "get_item": 3}


def test_nothing_to_archive_costs_nothing(stack: Stack) -> None:
    """Tasks that were not deleted by TTL are neither delivered to the function nor archived."""
    event = removal_of(stack, ended(stack, 1), by_ttl=False)
    assert event == {"Records": []}
    event = removal_of(stack, ended(stack, 1))
    for record in event["Records"]:
        record["userIdentity"] = None
    assert spent_on(stack, event) == {}


def test_archived_tasks_and_unreadable_records_are_counted(stack: Stack) -> None:
    """Metrics count the archived tasks, the unreadable records, and the payloads that could not be read."""
    event = removal_of(stack, ended(stack, 4))
    damaged, no_json, *_ = event["Records"]
    damaged["dynamodb"]["OldImage"][schema.VERSION_OF_SCHEMA] = {"N": "99"}
    no_json["dynamodb"]["OldImage"]["b"] = {"S": "{"}
    event["Records"].append({"eventID": "poison", "userIdentity": {"principalId": schema.TTL_PRINCIPAL}})
    platform = composition.composed().platform
    telemetry = FakeTelemetry()
    services = Composition(
        Platform(environ=platform.environ, clock=platform.clock, clients=platform.clients, telemetry=telemetry)
    ).part(ArchiveServices)
    services.archiver.archive(services.removed(event))
    assert telemetry.counts == {"tasks_archived": 3, "removed_records_unreadable": 3}
    assert sorted(key.partition("/")[0] for key in objects(stack)) == ["archive", "unreadable", "unreadable"]
