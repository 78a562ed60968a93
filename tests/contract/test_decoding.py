from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from duetime.contract.http.request_errors import FieldsInvalid
from duetime.contract.http.request_json import read
from duetime.contract.tasks.decoding import batch_items, task_spec
from duetime.contract.tasks.encoding import entry
from duetime.contract.tasks.updates import TaskFieldMerge, task_update
from duetime.domain.limits import MAX_BATCH, MAX_PAYLOAD_BYTES
from duetime.domain.tasks.targets import AwsService, AwsTarget, HttpTarget, Phase
from duetime.domain.tasks.task_options import Priority, RetryPolicy
from duetime.domain.tasks.type_defaults import TaskSpec
from tests.contract.properties import JSON, unhurried
from tests.domain.factories import task


def spec(**fields: Any) -> TaskSpec:  # noqa: ANN401 - any JSON
    """Return the task decoded from a body with the given fields."""
    return task_spec(read(json.dumps({"type": "report", **fields})))


def faults(body: object) -> dict[str, str]:
    """Return the faults in a body that creates a task, by field."""
    with pytest.raises(FieldsInvalid) as refusal:
        task_spec(read(json.dumps(body)))
    return {fault.field: fault.reason for fault in refusal.value.faults}


def test_a_task_with_only_a_type_has_the_defaults_of_the_domain() -> None:
    """Omitted fields have the domain's defaults."""
    assert spec() == TaskSpec("report")


def test_every_field_reaches_the_task() -> None:
    """Each field of a body is decoded to the task's field in the domain's terms."""
    assert spec(
        payload={"any": ["json", None]},
        due_at="2026-12-01T09:00:00.250+09:00",
        priority="high",
        target={"kind": "http", "url": "https://example.org:8443/report?x=1", "phases": ["clean", "rollback"]},
        retry={"max_attempts": 3, "initial_seconds": 0.5, "multiplier": 1, "max_seconds": 60},
        timeout_seconds=840,
        notify_within_seconds=2_592_000,
        rollback_on_failure=True,
        name="Nightly report, Zürich",
        tags={"team": "dba", "a.b/c-d_e": "x:y"},
    ) == TaskSpec(
        type="report",
        payload=b'{"any":["json",null]}',
        due_at=1_796_083_200_250,
        priority=Priority.HIGH,
        target=HttpTarget("https://example.org:8443/report?x=1", frozenset({Phase.CLEAN, Phase.ROLLBACK})),
        retry=RetryPolicy(3, 0.5, 1.0, 60.0),
        timeout_seconds=840,
        notify_within_seconds=2_592_000,
        rollback_on_failure=True,
        name="Nightly report, Zürich",
        tags={"team": "dba", "a.b/c-d_e": "x:y"},
    )


def test_a_rollback_that_the_endpoint_does_not_support_is_rejected() -> None:
    """A rollback is refused if the endpoint lacks this phase, and accepted for a handler, whose phases are unknown."""
    target = {"kind": "http", "url": "https://example.org/", "phases": ["clean"]}
    assert list(faults({"type": "report", "target": target, "rollback_on_failure": True})) == ["rollback_on_failure"]
    assert spec(rollback_on_failure=True).rollback_on_failure


@unhurried
@given(JSON)
def test_a_payload_is_stored_as_compact_json(payload: Any) -> None:  # noqa: ANN401 - any JSON
    """Any JSON is stored as compact UTF-8, without spaces and escapes, and is read back unchanged."""
    stored = spec(payload=payload).payload
    read, written = json.loads(stored), json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    # Values are compared as Python prints them, so that 1 differs from 1.0. Small numbers are written differently; for
    # example, 0.00001 becomes 1e-05.
    assert repr(read) == repr(payload)
    assert len(stored) <= len(written.encode()) + 2 * written.count("e-")


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [(0, 0), (1, 1_000), (0.29, 290), (1.1, 1_100), (0.0001, 1), (4.35, 4_350), (1e-300, 1)],
)
def test_a_delay_is_rounded_up_to_whole_milliseconds(seconds: float, milliseconds: int) -> None:
    """A delay is rounded up to whole milliseconds."""
    assert spec(delay_seconds=seconds).delay == milliseconds


BAD_FIELDS: list[tuple[str, object, str]] = [
    ("type", 5, "type"),
    ("type", None, "type"),
    ("type", "", "type"),
    ("type", "two words", "type"),
    ("type", "report\n", "type"),
    ("type", "-report", "type"),
    ("type", "t" * 65, "type"),
    ("type", "t" * 500_000, "type"),
    ("due_at", 1_795_228_387, "due_at"),
    ("due_at", "2026-12-01T09:00:00", "due_at"),
    ("delay_seconds", "5", "delay_seconds"),
    ("delay_seconds", True, "delay_seconds"),
    ("delay_seconds", -0.001, "delay_seconds"),
    ("delay_seconds", 315_619_200.001, "delay_seconds"),
    ("delay_seconds", 10**37, "delay_seconds"),
    ("priority", "urgent", "priority"),
    ("priority", "HIGH", "priority"),
    ("priority", 1, "priority"),
    ("priority", None, "priority"),
    ("priority", ["high"], "priority"),
    ("target", "http://example.org", "target"),
    ("target", {}, "target.kind"),
    ("target", {"kind": "ftp"}, "target.kind"),
    ("target", {"kind": ["http"]}, "target.kind"),
    ("target", {"kind": "http"}, "target.url"),
    ("target", {"kind": "http", "url": 5}, "target.url"),
    ("target", {"kind": "handler", "url": "http://example.org"}, "target.url"),
    ("target", {"kind": "http", "url": "http://example.org", "verb": "GET"}, "target.verb"),
    ("retry", 5, "retry"),
    ("retry", {"max_attempts": 0}, "retry.max_attempts"),
    ("retry", {"max_attempts": 101}, "retry.max_attempts"),
    ("retry", {"max_attempts": 2.5}, "retry.max_attempts"),
    ("retry", {"max_attempts": True}, "retry.max_attempts"),
    ("retry", {"initial_seconds": -1}, "retry.initial_seconds"),
    ("retry", {"initial_seconds": "1"}, "retry.initial_seconds"),
    ("retry", {"multiplier": 0.5}, "retry.multiplier"),
    ("retry", {"multiplier": 1e300}, "retry.multiplier"),
    ("retry", {"max_seconds": 86_401}, "retry.max_seconds"),
    ("retry", {"jitter": "none"}, "retry.jitter"),
    ("timeout_seconds", 0, "timeout_seconds"),
    ("timeout_seconds", 1_209_601, "timeout_seconds"),
    ("timeout_seconds", 1.5, "timeout_seconds"),
    ("timeout_seconds", True, "timeout_seconds"),
    ("timeout_seconds", 10**37, "timeout_seconds"),
    ("name", 5, "name"),
    ("name", "n" * 129, "name"),
    ("name", "nul\x00", "name"),
    ("name", "\x9b31m", "name"),
    ("tags", ["team"], "tags"),
    ("tags", {"team": 5}, "tags.team"),
    ("tags", {"team": "d" * 65}, "tags.team"),
    ("tags", {"team": "a\x00"}, "tags.team"),
    ("tags", {"a:b": "c"}, "tags.a:b"),
    ("tags", {"": "c"}, 'tags.""'),
    ("tags", {f"k{number}": "v" for number in range(11)}, "tags"),
    ("rate", {"key": "crm"}, "rate.limit"),
    ("rate", {"limit": 5}, "rate.key"),
    ("rate", {"key": "a b", "limit": 5}, "rate.key"),
    ("rate", {"key": "crm", "limit": 0}, "rate.limit"),
    ("rate", {"key": "crm", "limit": 10_001}, "rate.limit"),
    ("rate", {"key": "crm", "limit": True}, "rate.limit"),
    ("rate", {"key": "crm", "limit": 1, "per_seconds": 0}, "rate.per_seconds"),
    ("rate", {"key": "crm", "limit": 1, "per_seconds": 86_401}, "rate.per_seconds"),
    ("rate", {"key": "crm", "limit": 1, "burst": -1}, "rate.burst"),
    ("lock", "db-17", "lock"),
    ("lock", {}, "lock.key"),
    ("lock", {"key": "a b"}, "lock.key"),
    ("lock", {"key": "a#b"}, "lock.key"),
    ("lock", {"key": "a" * 65}, "lock.key"),
    ("lock", {"key": "a", "max_holders": 0}, "lock.max_holders"),
    ("lock", {"key": "a", "max_holders": 101}, "lock.max_holders"),
    ("lock", {"key": "a", "max_holders": True}, "lock.max_holders"),
    ("lock", {"key": "a", "scope": "all"}, "lock.scope"),
    ("lock", {"key": "a", "holder": "me"}, "lock.holder"),
    ("lock", {"key": "a", "mode": "read"}, "lock.mode"),
    ("lock", {"key": "a", "mode": "shared", "max_holders": 1}, "lock"),
    ("locks", {"key": "a"}, "locks"),
    ("locks", [{"key": "a"}, {"key": "a b"}], "locks[1].key"),
    ("locks", [{"key": "a"}, {"key": "a", "mode": "shared"}], "locks"),
    ("locks", [{"key": f"{number}"} for number in range(6)], "locks"),
    ("target", {"kind": "http", "url": "http://example.org", "phases": ["run"]}, "target.phases[0]"),
    ("target", {"kind": "http", "url": "http://example.org", "phases": ["clean", "clean"]}, "target.phases"),
    ("target", {"kind": "http", "url": "http://example.org", "phases": "clean"}, "target.phases"),
    ("target", {"kind": "handler", "phases": ["clean"]}, "target.phases"),
    ("notify_within_seconds", 0, "notify_within_seconds"),
    ("notify_within_seconds", 2_592_001, "notify_within_seconds"),
    ("notify_within_seconds", 1.5, "notify_within_seconds"),
    ("notify_within_seconds", None, "notify_within_seconds"),
    ("rollback", "yes", "rollback"),
    ("rollback", 1, "rollback"),
    ("rollback", None, "rollback"),
    ("target", {"kind": "http", "url": "http://example.org", "queries": ["health"]}, "target.queries[0]"),
    ("target", {"kind": "http", "url": "http://example.org", "queries": ["status", "status"]}, "target.queries"),
    ("target", {"kind": "handler", "queries": ["status"]}, "target.queries"),
    ("callback_url", "", "callback_url"),
    ("callback_url", "ftp://example.org", "callback_url"),
    ("callback_url", "https://me:secret@example.org", "callback_url"),
    ("callback_url", "https://example.org/" + "x" * 2048, "callback_url"),
    ("callback_url", 7, "callback_url"),
    ("notify_on", {"to": "https://example.org"}, "notify_on"),
    ("notify_on", {"to": "arn:aws:sns:eu-west-1:123456789012:alerts.fifo", "failed": True}, "notify_on.to"),
    ("notify_on", {"to": "arn:aws:sqs:eu-west-1:123456789012:alerts", "failed": True}, "notify_on.to"),
    ("notify_on", {"to": "https://example.org", "late_seconds": 604_801}, "notify_on.late_seconds"),
    ("callback", "https://example.org", "callback"),
    ("owner", "somebody", "owner"),
    ("id", "01M7XZ8CGJ0013P2ZBN3YDT3DX", "id"),
]


@pytest.mark.parametrize(("field", "value", "named"), BAD_FIELDS)
def test_an_invalid_task_field_is_rejected_with_its_name(field: str, value: object, named: str) -> None:
    """A wrong type, a value beyond a limit or an unknown field is refused, and only this field is named."""
    found = faults({"type": "report", field: value})
    assert list(found) == [named]
    assert "\n" not in found[named]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "//example.org/x",
        "ftp://example.org",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://:80/",
        "http://user@example.org",
        "http://user:secret@example.org",
        "http://@example.org",
        "http://example.org/a b",
        "http://example.org/\r\nHost: other",
        "http://example.org\\@other.example",
        "http://exämple.org",
        "http://[::1",
        "http://example.org:99999",
        "http://example.org:port",
        "http://example.org/" + "a" * 2_048,
    ],
)
def test_a_url_that_cannot_be_called_safely_is_rejected(url: str) -> None:
    """Only http and https URLs with a host, without credentials or ambiguous characters, are accepted."""
    assert list(faults({"type": "report", "target": {"kind": "http", "url": url}})) == ["target.url"]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/hook", "https://[::1]:8443/", "HTTPS://example.org", "http://a.b/c%20d?e=f&g#h"]
)
def test_ordinary_urls_are_stored_unchanged(url: str) -> None:
    """A URL is stored as it was written."""
    assert spec(target={"kind": "http", "url": url}).target == HttpTarget(url)


PLACE = "eu-west-1:123456789012"
FUNCTION = f"arn:aws:lambda:{PLACE}:function:report"
QUEUE = f"arn:aws:sqs:{PLACE}:reports"
TOPIC = f"arn:aws:sns:{PLACE}:reports"
BUS = f"arn:aws:events:{PLACE}:event-bus/default"
MACHINE = f"arn:aws:states:{PLACE}:stateMachine:report"
TASK_DEFINITION = "arn:aws:ecs:eu-west-1:123456789012:task-definition/report:7"
CLUSTER = "arn:aws:ecs:eu-west-1:123456789012:cluster/reports"
JOB_DEFINITION = f"arn:aws:batch:{PLACE}:job-definition/report:7"
JOB_QUEUE = f"arn:aws:batch:{PLACE}:job-queue/reports"
PROJECT = f"arn:aws:codebuild:{PLACE}:project/report"
GLUE_JOB = f"arn:aws:glue:{PLACE}:job/report"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"kind": "lambda", "arn": FUNCTION}, AwsTarget(AwsService.LAMBDA, FUNCTION)),
        ({"kind": "lambda", "arn": FUNCTION, "mode": "async"}, AwsTarget(AwsService.LAMBDA, FUNCTION, waits=False)),
        ({"kind": "sqs", "arn": QUEUE}, AwsTarget(AwsService.SQS, QUEUE)),
        ({"kind": "sns", "arn": TOPIC}, AwsTarget(AwsService.SNS, TOPIC)),
        ({"kind": "eventbridge", "arn": BUS}, AwsTarget(AwsService.EVENTBRIDGE, BUS)),
        (
            {"kind": "eventbridge", "arn": BUS, "detail_type": "report due"},
            AwsTarget(AwsService.EVENTBRIDGE, BUS, detail_type="report due"),
        ),
        ({"kind": "step_functions", "arn": MACHINE}, AwsTarget(AwsService.STEP_FUNCTIONS, MACHINE)),
        (
            {"kind": "step_functions", "arn": MACHINE, "wait": True},
            AwsTarget(AwsService.STEP_FUNCTIONS, MACHINE, is_job=True),
        ),
        (
            {"kind": "ecs", "arn": TASK_DEFINITION, "cluster": CLUSTER, "container": "app", "parameters": {"a": 1}},
            AwsTarget(
                AwsService.ECS,
                TASK_DEFINITION,
                is_job=True,
                place=CLUSTER,
                container="app",
                parameters='{"a":1}',
            ),
        ),
        (
            {"kind": "lambda", "arn": f"{FUNCTION}:live", "mode": "durable"},
            AwsTarget(AwsService.LAMBDA, f"{FUNCTION}:live", is_job=True),
        ),
        (
            {"kind": "batch", "arn": JOB_DEFINITION, "queue": JOB_QUEUE, "parameters": {"a": 1}},
            AwsTarget(AwsService.BATCH, JOB_DEFINITION, is_job=True, place=JOB_QUEUE, parameters='{"a":1}'),
        ),
        (
            {"kind": "codebuild", "arn": PROJECT, "parameters": {}},
            AwsTarget(AwsService.CODEBUILD, PROJECT, is_job=True),
        ),
        (
            {"kind": "glue", "arn": GLUE_JOB, "parameters": {"a": 1}},
            AwsTarget(AwsService.GLUE, GLUE_JOB, is_job=True, parameters='{"a":1}'),
        ),
    ],
)
def test_an_aws_resource_is_a_target(target: dict[str, str], expected: AwsTarget) -> None:
    """Each kind of AWS resource has specific options, which are also in the response."""
    assert spec(target=target).target == expected
    answered = entry(task(target=expected))["target"]
    assert {name: value for name, value in answered.items() if value is not None} == {
        **({"mode": "sync"} if target["kind"] == "lambda" else {}),
        **({"wait": False} if target["kind"] == "step_functions" else {}),
        **target,
    }


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ({"kind": "lambda"}, "target.arn"),
        ({"kind": "lambda", "arn": QUEUE}, "target.arn"),
        ({"kind": "sqs", "arn": "https://sqs.eu-west-1.amazonaws.com/123456789012/reports"}, "target.arn"),
        ({"kind": "sqs", "arn": f"{QUEUE}\n"}, "target.arn"),
        ({"kind": "sns", "arn": f"arn:aws:sns:{PLACE}:{'a' * 256}"}, "target.arn"),
        ({"kind": "step_functions", "arn": f"{MACHINE}*"}, "target.arn"),
        ({"kind": "lambda", "arn": FUNCTION, "mode": "later"}, "target.mode"),
        ({"kind": "sqs", "arn": QUEUE, "mode": "async"}, "target.mode"),
        ({"kind": "eventbridge", "arn": BUS, "detail_type": "a\tb"}, "target.detail_type"),
        ({"kind": "eventbridge", "arn": BUS, "detail_type": "a" * 129}, "target.detail_type"),
        ({"kind": "eventbridge", "arn": BUS, "source": "aws.ec2"}, "target.source"),
        ({"kind": "kinesis", "arn": QUEUE}, "target.kind"),
        ({"kind": "lambda", "arn": FUNCTION, "mode": "durable"}, "target.mode"),
        ({"kind": "batch", "arn": JOB_DEFINITION}, "target.queue"),
        ({"kind": "batch", "arn": JOB_DEFINITION, "queue": JOB_DEFINITION}, "target.queue"),
        (
            {"kind": "batch", "arn": JOB_DEFINITION, "queue": JOB_QUEUE, "parameters": {"jobName": 1}},
            "target.parameters",
        ),
        ({"kind": "codebuild", "arn": PROJECT, "parameters": {"idempotencyToken": "a"}}, "target.parameters"),
        ({"kind": "glue", "arn": GLUE_JOB, "parameters": {"JobRunId": "a"}}, "target.parameters"),
    ],
)
def test_an_invalid_aws_target_is_rejected_with_its_part(target: dict[str, Any], field: str) -> None:
    """The fault names the target's invalid part, and options of other kinds of targets are unknown fields."""
    assert list(faults({"type": "report", "target": target})) == [field]


def test_two_due_times_are_rejected_with_both_fields() -> None:
    """A body with both `due_at` and `delay_seconds` is refused, and the error names both fields."""
    body = {"type": "report", "due_at": "2026-12-01T09:00:00Z", "delay_seconds": 0}
    assert list(faults(body)) == ["due_at", "delay_seconds"]
    with pytest.raises(FieldsInvalid):
        task_update(read(json.dumps({"due_at": "2026-12-01T09:00:00Z", "delay_seconds": 0})))


def test_a_payload_above_its_limit_is_rejected() -> None:
    """A payload of exactly the maximum size is accepted, and a payload one byte larger is refused with its field."""
    assert len(spec(payload="a" * (MAX_PAYLOAD_BYTES - 2)).payload) == MAX_PAYLOAD_BYTES
    assert list(faults({"type": "report", "payload": "a" * (MAX_PAYLOAD_BYTES - 1)})) == ["payload"]


@pytest.mark.parametrize("body", [[], "text", 5, None, True, [{"type": "report"}]])
def test_a_body_that_is_not_an_object_is_rejected_as_a_whole(body: object) -> None:
    """If a body is not an object, the error names the body."""
    assert list(faults(body)) == ["body"]


def test_an_update_contains_only_the_given_fields() -> None:
    """Fields that an update omits stay unchanged, even if they have defaults when a task is created."""
    update = task_update(read('{"priority": "low", "tags": {}, "delay_seconds": 1.5, "payload": null}'))
    assert update.merge == TaskFieldMerge({"priority": "low", "tags": {}})
    assert (update.due_at, update.delay, update.payload) == (None, 1_500, b"null")
    unset = task_update(read('{"name": ""}'))
    assert (unset.merge, unset.sets_due, unset.payload) == (TaskFieldMerge({"name": ""}), False, None)


@pytest.mark.parametrize(
    ("body", "named"), [("{}", "body"), ('{"type": "other"}', "type"), ('{"state": "paused"}', "state"), ("[]", "body")]
)
def test_an_update_without_fields_or_of_a_fixed_field_is_rejected(body: str, named: str) -> None:
    """An update without fields is refused, and so is an update of a field that can never change."""
    with pytest.raises(FieldsInvalid) as refusal:
        task_update(read(body))
    assert [fault.field for fault in refusal.value.faults] == [named]


def test_each_task_of_a_batch_is_validated_separately() -> None:
    """An error names the faulty task by its position in the batch, and the other tasks are accepted."""
    bad = '{"type": 5}, {"type": "b", "payload": {"x": NaN}}, 7, [NaN], {"type": "d", "body": 1}, {"type": "d", '
    bad += '"due_at": 1}'
    text = f'{{"tasks": [{{"type": "a"}}, {bad}, {{"type": "c"}}]}}'
    wanted = [item.wanted for item in batch_items(read(text))]
    assert [one.type for one in wanted if isinstance(one, TaskSpec)] == ["a", "c"]
    refused = [one.faults for one in wanted if isinstance(one, FieldsInvalid)]
    assert [fault.field for one in refused for fault in one] == [
        "tasks[1].type",
        "tasks[2].payload.x",
        "tasks[3]",
        "tasks[4][0]",
        "tasks[5].body",
        "tasks[6].due_at",
    ]


def test_errors_of_several_fields_have_the_same_names_in_a_batch() -> None:
    """Two due times or a payload that is too large cause the same error in a batch as for a single task."""
    tasks = [
        {"type": "a", "due_at": "2026-12-01T09:00:00Z", "delay_seconds": 0},
        {"type": "a", "payload": "a" * MAX_PAYLOAD_BYTES},
    ]
    refused = [item.wanted for item in batch_items(read(json.dumps({"tasks": tasks})))]
    named = [[fault.field for fault in one.faults] for one in refused if isinstance(one, FieldsInvalid)]
    assert named == [["tasks[0].due_at", "tasks[0].delay_seconds"], ["tasks[1].payload"]]


def test_every_bad_task_of_a_batch_is_found() -> None:
    """Each bad task in a batch is refused, however many faults precede the task."""
    bad = '{"type": "a", "payload": [' + ",".join(["NaN"] * 50) + "]}"
    items = batch_items(read('{"tasks": [' + ",".join([bad] * MAX_BATCH) + "]}"))
    assert [isinstance(item.wanted, FieldsInvalid) for item in items] == [True] * MAX_BATCH


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ('{"tasks": []}', "tasks"),
        ("{}", "tasks"),
        ('{"tasks": {"type": "a"}}', "tasks"),
        ('{"tasks": NaN}', "tasks"),
        ('{"tasks": [{"type": "a"}], "tasks": []}', "tasks"),
        ('{"tasks": [{"type": "a"}], "owner": "x"}', "owner"),
        ('{"tasks": [{"type": "a"}], "x": [1e400]}', "x[0]"),
        ('[{"type": "a"}]', "body"),
        ("[NaN]", "body[0]"),
        (json.dumps({"tasks": [{"type": "a"}] * (MAX_BATCH + 1)}), "tasks"),
    ],
)
def test_an_invalid_batch_is_rejected_as_a_whole(body: str, named: str) -> None:
    """A batch is an object with one to a hundred tasks and no other fields; anything else is refused."""
    with pytest.raises(FieldsInvalid) as refusal:
        batch_items(read(body))
    assert [fault.field for fault in refusal.value.faults] == [named]
