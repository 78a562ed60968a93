"""Sets up the AWS implementations for adapter tests, with clients, a new table, a bucket and queues."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from duetime.adapters.runtime.process import SystemClock, Threads
from duetime.domain.tasks.task_options import Priority
from duetime_testing.fakes.task_table import new_table

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

    from duetime.domain.tasks.task import Task

EXECUTOR = Threads(SystemClock())


@dataclass(frozen=True, slots=True)
class Cloud:
    """Clients of one AWS implementation, and the resources that the stores need."""

    dynamodb: DynamoDBClient
    s3: S3Client
    sqs: SQSClient

    def table(self) -> str:
        """Create a table."""
        return new_table(self.dynamodb)

    def bucket(self) -> str:
        """Create a bucket."""
        name = f"contents-{uuid4().hex[:12]}"
        self.s3.create_bucket(Bucket=name)
        return name

    def queues(self) -> dict[Priority, str]:
        """Create a queue for each priority."""
        mark = uuid4().hex[:12]
        return {
            priority: self.sqs.create_queue(QueueName=f"{priority.value}-{mark}")["QueueUrl"] for priority in Priority
        }


class SilentTelemetry:
    """Telemetry that discards everything."""

    def count(self, name: str, number: int = 1, **dimension: str) -> None:
        """Discard a count."""

    def measure(self, name: str, milliseconds: int, **dimension: str) -> None:
        """Discard a duration."""

    def note(self, text: str, **facts: object) -> None:
        """Discard a note."""

    def attempt(self, task: Task) -> AbstractContextManager[None]:  # noqa: ARG002 - no lines are kept
        """Ignore the attempt."""
        return nullcontext()


SILENT = SilentTelemetry()
