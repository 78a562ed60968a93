"""Tests of intake rules, which create and cancel tasks, and send signals, for events from each source."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.composition.api import IntakeServices
from duetime.composition.core import CoreServices
from duetime.contract.http import request_json
from duetime.contract.intake_rules import rule_of
from duetime.domain.callers import Caller
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import INTAKE_RULES_LIFE
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import EventTarget
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import MINUTE, SECOND
from duetime.environment_variables import Variable
from tests.functions.test_intake import EVENTS, event, intake, message, rejected, take, tasks_of

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from tests.functions.stack import Stack

__all__ = ["intake"]
QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
STREAM = "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"
TASK = {"type": "report"}
SOURCE = {"source": ["com.example.orders"]}
METRICS = ("intake_tasks", "intake_cancels", "intake_signals", "intake_unmatched")


def set_rule(name: str, rule: dict[str, Any]) -> None:
    """Set an intake rule in the same way as the API."""
    services = composed(IntakeServices)
    document = request_json.read(json.dumps(rule))
    services.rule_admin.put(Caller("boss"), rule_of(name, document, services.owner))


def placed(stack: Stack, detail: object, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of an event
    """A message with an event that is not itself a task."""
    return message(stack, event(stack, detail, **{"detail-type": "OrderPlaced", **changes}))


def lines(*texts: str) -> dict[str, Any]:
    """A CloudWatch Logs delivery (Source: CloudWatch Logs User Guide, "Subscription filters")."""
    found = {
        "messageType": "DATA_MESSAGE",
        "owner": "123456789012",
        "logGroup": "/app/orders",
        "logStream": "a",
        "subscriptionFilters": ["duetime"],
        "logEvents": [
            {"id": f"{at:056d}", "timestamp": 1795228387250 + at, "message": text} for at, text in enumerate(texts)
        ],
    }
    return {"awslogs": {"data": base64.b64encode(gzip.compress(json.dumps(found).encode())).decode()}}


def change(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a record
    """A DynamoDB stream record (Source: DynamoDB Developer Guide, "Streams and Lambda")."""
    return {
        "eventID": "c4ca4238a0b923820dcc509a6f75849b",
        "eventName": "MODIFY",
        "eventSource": "aws:dynamodb",
        "eventSourceARN": STREAM,
        "dynamodb": {
            "ApproximateCreationDateTime": 1795228380.0,
            "Keys": {"id": {"S": "o-17"}},
            "OldImage": {"id": {"S": "o-17"}, "state": {"S": "new"}},
            "NewImage": {
                "id": {"S": "o-17"},
                "state": {"S": "paid"},
                "total": {"N": "12.50"},
                "items": {"L": [{"N": "3"}, {"NULL": True}, {"BOOL": False}]},
                "tags": {"SS": ["a", "b"]},
                "customer": {"M": {"name": {"S": "Ann"}}},
            },
            "SequenceNumber": "4421584500000000017450439091",
        },
        **changes,
    }


def test_an_event_that_matches_a_rule_creates_its_task(intake: Stack) -> None:
    """An event that matches a rule creates one task, even if the event is repeated.

    The rule takes fields from the event, and the rule's delay counts from the event's time.
    """
    fields = {
        "payload": "detail.order",
        "tags.order": "detail.order.id",
        "name": "join('-', ['order', detail.order.id])",
    }
    set_rule("placed", {"pattern": SOURCE, "create": {"task": {**TASK, "delay_seconds": 60}, "fields": fields}})
    record = placed(intake, {"order": {"id": "o-17", "lines": 2}})
    assert take(intake, record) == take(intake, record) == []
    (task,) = tasks_of()
    assert (task.type, task.name, task.tags) == ("report", "order-o-17", {"order": "o-17"})
    assert json.loads(task.payload.data or b"") == {
        "id": "o-17",
        "lines": 2,
    }
    assert task.due_at == intake.clock.now() // SECOND * SECOND + MINUTE
    assert rejected(intake) == []


def test_an_event_that_matches_no_rule_is_dropped(intake: Stack) -> None:
    """An event that matches no rule creates no task and is not rejected, as a bus carries many unrelated events."""
    set_rule("placed", {"pattern": {"source": ["com.example.billing"]}, "create": {"task": TASK}})
    assert take(intake, placed(intake, {})) == []
    assert (tasks_of(), rejected(intake)) == ([], [])


def test_an_event_creates_a_task_for_each_matching_rule(intake: Stack) -> None:
    """An event creates a task for each matching rule and the rule's owner, even if one more rule cannot be applied."""
    set_rule("a", {"pattern": SOURCE, "create": {"task": TASK}})
    set_rule("b", {"pattern": SOURCE, "create": {"task": TASK}, "owner": "ann"})
    set_rule("c", {"pattern": SOURCE, "create": {"task": TASK, "fields": {"name": "detail.number"}}})
    record = placed(intake, {"number": 5})
    assert take(intake, record) == []
    assert (len(tasks_of()), len(tasks_of("ann"))) == (1, 1)
    assert rejected(intake) == [(record["body"], "intake rule c: name: should be text, not a number")]


def test_events_that_are_tasks_do_not_pass_through_rules(intake: Stack) -> None:
    """An event with the detail type for tasks creates only one task, even if a rule matches the event, too."""
    set_rule("all", {"pattern": {"source": [{"exists": True}]}, "create": {"task": TASK}})
    assert take(intake, message(intake, event(intake, TASK)), message(intake, TASK)) == []
    assert len(tasks_of()) == 2
    intake.environ[Variable.INTAKE_DETAIL_TYPE] = "OrderPlaced"
    assert take(intake, placed(intake, TASK), message(intake, event(intake, TASK))) == []
    assert len(tasks_of()) == 4


def test_an_event_cancels_the_tasks_of_its_rule(intake: Stack) -> None:
    """A matching event cancels the filtered tasks by one bulk operation, and a repeat starts no second operation."""
    later = {**TASK, "delay_seconds": 600}
    take(intake, *(message(intake, {**later, "tags": {"order": each}}) for each in ("o-17", "o-18")))
    rule = {"pattern": SOURCE, "cancel": {"filter": {"type": "report"}, "fields": {"tags.order": "detail.id"}}}
    set_rule("cancelled", rule)
    record = placed(intake, {"id": "o-17"})
    assert take(intake, record) == take(intake, record) == []
    (operation,) = composed(CoreServices).stores.bulk.list(EVENTS, 10)
    intake.call("bulk", {"operation": operation.id.text})
    assert {task.tags["order"]: task.state for task in tasks_of()} == {
        "o-17": State.CANCELLED,
        "o-18": State.SCHEDULED,
    }
    take(intake, message(intake, {**later, "tags": {"order": "o-17"}}))
    intake.clock.at += MINUTE
    assert take(intake, record) == []
    assert len(composed(CoreServices).stores.bulk.list(EVENTS, 10)) == 1


def test_an_event_without_a_value_for_a_cancel_rules_filter_is_rejected(intake: Stack) -> None:
    """An event without a value for a cancel rule's filter is rejected.

    Otherwise, the rule would cancel more tasks than intended.
    """
    rule = {"pattern": SOURCE, "cancel": {"filter": {"type": "report"}, "fields": {"tags.order": "detail.id"}}}
    set_rule("cancelled", rule)
    assert take(intake, placed(intake, {})) == []
    ((_, reason),) = rejected(intake)
    assert reason == "intake rule cancelled: tags.order: has no value: detail.id is null in the event"
    assert composed(CoreServices).stores.bulk.list(EVENTS, 10) == []


def test_messages_of_other_queues_are_events(intake: Stack) -> None:
    """A message from another queue becomes an event with the message's JSON or text in `detail.body`.

    If the message is itself an EventBridge event, that event is used.
    """
    intake.environ[Variable.INTAKE_QUEUES] = QUEUE
    fields = {"payload": "detail.body", "name": "detail.attributes.kind"}
    set_rule(
        "queued", {"pattern": {"source": ["aws.sqs"], "resources": [QUEUE]}, "create": {"task": TASK, "fields": fields}}
    )
    set_rule("placed", {"pattern": SOURCE, "create": {"task": {**TASK, "name": "event"}}})
    attributes = {"kind": {"stringValue": "text", "dataType": "String"}}
    records = [
        message(intake, {"id": 17}, eventSourceARN=QUEUE),
        message(intake, "no JSON", eventSourceARN=QUEUE, messageAttributes=attributes),
        message(intake, event(intake, TASK), eventSourceARN=QUEUE),
    ]
    assert take(intake, *records) == take(intake, *records) == []
    found = {task.name: task.payload.data for task in tasks_of()}
    assert found == {"": b'{"id":17}', "text": b'"no JSON"', "event": b"null"}
    assert rejected(intake) == []


def test_changes_of_a_table_are_events(intake: Stack) -> None:
    """A stream record of a table becomes an event with the attributes as JSON.

    A repeated record creates no second task, and a record whose rule cannot be applied is rejected.
    """
    pattern = {"source": ["aws.dynamodb"], "detail": {"new": {"state": ["paid"]}, "old": {"state": ["new"]}}}
    fields = {"payload": "detail.new", "name": "detail.keys.id"}
    set_rule("paid", {"pattern": pattern, "create": {"task": TASK, "fields": fields}})
    set_rule(
        "other",
        {"pattern": {"detail": {"eventName": ["REMOVE"]}}, "create": {"task": TASK, "fields": {"name": "detail"}}},
    )
    assert take(intake, change()) == take(intake, change()) == []
    (task,) = tasks_of()
    assert task.name == "o-17"
    assert json.loads(task.payload.data or b"") == {
        "id": "o-17",
        "state": "paid",
        "total": 12.5,
        "items": [3, None, False],
        "tags": ["a", "b"],
        "customer": {"name": "Ann"},
    }
    assert take(intake, change(eventName="REMOVE", eventID="2")) == []
    ((body, reason),) = rejected(intake)
    assert (json.loads(body)["eventName"], reason) == (
        "REMOVE",
        "intake rule other: name: should be text, not an object",
    )


def test_lines_of_a_log_are_events(intake: Stack) -> None:
    """Each log line becomes an event.

    A JSON object in the line is the event's `json` field, and the connection check that CloudWatch Logs sends does not
    become an event.
    """
    pattern = {"source": ["aws.logs"], "resources": ["/app/orders"], "detail": {"json": {"level": ["ERROR"]}}}
    set_rule("errors", {"pattern": pattern, "create": {"task": TASK, "fields": {"payload": "detail.json.error"}}})
    delivery = lines('{"level": "ERROR", "error": "disk full"}', '{"level": "INFO"}', "plain text")
    assert intake.call("intake", delivery) == intake.call("intake", delivery) == {}
    (task,) = tasks_of()
    assert task.payload.data == b'"disk full"'
    check = json.loads(gzip.decompress(base64.b64decode(delivery["awslogs"]["data"])))
    data = base64.b64encode(gzip.compress(json.dumps({**check, "messageType": "CONTROL_MESSAGE"}).encode())).decode()
    assert intake.call("intake", {"awslogs": {"data": data}}) == {}
    assert len(tasks_of()) == 1


def test_a_file_in_s3_is_an_event(intake: Stack) -> None:
    """The event that S3 sends for a new file creates a task.

    Source: Amazon S3 User Guide, "EventBridge event message structure".
    """
    pattern = {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {"object": {"key": [{"suffix": ".csv"}]}},
    }
    fields = {"payload": "detail.{bucket: bucket.name, key: object.key}"}
    set_rule("imports", {"pattern": pattern, "create": {"task": TASK, "fields": fields}})
    detail = {
        "version": "0",
        "bucket": {"name": "incoming"},
        "object": {"key": "2026/orders.csv", "size": 5, "etag": "b1946ac92492d2347c6235b4d2611184", "sequencer": "1"},
        "request-id": "N4N7GDK58NMKJ12R",
        "requester": "123456789012",
        "reason": "PutObject",
    }
    created = {"source": "aws.s3", "detail-type": "Object Created"}
    assert take(intake, message(intake, event(intake, detail, **created))) == []
    (task,) = tasks_of()
    payload = json.loads(task.payload.data or b"")
    assert payload == {"bucket": "incoming", "key": "2026/orders.csv"}


def test_rules_take_effect_within_seconds(intake: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules are read again every ten seconds.

    If this read fails, events are redelivered, so that a new rule misses no event.
    """
    set_rule("placed", {"pattern": SOURCE, "create": {"task": TASK}})
    assert take(intake, placed(intake, {})) == []
    set_rule("more", {"pattern": SOURCE, "create": {"task": TASK}})
    intake.clock.at += INTAKE_RULES_LIFE
    assert take(intake, placed(intake, {})) == []
    assert len(tasks_of()) == 3

    def unanswered(*, consistent: bool) -> None:
        raise Unavailable(f"throttled, {consistent}")

    set_rule("new", {"pattern": SOURCE, "create": {"task": TASK}})
    monkeypatch.setattr(composed(CoreServices).stores.intake_rules, "read", unanswered)
    intake.clock.at += INTAKE_RULES_LIFE
    record = placed(intake, {})
    assert take(intake, record) == [record["messageId"]]
    assert len(tasks_of()) == 3
    with pytest.raises(Exception, match="1 lines of a log must be delivered again"):
        intake.call("intake", lines("x"))
    monkeypatch.undo()
    assert take(intake, record) == []
    assert len(tasks_of()) == 6


def test_an_event_that_takes_too_many_matching_steps_is_rejected(intake: Stack) -> None:
    """An event is rejected if the comparison with the rules takes too many steps."""
    set_rule("many", {"pattern": {"detail": {"a": [str(each) for each in range(400)]}}, "create": {"task": TASK}})
    assert take(intake, placed(intake, {"a": ["x"] * 1_000})) == []
    ((_, reason),) = rejected(intake)
    assert "more than 200_000 steps" in reason


def test_an_event_is_rejected_if_an_expression_exceeds_the_evaluation_budget(intake: Stack) -> None:
    """An event is rejected if an expression in a rule's fields exceeds the evaluation budget of conditions."""
    fields = {"payload": "detail.a[].[@,@][].[@,@][].[@,@][].[@,@][].[@,@][].[@,@]"}
    set_rule("bomb", {"pattern": SOURCE, "create": {"task": TASK, "fields": fields}})
    assert take(intake, placed(intake, {"a": list(range(20_000))})) == []
    ((_, reason),) = rejected(intake)
    assert reason.startswith("intake rule bomb: payload: it needs more than")


def test_the_tasks_cancels_and_signals_of_rules_are_counted(intake: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """Separate metrics count the rules' tasks, cancellations and signals, and the events that match no rule."""
    set_rule("placed", {"pattern": SOURCE, "create": {"task": TASK}})
    set_rule("cancelled", {"pattern": SOURCE, "cancel": {"filter": {"type": "report"}}})
    set_rule("paid", {"pattern": SOURCE, "signal": {"name": "order.paid"}})
    capsys.readouterr()
    take(intake, placed(intake, {}), placed(intake, {}, source="com.example.billing"))
    metrics = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {name: metrics[name] for name in METRICS} == {
        "intake_tasks": [1.0],
        "intake_cancels": [1.0],
        "intake_signals": [1.0],
        "intake_unmatched": [1.0],
    }


WAITS: dict[str, Any] = {"type": "payment", "target": {"kind": "wait_for_event", "event": "order.paid"}}
SIGNAL = {"name": "order.paid", "fields": {"key": "detail.order.id", "payload": "detail"}}


def waiting(stack: Stack, *keys: str) -> list[Task]:
    """Create tasks that wait for the event with these keys, and return all tasks of the intake's owner."""
    take(stack, *(message(stack, {**WAITS, "target": {**WAITS["target"], "key": key}}) for key in keys))
    stack.work(Priority.NORMAL)
    found = tasks_of()
    assert {task.state for task in found} == {State.WAITING}
    return found


def results(stack: Stack) -> dict[str, Any]:
    """The results of all tasks that have ended by now, by the key of the event that they waited for."""
    stack.work(Priority.NORMAL)
    ended = [task for task in tasks_of() if task.state is State.SUCCEEDED]
    contents = composed(CoreServices).stores.contents
    return {
        task.target.key: json.loads(contents.fetch(task.id, task.result))
        for task in ended
        if isinstance(task.target, EventTarget) and task.result is not None
    }


def test_an_event_wakes_the_tasks_that_wait_for_it(intake: Stack) -> None:
    """An event ends each task that waits for its key, with the payload that the rule extracts.

    A repeated delivery sends no second signal.
    """
    set_rule("paid", {"pattern": SOURCE, "signal": SIGNAL})
    waiting(intake, "o-17", "o-18")
    record = placed(intake, {"order": {"id": "o-17"}, "amount": 5})
    assert take(intake, record) == take(intake, record) == []
    assert results(intake) == {"o-17": {"order": {"id": "o-17"}, "amount": 5}}
    intake.clock.at += MINUTE
    take(intake, message(intake, {**WAITS, "target": {**WAITS["target"], "key": "o-17"}}))
    assert take(intake, record) == []
    assert len(results(intake)) == 1
    assert [task.state for task in tasks_of()].count(State.WAITING) == 2
    assert composed(CoreServices).stores.bulk.list(EVENTS, 10) == []
    assert rejected(intake) == []


def test_a_signal_sent_before_its_task_waits_is_still_received(intake: Stack) -> None:
    """A signal is kept, so that a task which begins to wait only after the signal was sent still receives it."""
    set_rule("paid", {"pattern": SOURCE, "signal": SIGNAL})
    take(intake, message(intake, {**WAITS, "target": {**WAITS["target"], "key": "o-17"}}))
    assert take(intake, placed(intake, {"order": {"id": "o-17"}})) == []
    assert results(intake) == {"o-17": {"order": {"id": "o-17"}}}


def test_an_event_without_a_value_for_a_signal_rules_key_is_rejected(intake: Stack) -> None:
    """A signal rule rejects an event whose key is missing or a number, but accepts null as the payload."""
    set_rule("paid", {"pattern": SOURCE, "signal": {**SIGNAL, "fields": {"key": "detail.id", "payload": "detail.x"}}})
    waiting(intake, "o-17")
    assert take(intake, *(placed(intake, detail) for detail in ({}, {"id": 17}, {"id": "o-17"}))) == []
    assert sorted(reason for _, reason in rejected(intake)) == [
        "intake rule paid: key: has no value: detail.id is null in the event",
        "intake rule paid: key: should be text, not a number",
    ]
    assert results(intake) == {"o-17": None}


def test_events_of_each_source_wake_tasks(intake: Stack) -> None:
    """S3 events, messages in queues, changes in tables and log lines wake tasks that wait for them."""
    intake.environ[Variable.INTAKE_QUEUES] = QUEUE
    for source, key in (
        ("aws.s3", "detail.object.key"),
        ("aws.sqs", "detail.body.id"),
        ("aws.dynamodb", "detail.keys.id"),
        ("aws.logs", "detail.json.id"),
    ):
        rule = {"pattern": {"source": [source]}, "signal": {"name": "order.paid", "fields": {"key": key}}}
        set_rule(source, rule)
    waiting(intake, "2026/o-17.csv", "o-queue", "o-17", "o-log")
    created = {"source": "aws.s3", "detail-type": "Object Created"}
    in_s3 = message(intake, event(intake, {"object": {"key": "2026/o-17.csv"}}, **created))
    assert take(intake, in_s3, message(intake, {"id": "o-queue"}, eventSourceARN=QUEUE)) == []
    assert take(intake, change()) == []
    assert intake.call("intake", lines('{"id": "o-log"}')) == {}
    assert results(intake).keys() == {"2026/o-17.csv", "o-queue", "o-17", "o-log"}
    assert rejected(intake) == []


def test_an_event_is_redelivered_if_the_store_fails_while_waking_tasks(
    intake: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store fails while an event wakes tasks, the event is redelivered and then wakes the tasks."""
    set_rule("paid", {"pattern": SOURCE, "signal": SIGNAL})
    waiting(intake, "o-17")
    record = placed(intake, {"order": {"id": "o-17"}})

    def unanswered(*_: object) -> None:
        raise Unavailable("throttled")

    with monkeypatch.context() as patched:
        patched.setattr(composed(CoreServices).stores.signals, "waiting", unanswered)
        assert take(intake, record) == [record["messageId"]]
    assert take(intake, record) == []
    assert results(intake).keys() == {"o-17"}
