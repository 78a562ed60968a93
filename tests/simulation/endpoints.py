"""The world outside a simulated account: HTTP endpoints that tasks call, receivers of outcomes, and AWS resources."""

from __future__ import annotations

import json
from dataclasses import dataclass

URL = "https://worker.example.org/do"
BATCH_URL = "https://worker.example.org/batch"
"""The endpoint that receives requests with several tasks."""
ROWS_URL = "https://api.example.org/rows"
"""An API that is independent of duetime."""
CONFLICT = 409
"""A status that this API sometimes returns, and that tasks count as success."""
RETRY_AFTER = 30
"""The `Retry-After` of the endpoint while it is down, in seconds."""
CALLBACK_URL = "https://hooks.example.org/ended"
NOTICE_URL = "https://hooks.example.org/notices"
JOBS = "arn:aws:states:us-east-1:123456789012:stateMachine:jobs"
"""The state machine whose executions tasks wait for."""
TASK_DEFINITION = "arn:aws:ecs:us-east-1:123456789012:task-definition/report:7"
CLUSTER = "arn:aws:ecs:us-east-1:123456789012:cluster/reports"
JOB_DEFINITION = "arn:aws:batch:us-east-1:123456789012:job-definition/report:7"
JOB_QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/reports"
PROJECT = "arn:aws:codebuild:us-east-1:123456789012:project/report"
GLUE_JOB = "arn:aws:glue:us-east-1:123456789012:job/report"
DURABLE_FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:report:live"
JOB_TARGETS = {
    "batch": {"kind": "batch", "arn": JOB_DEFINITION, "queue": JOB_QUEUE},
    "codebuild": {"kind": "codebuild", "arn": PROJECT},
    "glue": {"kind": "glue", "arn": GLUE_JOB},
    "lambda": {"kind": "lambda", "arn": DURABLE_FUNCTION, "mode": "durable"},
}
"""Targets that run jobs in AWS services, by the service's boto3 name; an account has a fake of each service."""
JOB_RESOURCES = (JOB_DEFINITION, JOB_QUEUE, PROJECT, GLUE_JOB, DURABLE_FUNCTION)
SINK = "arn:aws:sqs:us-east-1:123456789012:sink"
"""A queue to which tasks send messages."""
SINK_URL = "https://sqs.us-east-1.amazonaws.com/123456789012/sink"


@dataclass(frozen=True)
class Asked:
    """What an endpoint knows about its attempt. Unlike a handler, an endpoint cannot be asked to stop.

    Attributes:
        requested_action: always `None`, because only handlers are informed of users' requests.
    """

    task_id: str
    fence: int
    requested_action: None = None


def message_owner(body: str) -> str:
    """The task that sent a message to the sink queue."""
    return str(json.loads(body)["task_id"])
