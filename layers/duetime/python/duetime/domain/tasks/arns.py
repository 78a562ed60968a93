"""ARNs of AWS resources: the service of an ARN, and which resources tasks may call.

`arn:partition:service:region:account:resource` (Source: IAM User Guide, "Amazon Resource Names").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from duetime.domain.wildcards import translated

EVENT_SOURCE = "duetime"
"""Source of all events that tasks put on event buses: no task can impersonate another system, or create tasks by
events."""
_SEGMENTS = 6


class AwsService(StrEnum):
    """The services whose resources a task may call; the values are the kinds of target."""

    LAMBDA = "lambda"
    SQS = "sqs"
    SNS = "sns"
    EVENTBRIDGE = "eventbridge"
    STEP_FUNCTIONS = "step_functions"
    ECS = "ecs"
    BATCH = "batch"
    CODEBUILD = "codebuild"
    GLUE = "glue"


_SEGMENT_OF = {
    AwsService.LAMBDA: "lambda",
    AwsService.SQS: "sqs",
    AwsService.SNS: "sns",
    AwsService.EVENTBRIDGE: "events",
    AwsService.STEP_FUNCTIONS: "states",
    AwsService.ECS: "ecs",
    AwsService.BATCH: "batch",
    AwsService.CODEBUILD: "codebuild",
    AwsService.GLUE: "glue",
}
_SERVICE_OF = {segment: service for service, segment in _SEGMENT_OF.items()}
_RESOURCES = {
    AwsService.LAMBDA: r"function:[A-Za-z0-9_-]{1,64}(:(\$LATEST|[A-Za-z0-9_-]{1,128}))?",
    AwsService.SQS: r"[A-Za-z0-9_-]{1,80}(\.fifo)?",
    AwsService.SNS: r"[A-Za-z0-9_-]{1,256}(\.fifo)?",
    AwsService.EVENTBRIDGE: r"event-bus/[A-Za-z0-9_./-]{1,256}",
    AwsService.STEP_FUNCTIONS: r"stateMachine:[A-Za-z0-9_-]{1,80}(:[A-Za-z0-9_.-]{1,80})?",
    AwsService.ECS: r"task-definition/[A-Za-z0-9_-]{1,255}(:[0-9]{1,9})?",
    AwsService.BATCH: r"job-definition/[A-Za-z0-9_-]{1,128}(:[0-9]{1,9})?",
    AwsService.CODEBUILD: r"project/[A-Za-z0-9_-]{2,255}",
    AwsService.GLUE: r"job/[A-Za-z0-9_.-]{1,255}",
}
"""Source: the services' API references, for names; functions and state machines may have a version or alias, task
definitions and job definitions a revision."""
_CLUSTER = r"cluster/[A-Za-z0-9_-]{1,255}"
_JOB_QUEUE = r"job-queue/[A-Za-z0-9_-]{1,128}"
_QUALIFIED = re.compile(r"[^:]*(:[^:]*){5}:[^:]+:[^:]+")
_ROLE = re.compile(r"arn:aws(-[a-z]+)*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/*?-]{1,128}")


def arn_pattern(service: AwsService) -> str:
    """Regular expression for the ARNs of a service's resources, in a form that JSON Schema also supports."""
    return _pattern(service, _RESOURCES[service])


def cluster_pattern() -> str:
    """Regular expression for the ARNs of ECS clusters."""
    return _pattern(AwsService.ECS, _CLUSTER)


def job_queue_pattern() -> str:
    """Regular expression for the ARNs of Batch job queues."""
    return _pattern(AwsService.BATCH, _JOB_QUEUE)


def is_qualified(arn: str) -> bool:
    """Whether the ARN of a function includes a version or an alias."""
    return _QUALIFIED.fullmatch(arn) is not None


def is_role(arn: str) -> bool:
    """Whether an ARN, or a pattern of ARNs, is of a role that containers of tasks may have."""
    return _ROLE.fullmatch(arn) is not None


def _pattern(service: AwsService, resource: str) -> str:
    place = rf"arn:aws(-[a-z]+)*:{_SEGMENT_OF[service]}:[a-z]{{2}}(-[a-z]+)+-[0-9]:[0-9]{{12}}"
    return f"^{place}:{resource}$"


def service_of(arn: str) -> AwsService | None:
    """The service of an ARN, or of a pattern of ARNs; `None` if tasks may not call its resources."""
    segments = arn.split(":", _SEGMENTS - 1)
    return _SERVICE_OF.get(segments[2]) if len(segments) == _SEGMENTS else None


@dataclass(frozen=True, slots=True)
class ArnPatterns:
    """The resources that tasks may call.

    Attributes:
        patterns: ARNs in which `*` stands for any characters and `?` for one, as in IAM policies.
    """

    patterns: tuple[str, ...] = ()

    def allow(self, arn: str) -> bool:
        """Whether a pattern matches. A wildcard does not match across segments, the last of which is the resource."""
        return any(_matcher(pattern).fullmatch(arn) for pattern in self.patterns)


@cache
def _matcher(pattern: str) -> re.Pattern[str]:
    *places, resource = pattern.split(":", _SEGMENTS - 1)
    return re.compile(":".join([*(translated(place, "[^:]") for place in places), translated(resource)]))
