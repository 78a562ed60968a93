"""Tests how adapters handle AWS failures, with responses from botocore's stubber."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from duetime.adapters import aws_clients
from duetime.adapters.content_store import SplitContentStore
from duetime.adapters.dynamodb.batches import ITEMS_A_REQUEST, insertion
from duetime.adapters.dynamodb.keys import write_with_key
from duetime.adapters.dynamodb.task_items import item_of, key_of
from duetime.adapters.dynamodb.task_store import DynamoTaskStore
from duetime.adapters.runtime.process import SystemClock, Threads
from duetime.adapters.sqs import SqsQueues
from duetime.domain.dispatch.enqueue_plan import Entry, Message
from duetime.domain.errors import ContentExpired, Unavailable
from duetime.domain.tasks.creation import KeyTaking
from duetime.domain.tasks.task import Content, ContentPlace, after_record
from duetime.domain.tasks.task_options import Priority
from duetime.ports.queues import Delivery, Outgoing
from duetime.ports.tasks import Insertions
from tests.adapters.clouds import EXECUTOR, SILENT, Cloud
from tests.adapters.examples import HOME, OWNER, numbered, task
from tests.clocks import NOW
from tests.minutes import items_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from duetime.domain.tasks.task import Task

_QUERY = [
    "Limit",
    "TableName",
    "KeyConditionExpression",
    "ProjectionExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
    "ConsistentRead",
]
URLS = {priority: f"https://sqs.us-east-1.amazonaws.com/1/{priority.value}" for priority in Priority}


def _batches(tasks: list[Task]) -> list[list[Task]]:
    return [tasks[first : first + ITEMS_A_REQUEST] for first in range(0, len(tasks), ITEMS_A_REQUEST)]


class OneByOne(Threads):
    """Makes requests one after the other, so that their order is known."""

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Call the function for each item."""
        return [work(each) for each in items]


@pytest.fixture
def cloud(moto_clients: Cloud) -> Cloud:
    """Return clients without any AWS implementation, so that each request must be stubbed."""
    return moto_clients


@pytest.fixture
def dynamodb(cloud: Cloud) -> Iterator[Stubber]:
    """Stub DynamoDB's responses, all of which must be used."""
    with Stubber(cloud.dynamodb) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def sqs(cloud: Cloud) -> Iterator[Stubber]:
    """Stub SQS's responses, all of which must be used."""
    with Stubber(cloud.sqs) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ProvisionedThroughputExceededException", 400),
        ("ThrottlingException", 400),
        ("RequestLimitExceeded", 400),
        ("TransactionConflictException", 400),
        ("KmsThrottled", 400),
        ("InternalServerError", 500),
        ("AnythingElse", 503),
    ],
)
def test_throttling_and_server_errors_are_unavailable(cloud: Cloud, dynamodb: Stubber, code: str, status: int) -> None:
    """A temporary AWS failure is raised as `Unavailable`, with AWS's message."""
    dynamodb.add_client_error("get_item", code, "slow down", http_status_code=status)
    with pytest.raises(Unavailable, match="slow down"):
        DynamoTaskStore(cloud.dynamodb, "t", EXECUTOR, SILENT).read(numbered(1))


@pytest.mark.parametrize("reason", ["ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_transaction_that_is_throttled_is_unavailable(cloud: Cloud, dynamodb: Stubber, reason: str) -> None:
    """A transaction is `Unavailable`, and not a lost race, if any of its writes was throttled."""
    reasons = {"CancellationReasons": [{"Code": "ConditionalCheckFailed"}, {"Code": reason}]}
    dynamodb.add_client_error(
        "transact_write_items", "TransactionCanceledException", "cancelled", modeled_fields=reasons
    )
    put = {"Put": {"TableName": "t", "Item": item_of(task())}}
    with pytest.raises(Unavailable, match="cancelled"):
        write_with_key(cloud.dynamodb, "t", put, KeyTaking(OWNER, "key", numbered(1), 0, after=None), "nonce")


@pytest.mark.parametrize("code", ["ValidationException", "AccessDeniedException", "ResourceNotFoundException"])
def test_permanent_aws_errors_are_not_unavailable(cloud: Cloud, dynamodb: Stubber, code: str) -> None:
    """A permanent failure is raised as the original AWS error."""
    dynamodb.add_client_error("get_item", code)
    with pytest.raises(ClientError):
        DynamoTaskStore(cloud.dynamodb, "t", EXECUTOR, SILENT).read(numbered(1))


def test_an_unreachable_service_is_unavailable() -> None:
    """A refused connection is raised as `Unavailable` for every kind of request."""
    settings: dict[str, Any] = {
        "endpoint_url": "http://127.0.0.1:9",
        "region_name": "us-east-1",
        "aws_access_key_id": "none",
        "aws_secret_access_key": "none",
        "config": aws_clients.CONFIG.merge(Config(retries={"total_max_attempts": 1, "mode": "standard"})),
    }
    dynamodb, s3 = boto3.client("dynamodb", **settings), boto3.client("s3", **settings)
    with pytest.raises(Unavailable):
        DynamoTaskStore(dynamodb, "t", EXECUTOR, SILENT).create(task())
    with pytest.raises(Unavailable):
        SplitContentStore(dynamodb, "t", s3, "b").fetch(numbered(1), Content(ContentPlace.OBJECT, "payload"))
    queues = SqsQueues(boto3.client("sqs", **settings), {Priority.LOW: "http://127.0.0.1:9/1/low"}, EXECUTOR)
    with pytest.raises(Unavailable):
        queues.depth(Priority.LOW)


def test_content_of_a_missing_object_is_reported_as_lost(cloud: Cloud) -> None:
    """Content is reported as lost only if S3 reports that the object does not exist."""
    store = SplitContentStore(cloud.dynamodb, "t", cloud.s3, "b")
    with Stubber(cloud.s3) as s3:
        s3.add_client_error("get_object", "NoSuchKey", http_status_code=404)
        with pytest.raises(ContentExpired):
            store.fetch(numbered(1), Content(ContentPlace.OBJECT, "payload"))


@pytest.mark.parametrize("operation", ["get_object", "copy_object", "put_object_tagging"])
def test_content_of_an_inaccessible_object_is_not_reported_as_lost(cloud: Cloud, operation: str) -> None:
    """An access error is raised, so the task does not continue as if its content were lost."""
    store = SplitContentStore(cloud.dynamodb, "t", cloud.s3, "b")
    content = Content(ContentPlace.OBJECT, "payload")
    does: dict[str, Callable[[], object]] = {
        "get_object": lambda: store.fetch(numbered(1), content),
        "copy_object": lambda: store.expire(numbered(1), content, after_record(NOW)),
        "put_object_tagging": lambda: store.retain(numbered(1), content),
    }
    with Stubber(cloud.s3) as s3:
        s3.add_client_error(operation, "AccessDenied", http_status_code=403)
        with pytest.raises(ClientError, match="AccessDenied"):
            does[operation]()


def test_a_failing_s3_is_unavailable(cloud: Cloud) -> None:
    """Content is not reported as lost if S3 is slow or fails."""
    store = SplitContentStore(cloud.dynamodb, "t", cloud.s3, "b")
    with Stubber(cloud.s3) as s3:
        s3.add_client_error("get_object", "SlowDown", http_status_code=503)
        with pytest.raises(Unavailable):
            store.fetch(numbered(1), Content(ContentPlace.OBJECT, "payload"))


def test_unprocessed_keys_are_requested_again(cloud: Cloud, dynamodb: Stubber) -> None:
    """A batch with unprocessed keys is read completely."""
    tasks = [task(id=numbered(number)) for number in range(3)]
    keys = [key_of(each.id) for each in tasks]
    answers = [([tasks[0]], keys[1:]), ([tasks[1]], keys[2:]), ([tasks[2]], [])]
    asked = keys
    for found, left in answers:
        unprocessed = {"t": {"Keys": left}} if left else {}
        answer = {"Responses": {"t": [item_of(each) for each in found]}, "UnprocessedKeys": unprocessed}
        request = {"t": {"Keys": asked, "ConsistentRead": False}}
        dynamodb.add_response("batch_get_item", answer, {"RequestItems": request})
        asked = left
    read = DynamoTaskStore(cloud.dynamodb, "t", EXECUTOR, SILENT).read_many([each.id for each in tasks])
    assert list(read.values()) == tasks


def test_a_batch_returns_the_records_that_it_wrote(cloud: Cloud, dynamodb: Stubber) -> None:
    """Records that exist, were throttled or were in a request without a response are not reported as written."""
    tasks = [task(id=numbered(number)) for number in range(2 * ITEMS_A_REQUEST + 1)]
    throttled = {"Error": {"Code": "ThrottlingError", "Message": "slow down"}}
    duplicate = {"Error": {"Code": "DuplicateItem", "Message": "exists"}}
    batches = [[insertion("t", item_of(each)) for each in batch] for batch in _batches(tasks)]
    for statements, response in zip(batches, (duplicate, throttled), strict=False):
        responses: list[Any] = [*[{}] * (ITEMS_A_REQUEST - 1), response]
        dynamodb.add_response("batch_execute_statement", {"Responses": responses}, {"Statements": statements})
    dynamodb.add_client_error(
        "batch_execute_statement",
        "InternalServerError",
        http_status_code=500,
        expected_params={"Statements": batches[2]},
    )
    store = DynamoTaskStore(cloud.dynamodb, "t", OneByOne(SystemClock()), SILENT)
    written = [*tasks[: ITEMS_A_REQUEST - 1], *tasks[ITEMS_A_REQUEST:-2]]
    assert store.insert(tasks) == Insertions(written, [tasks[ITEMS_A_REQUEST - 1]])


def test_a_batch_sends_each_record_once(cloud: Cloud, dynamodb: Stubber) -> None:
    """If two records have the same id, only one is sent, because DynamoDB accepts no duplicates in a request."""
    twice = [task(id=numbered(1), nonce=nonce) for nonce in ("first", "second")]
    statements = [insertion("t", item_of(twice[1]))]
    dynamodb.add_response("batch_execute_statement", {"Responses": [{}]}, {"Statements": statements})
    assert DynamoTaskStore(cloud.dynamodb, "t", EXECUTOR, SILENT).insert(twice).written == twice[1:]


def test_a_batch_without_progress_is_unavailable(cloud: Cloud, dynamodb: Stubber) -> None:
    """If a response leaves every key unprocessed, the read fails instead of looping forever."""
    answer = {"Responses": {}, "UnprocessedKeys": {"t": {"Keys": [key_of(numbered(1))]}}}
    dynamodb.add_response("batch_get_item", answer)
    with pytest.raises(Unavailable):
        DynamoTaskStore(cloud.dynamodb, "t", EXECUTOR, SILENT).read_many([numbered(1)])


def test_a_minute_is_read_page_by_page(cloud: Cloud, dynamodb: Stubber) -> None:
    """Each request for a page continues where the previous page ended."""
    tasks = [task(id=numbered(number)) for number in range(2)]
    for page, start in ((tasks[0], None), (tasks[1], key_of(tasks[0].id))):
        expected = dict.fromkeys(_QUERY, ANY) | ({"ExclusiveStartKey": start} if start else {})
        last = {"LastEvaluatedKey": key_of(page.id)} if start is None else {}
        dynamodb.add_response("query", {"Items": [item_of(page)], **last}, expected)
    entries = items_of(DynamoTaskStore(cloud.dynamodb, "t", EXECUTOR, SILENT), tasks[0].id.minute, 3)
    assert entries == [Entry.of(each) for each in tasks]


def outgoing(number: int) -> Outgoing:
    """Return a message to send."""
    return Outgoing(Message(numbered(number), 0, HOME, Priority.NORMAL, OWNER), number)


def test_entries_not_acknowledged_by_sqs_are_returned(cloud: Cloud, sqs: Stubber) -> None:
    """Entries that SQS does not acknowledge are returned."""
    taken = [{"Id": each, "MessageId": "m", "MD5OfMessageBody": "5"} for each in ("0", "2")]
    failed = [{"Id": "1", "SenderFault": False, "Code": "InternalError"}]
    sqs.add_response("send_message_batch", {"Successful": taken, "Failed": failed})
    sent = [outgoing(number) for number in range(3)]
    assert SqsQueues(cloud.sqs, URLS, EXECUTOR).send(sent) == [sent[1]]


def test_a_failed_request_returns_all_of_its_entries(cloud: Cloud, sqs: Stubber) -> None:
    """A request that fails completely raises nothing and returns all of its ten messages."""
    taken = [{"Id": str(each), "MessageId": "m", "MD5OfMessageBody": "5"} for each in range(10)]
    sqs.add_response("send_message_batch", {"Successful": taken, "Failed": []}, {"QueueUrl": ANY, "Entries": ANY})
    sqs.add_client_error("send_message_batch", "AWS.SimpleQueueService.NonExistentQueue")
    sent = [outgoing(number) for number in range(20)]
    # The stubber responds in the order of requests, and two threads can send in either order.
    assert SqsQueues(cloud.sqs, URLS, EXECUTOR).send(sent) in (sent[:10], sent[10:])


def delivery(number: int) -> Delivery:
    """Return a received message."""
    return Delivery(outgoing(number).message, f"receipt {number}", str(number))


@pytest.mark.parametrize("code", ["ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidParameterValue"])
def test_a_message_that_is_not_in_flight_is_ignored(cloud: Cloud, sqs: Stubber, code: str) -> None:
    """An entry that fails through the sender's fault is ignored, because its message was deleted or received again."""
    failed = [{"Id": "1", "SenderFault": True, "Code": code}]
    sqs.add_response("change_message_visibility_batch", {"Successful": [{"Id": "0"}], "Failed": failed})
    SqsQueues(cloud.sqs, URLS, EXECUTOR).come_back([delivery(0), delivery(1)], [5, 5])


def test_a_visibility_timeout_stays_within_the_limits_of_sqs(cloud: Cloud, sqs: Stubber) -> None:
    """A visibility timeout is at least zero and ends at most twelve hours after the message's receipt."""
    entries = [
        {"Id": str(number), "ReceiptHandle": f"receipt {number}", "VisibilityTimeout": seconds}
        for number, seconds in enumerate((0, 30, 42_300))
    ]
    expected = {"QueueUrl": URLS[Priority.NORMAL], "Entries": entries}
    sqs.add_response("change_message_visibility_batch", {"Successful": [], "Failed": []}, expected)
    SqsQueues(cloud.sqs, URLS, EXECUTOR).come_back([delivery(number) for number in range(3)], [-5, 30, 90_000])


def test_a_visibility_that_sqs_failed_to_set_is_unavailable(cloud: Cloud, sqs: Stubber) -> None:
    """An entry that fails through SQS's fault raises `Unavailable`."""
    failed = [{"Id": "0", "SenderFault": False, "Code": "InternalError"}]
    sqs.add_response("change_message_visibility_batch", {"Successful": [], "Failed": failed})
    with pytest.raises(Unavailable, match="InternalError"):
        SqsQueues(cloud.sqs, URLS, EXECUTOR).come_back([delivery(0)], [5])
