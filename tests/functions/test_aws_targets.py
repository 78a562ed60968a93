from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import AwsService, AwsTarget
from duetime.domain.tasks.task_options import Priority, RetryPolicy
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from tests.functions.stack import Stack

ARN = "arn:aws:sqs:us-east-1:123456789012:"


def test_a_due_task_is_sent_to_its_queue(stack: Stack) -> None:
    """The worker sends an SQS message with the task's facts, and the message id becomes the task's result."""
    stack.environ[Variable.AWS_TARGETS] = f"{ARN}reports-*"
    name = f"reports-{uuid4().hex}"
    url = stack.cloud.sqs.create_queue(QueueName=name)["QueueUrl"]
    task = stack.create(TaskSpec("report", b'{"n":1}', target=AwsTarget(AwsService.SQS, ARN + name)))
    assert stack.work(Priority.NORMAL) == []
    (message,) = stack.cloud.sqs.receive_message(QueueUrl=url)["Messages"]
    body = json.loads(message["Body"])
    assert (body["task_id"], body["fence"], body["payload"]) == (task.id.text, 1, {"n": 1})
    done = stack.get(task)
    assert done.state is State.SUCCEEDED
    assert done.result is not None
    assert json.loads(done.result.data or b"") == {"message_id": message["MessageId"]}


def test_a_task_whose_queue_does_not_exist_fails_without_a_retry(stack: Stack) -> None:
    """A task whose target queue does not exist fails without a retry, because a retry would fail in the same way."""
    stack.environ[Variable.AWS_TARGETS] = f"{ARN}reports-*"
    target = AwsTarget(AwsService.SQS, f"{ARN}reports-gone")
    task = stack.create(TaskSpec("report", target=target, retry=RetryPolicy(max_attempts=5)))
    assert stack.work(Priority.NORMAL) == []
    failed = stack.get(task)
    assert (failed.state, failed.attempt) == (State.FAILED, 1)
    assert failed.error is not None
    assert "NonExistentQueue" in failed.error.type
