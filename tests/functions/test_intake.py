from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from duetime.adapters.dynamodb import schema
from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.domain.dispatch.enqueue_plan import Timer
from duetime.domain.ids import TaskId
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, to_iso
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Registered
from duetime.ports.tasks import Insertions, ListQuery
from duetime.services.topologies.definitions import Precondition
from tests.minutes import items_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.task import Task
    from tests.functions.stack import Stack

EVENTS = "123456789012:role/Events"


@pytest.fixture
def intake(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """The Lambda functions, with an intake, and a handler that does no work."""
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda _context, _payload: "done"}))
    rejects = stack.cloud.sqs.create_queue(QueueName=f"rejects-{uuid4().hex}")["QueueUrl"]
    stack.environ[Variable.INTAKE_REJECTS] = rejects
    stack.environ[Variable.INTAKE_OWNER] = EVENTS
    return stack


def message(stack: Stack, body: object, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a record
    """The record that Lambda passes on for a message that is sent now (Source: AWS Lambda Developer Guide, SQS)."""
    return {
        "messageId": str(uuid4()),
        "receiptHandle": "handle",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {"SentTimestamp": str(stack.clock.now()), "ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:intake",
        **changes,
    }


def event(stack: Stack, detail: object, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of an event
    """The message that EventBridge sends to a queue (Source: EventBridge User Guide, "Events")."""
    second = stack.clock.now() // SECOND
    return {
        "version": "0",
        "id": str(uuid4()),
        "detail-type": "duetime task",
        "source": "com.example.orders",
        "account": "123456789012",
        "time": datetime.fromtimestamp(second, UTC).isoformat().replace("+00:00", "Z"),
        "region": "us-east-1",
        "resources": [],
        "detail": detail,
        **changes,
    }


def take(stack: Stack, *records: dict[str, Any]) -> list[str]:
    """Let the intake process a batch, and return the ids of the messages that are reported for redelivery."""
    answer = stack.call("intake", {"Records": list(records)})
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def tasks_of(owner: str = EVENTS) -> list[Task]:
    """All tasks of an owner, ordered by due time."""
    ids = composed(CoreServices).stores.tasks.list_ids(ListQuery(owner, descending=False, limit=1_000))
    found = composed(CoreServices).stores.tasks.read_many(ids)
    return [found[each] for each in ids]


def rejected(stack: Stack) -> list[tuple[str, str]]:
    """The body of each rejected message, and the reason for its rejection."""
    answer = stack.cloud.sqs.receive_message(
        QueueUrl=stack.environ[Variable.INTAKE_REJECTS], MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )
    return [(each["Body"], each["MessageAttributes"]["reason"]["StringValue"]) for each in answer.get("Messages", [])]


def test_an_event_becomes_a_task_and_runs(intake: Stack) -> None:
    """An event becomes a task of the owner in the settings, with the fields that the event gives, and the task runs."""
    detail = {"type": "report", "payload": {"n": 1}, "priority": "high", "name": "daily", "tags": {"team": "dba"}}
    assert take(intake, message(intake, event(intake, detail))) == []
    (task,) = tasks_of()
    assert (task.type, task.priority, task.name, task.tags) == ("report", Priority.HIGH, "daily", {"team": "dba"})
    assert intake.work(Priority.HIGH) == []
    (done,) = tasks_of()
    assert done.state is State.SUCCEEDED


def test_a_message_can_be_the_body_of_a_task_creation(intake: Stack) -> None:
    """A message on the queue can be the body of a task creation instead of an event."""
    assert take(intake, message(intake, {"type": "report", "delay_seconds": 600})) == []
    (task,) = tasks_of()
    assert task.due_at == intake.clock.now() + 10 * MINUTE
    assert rejected(intake) == []


def test_an_event_with_an_owner_field_is_rejected(intake: Stack) -> None:
    """As in the API, an event with an `owner` field is rejected, because the field is unknown."""
    assert take(intake, message(intake, event(intake, {"type": "report", "owner": "boss"}))) == []
    assert [reason for _, reason in rejected(intake)] == ["detail.owner: is not a known field"]
    assert tasks_of() == tasks_of("boss") == []


def test_an_event_of_a_type_that_is_reserved_for_others_is_rejected(intake: Stack) -> None:
    """The owner of events cannot create tasks of a type that is reserved for other owners."""
    intake.environ[Variable.TYPE_OWNERS] = json.dumps({"report": ["123456789012:role/Billing"]})
    assert take(intake, message(intake, event(intake, {"type": "report"}))) == []
    assert [reason for _, reason in rejected(intake)] == ["type: 'report' is reserved for other owners by the settings"]
    assert tasks_of() == []


def test_each_event_becomes_one_task_despite_repeats_and_poison_messages(intake: Stack) -> None:
    """Each of 80 events becomes one task even if it is repeated, and poison messages are rejected, not redelivered."""
    events = [event(intake, {"type": "report", "payload": n}) for n in range(80)]
    records = [message(intake, each) for each in (*events, *events[:15])]
    poison = ["not json", "[]", '{"type": 1}', json.dumps(event(intake, None)), '{"detail": {"type": "report"}}']
    assert take(intake, *records, *(message(intake, body) for body in poison)) == []
    assert len(tasks_of()) == 80
    assert {body for body, _ in rejected(intake)} == set(poison)
    assert intake.waiting(Priority.NORMAL)["ready"] == 80


def test_a_redelivered_event_writes_no_task_and_sends_no_message(intake: Stack) -> None:
    """If an event is redelivered seconds, hours or days later, no second task is written and no message is sent."""
    record = message(intake, event(intake, {"type": "report", "payload": "a" * 100}))
    take(intake, record)
    assert intake.work(Priority.NORMAL) == []
    (done,) = tasks_of()
    assert done.state is State.SUCCEEDED
    for later in (2 * SECOND, 3 * HOUR, 3 * DAY):
        intake.clock.at += later
        assert take(intake, record) == []
    assert tasks_of() == [done]
    assert sum(intake.waiting(Priority.NORMAL).values()) == 0


@pytest.mark.parametrize("becomes", ["gone", "other"])
def test_a_redelivered_event_keeps_its_run_if_the_definition_was_deleted(intake: Stack, becomes: str) -> None:
    """A redelivered event keeps its run, even if the definition was deleted or has a new required parameter."""
    definitions, owner = composed(CoreServices).topology_definitions, EVENTS
    graph = {"nodes": {"a": {"type": "report"}}}
    definitions.put(owner, "nightly", json.dumps(graph).encode(), "", Precondition())
    body = {"type": "topology", "target": {"kind": "topology", "definition": {"name": "nightly"}}}
    record = message(intake, event(intake, body))
    assert take(intake, record) == []
    (made,) = tasks_of()
    if becomes == "gone":
        definitions.delete(owner, "nightly")
    else:
        asking = {**graph, "parameters": {"region": {}}}
        definitions.put(owner, "nightly", json.dumps(asking).encode(), "", Precondition())
    intake.clock.at += HOUR
    assert take(intake, record) == []
    assert (rejected(intake), tasks_of()) == ([], [made])
    take(intake, message(intake, event(intake, body)))
    assert (len(rejected(intake)), len(tasks_of())) == (1, 1)


def test_a_redelivered_event_does_not_rewrite_an_ended_tasks_payload(intake: Stack) -> None:
    """A redelivered event does not rewrite the payload of an ended task, because the payload would lose its expiry."""
    payload = "".join(f"{index * 2654435761 % 2**32:08x}" for index in range(2_000))
    record = message(intake, {"type": "report", "payload": payload})
    take(intake, record)
    intake.work(Priority.NORMAL)
    table = intake.environ[Variable.TABLE]
    items = [item for item in intake.cloud.dynamodb.scan(TableName=table)["Items"] if schema.TTL in item]
    assert len(items) == 2
    take(intake, record)
    assert [item for item in intake.cloud.dynamodb.scan(TableName=table)["Items"] if schema.TTL in item] == items


def test_a_delay_counts_from_the_time_the_message_was_sent(intake: Stack) -> None:
    """A delay counts from the time when the message was sent, and not from its delivery."""
    sent = intake.clock.now()
    record = message(intake, {"type": "report", "delay_seconds": 90})
    intake.clock.at += 30 * SECOND
    take(intake, record)
    (task,) = tasks_of()
    assert (task.due_at, task.id.home, task.created_at) == (sent + 90 * SECOND, sent + 90 * SECOND, sent + 30 * SECOND)


def test_a_late_events_task_gets_a_timer_in_the_current_minute(intake: Stack) -> None:
    """A task whose home minute has passed gets a timer in the current minute, which makes up for a lost message."""
    record = message(intake, {"type": "report"})
    intake.clock.at += 2 * DAY
    take(intake, record)
    (task,) = tasks_of()
    (timer,) = items_of(composed(CoreServices).stores.tasks, intake.clock.now() // MINUTE, task.id.shard)
    assert isinstance(timer, Timer)
    assert (timer.task_id, task.next_at) == (task.id, intake.clock.now())
    assert intake.work(Priority.NORMAL) == []
    assert tasks_of()[0].state is State.SUCCEEDED


def test_only_failed_events_are_redelivered_if_the_store_is_throttled(
    intake: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store is throttled, only failed events are reported, and their next delivery creates each task once."""
    records = [message(intake, event(intake, {"type": "report", "payload": n})) for n in range(20)]
    dynamodb = composed(CoreServices).stores.tasks._client
    put, calls = dynamodb.put_item, iter(range(1_000))
    error: Any = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "slow down"}}

    def throttled(**_request: object) -> Any:  # noqa: ANN401 - botocore's own
        raise dynamodb.exceptions.ProvisionedThroughputExceededException(error, "any")

    def throttled_at_times(**request: Any) -> Any:  # noqa: ANN401 - botocore's own
        return throttled() if next(calls) % 3 == 0 else put(**request)

    monkeypatch.setattr(dynamodb, "batch_execute_statement", throttled)
    monkeypatch.setattr(dynamodb, "put_item", throttled_at_times)
    again = take(intake, *records)
    assert len(again) == 7
    assert len(tasks_of()) == 13
    monkeypatch.undo()
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda _context, _payload: "done"}))
    assert take(intake, *[record for record in records if record["messageId"] in again]) == []
    assert len(tasks_of()) == 20
    assert intake.waiting(Priority.NORMAL)["ready"] == 20


def test_an_unforeseen_error_in_one_event_redelivers_only_that_event(
    intake: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one event causes an unforeseen error, only that message is redelivered, and the other events become tasks."""
    good, bad = message(intake, {"type": "report"}), message(intake, {"type": "report", "name": "bad"})
    store = composed(CoreServices).stores.tasks
    create, insert = store.create, store.insert

    def broken(task: Task, taking: object = None) -> bool:
        assert taking is None
        if task.name:
            raise ZeroDivisionError
        return create(task)

    def broken_batch(tasks: Sequence[Task]) -> Insertions:
        if any(task.name for task in tasks):
            raise ZeroDivisionError
        return insert(tasks)

    monkeypatch.setattr(store, "create", broken)
    monkeypatch.setattr(store, "insert", broken_batch)
    assert take(intake, good, bad) == [bad["messageId"]]
    assert len(tasks_of()) == 1


def test_a_poison_message_that_cannot_be_moved_is_redelivered(intake: Stack) -> None:
    """A poison message that cannot be moved to the rejects is redelivered, and the other messages become tasks."""
    intake.environ[Variable.INTAKE_REJECTS] += "-gone"
    poison = message(intake, "not json")
    assert take(intake, poison, message(intake, {"type": "report"})) == [poison["messageId"]]
    assert len(tasks_of()) == 1


NAMES = {"id": "1", "source": "com.example.orders"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (" ", "body: is"),
        ("{", "body: is not JSON"),
        ("null", "body: should be an object"),
        ("{}", "type: is required"),
        ({"type": "report", "due_at": "tomorrow"}, "at: should be an RFC 3339 time"),
        ({"type": "report", "target": {"kind": "sqs", "arn": "arn:aws:sqs:eu-west-1:123456789012:q"}}, "target.arn: "),
        ('{"type": "report", "payload": ' + "[" * 65 + "]" * 65 + "}", "is nested deeper"),
        ('{"type": "report", "payload": NaN}', "payload: "),
        ('{"type": "report", "payload": "\\ud800"}', "payload: "),
        (
            {**NAMES, "time": "2026-11-21T02:33:07Z", "detail": {"type": ""}},
            "detail.type: should be 1 to 64 c",
        ),
        ({**NAMES, "time": "2026-11-21T02:33:07Z", "detail": []}, "detail: should be an object"),
        ({**NAMES, "time": "2027-11-21T02:33:07Z", "detail": {"type": "report"}}, "time: lies in the future"),
        ({**NAMES, "time": "1969-11-21T02:33:07Z", "detail": {"type": "report"}}, "time: lies before 1970"),
        ({**NAMES, "time": 7, "detail": {"type": "report"}}, "time: should be"),
        ({**NAMES, "detail": {"type": "report"}}, "time: is required"),
        ({"id": "", "source": "s", "time": "2026-11-21T02:33:07Z", "detail": {"type": "report"}}, "id: should have"),
        ('{"id": "\\ud800", "source": "s", "time": "2026-11-21T02:33:07Z", "detail": {"type": "report"}}', "id: "),
        (
            {**NAMES, "time": "2026-11-21T02:33:07Z", "detail": {"type": "report", "due_at": "9999-01-01T00:00:00Z"}},
            "at: ",
        ),
    ],
)
def test_an_invalid_event_is_moved_to_the_rejects_with_the_reason(intake: Stack, body: object, reason: str) -> None:
    """An invalid event is moved to the rejects with the API's reason or the faulty field, and no task is stored."""
    record = message(intake, body)
    assert take(intake, record) == []
    assert tasks_of() == []
    ((kept, why),) = rejected(intake) or [("", "")]
    assert kept == record["body"]
    assert reason in why


def test_events_with_the_same_id_from_different_sources_are_different_events(intake: Stack) -> None:
    """Two events with the same id are different events if their sources differ, as each source assigns its own ids."""
    for source in ("com.example.orders", "com.example.invoices"):
        take(intake, message(intake, event(intake, {"type": "report"}, id="7", source=source)))
    assert len({task.id for task in tasks_of()}) == 2


def test_refused_events_are_counted_and_logged(
    intake: Stack, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A batch writes one line of metrics, and one log line for each refused event."""
    take(intake, message(intake, "poison"), message(intake, {"type": "report"}))
    (metrics,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    assert (metrics["intake_refused"], metrics["intake_tasks"]) == ([1.0], [1.0])
    assert caplog.messages == ["an event cannot be carried out"]


def test_the_home_of_a_task_from_an_event_is_the_events_time(intake: Stack) -> None:
    """A task from an event has an ordinary id, with the event's time and one of the shards that the trigger reads."""
    at = intake.clock.now() // SECOND * SECOND
    take(intake, message(intake, event(intake, {"type": "report"}, time=to_iso(at))))
    (task,) = tasks_of()
    assert TaskId.parse(task.id.text).home == at
    assert task.id.shard < int(intake.environ[Variable.SHARDS])
