"""The Lambda functions over a separate AWS for each test, called with the same events as by Lambda."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from duetime import composition
from duetime.adapters.aws_clients import Clients
from duetime.composition import Platform, composed
from duetime.composition.core import CoreServices
from duetime.composition.tasks import TaskServices
from duetime.domain.tasks.creation import Order
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from duetime_testing.simulation.virtual_time import SeededRandom
from tests import grants
from tests.adapters.clouds import Cloud
from tests.clocks import StandingClock
from tests.fakes.session import FakeLogs, FakeSession

if TYPE_CHECKING:
    import boto3

    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Priority
    from duetime.domain.tasks.type_defaults import TaskSpec

OWNER = "me"


@dataclass
class EndedProcess:
    """A process that only records the request to end."""

    ended: bool = False

    def end(self) -> None:
        """Record the call."""
        self.ended = True


@dataclass(frozen=True)
class LambdaContext:
    """The part of Lambda's context object that the functions use."""

    function_name: str = "function"
    memory_limit_in_mb: int = 256
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:function"
    aws_request_id: str = field(default_factory=lambda: str(uuid4()))


class Stack:
    """A table, a bucket, the queues, and the functions that use them."""

    def __init__(
        self,
        cloud: Cloud,
        session: boto3.Session | None,
        settings: dict[str, str] | None = None,
        clock: StandingClock | None = None,
    ) -> None:
        self.cloud = cloud
        if session is not None and not isinstance(session, FakeSession):
            grants.watch(session)
        self.queues = cloud.queues()
        self.clock = clock or StandingClock()
        self.process = EndedProcess()
        self.secrets: dict[str, str] = {}
        self.logs = FakeLogs()
        self.environ: dict[str, str] = {
            Variable.TABLE: cloud.table(),
            Variable.BUCKET: cloud.bucket(),
            Variable.AUTHENTICATION: "none",
            **{variable: self.queues[priority] for priority, variable in QUEUE_VARIABLES.items()},
            Variable.SHARDS: "4",
            Variable.WATCH_URL: "wss://live.example.org/live",
            **(settings or {}),
        }
        composition.use(
            Platform(
                environ=self.environ,
                clock=self.clock,
                random_source=SeededRandom(),
                clients=Clients(session),
                process=self.process,
            )
        )
        # Every process reads the number of shards before its first task.
        composed(CoreServices).shards.count()

    @classmethod
    def faked(cls, settings: dict[str, str] | None = None, secrets: dict[str, str] | None = None) -> Stack:
        """Make a stack over AWS fakes that use the same clock as the functions."""
        clock = StandingClock()
        session: Any = FakeSession(clock.now)
        session.secrets.values.update(secrets or {})
        cloud = Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))
        stack = cls(cloud, session, settings, clock)
        stack.secrets, stack.logs = session.secrets.values, session.logs
        return stack

    def create(self, spec: TaskSpec) -> Task:
        """Create a task for the default owner."""
        return composed(TaskServices).creator.create(OWNER, Order(spec))

    def get(self, task: Task) -> Task:
        """Read the task's current record."""
        return composed(TaskServices).reader.get(OWNER, task.id)

    def call(self, function: str, event: dict[str, Any]) -> Any:  # noqa: ANN401 - any response
        """Invoke a function with an event."""
        with grants.acting(function):
            return importlib.import_module(f"functions.{function}.handler").handler(event, LambdaContext())

    def receive(self, priority: Priority) -> dict[str, Any]:
        """The event that Lambda makes from the messages that are ready (Source: AWS Lambda Developer Guide, SQS)."""
        url = self.queues[priority]
        answer = self.cloud.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=900, MessageSystemAttributeNames=["All"]
        )
        name = url.rpartition("/")[2]
        return {
            "Records": [
                {
                    "messageId": message["MessageId"],
                    "receiptHandle": message["ReceiptHandle"],
                    "body": message["Body"],
                    "attributes": message["Attributes"],
                    "messageAttributes": {},
                    "md5OfBody": message["MD5OfBody"],
                    "eventSource": "aws:sqs",
                    "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{name}",
                    "awsRegion": "us-east-1",
                }
                for message in answer.get("Messages", [])
            ]
        }

    def work(self, priority: Priority) -> list[str]:
        """Let the worker process a batch, delete messages as Lambda would, and return the ids of kept messages."""
        return self.run(priority, self.receive(priority))

    def run(self, priority: Priority, event: dict[str, Any]) -> list[str]:
        """Let the worker process a received batch, delete messages as Lambda would, and return the ids of the rest."""
        answer = self.call("worker", event)
        kept = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        done = [record for record in event["Records"] if record["messageId"] not in kept]
        if done:
            self.cloud.sqs.delete_message_batch(
                QueueUrl=self.queues[priority],
                Entries=[{"Id": record["messageId"], "ReceiptHandle": record["receiptHandle"]} for record in done],
            )
        return kept

    def waiting(self, priority: Priority) -> dict[str, int]:
        """The numbers of ready, delayed and received messages in a queue."""
        attributes = self.cloud.sqs.get_queue_attributes(QueueUrl=self.queues[priority], AttributeNames=["All"])[
            "Attributes"
        ]
        return {
            "ready": int(attributes["ApproximateNumberOfMessages"]),
            "delayed": int(attributes["ApproximateNumberOfMessagesDelayed"]),
            "received": int(attributes["ApproximateNumberOfMessagesNotVisible"]),
        }
