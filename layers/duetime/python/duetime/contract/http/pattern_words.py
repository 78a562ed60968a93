"""Descriptions in words of the contract's patterns, for errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.http.etags import IF_MATCH_PATTERN, IF_NONE_MATCH_PATTERN
from duetime.contract.tasks.fields import LOCK_KEY_PATTERN, SCHEDULE_NAME_PATTERN, TAG_KEY_PATTERN, TYPE_PATTERN
from duetime.contract.tasks.http_request_fields import SECRET_NAME_PATTERN
from duetime.contract.tasks.target_fields import CONTAINER_PATTERN
from duetime.domain.limits import (
    MAX_IDEMPOTENCY_KEY_LENGTH,
    MAX_LOCK_KEY_LENGTH,
    MAX_NAME_LENGTH,
    MAX_SECRET_NAME_LENGTH,
    MAX_TAG_KEY_LENGTH,
    MAX_TYPE_LENGTH,
    MAX_UNIQUE_KEY_LENGTH,
)
from duetime.domain.tasks.arns import AwsService, arn_pattern, cluster_pattern, job_queue_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

DATE_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_NAMES = {
    TYPE_PATTERN: (MAX_TYPE_LENGTH, ". : / -"),
    TAG_KEY_PATTERN: (MAX_TAG_KEY_LENGTH, ". / -"),
    LOCK_KEY_PATTERN: (MAX_LOCK_KEY_LENGTH, ". : -"),
    SCHEDULE_NAME_PATTERN: (MAX_NAME_LENGTH, ". : -"),
    SECRET_NAME_PATTERN: (MAX_SECRET_NAME_LENGTH, ". / -"),
}
_RESOURCES = {
    AwsService.LAMBDA: "a Lambda function, such as arn:aws:lambda:eu-west-1:123456789012:function:report",
    AwsService.SQS: "an SQS queue, such as arn:aws:sqs:eu-west-1:123456789012:orders",
    AwsService.SNS: "an SNS topic, such as arn:aws:sns:eu-west-1:123456789012:orders",
    AwsService.EVENTBRIDGE: "an event bus, such as arn:aws:events:eu-west-1:123456789012:event-bus/orders",
    AwsService.STEP_FUNCTIONS: "a state machine, such as arn:aws:states:eu-west-1:123456789012:stateMachine:orders",
    AwsService.ECS: "a task definition, such as arn:aws:ecs:eu-west-1:123456789012:task-definition/orders:7",
    AwsService.BATCH: "a job definition, such as arn:aws:batch:eu-west-1:123456789012:job-definition/orders:7",
    AwsService.CODEBUILD: "a build project, such as arn:aws:codebuild:eu-west-1:123456789012:project/orders",
    AwsService.GLUE: "a Glue job, such as arn:aws:glue:eu-west-1:123456789012:job/orders",
}
_WORDS: Mapping[str, str] = {
    DATE_PATTERN: "should be a date such as 2026-12-25",
    **{
        pattern: f"should be 1 to {longest} characters: letters A to Z, digits and _ {others}, and should begin with a"
        " letter, a digit or _"
        for pattern, (longest, others) in _NAMES.items()
    },
    IF_MATCH_PATTERN: 'should be an entity tag in quotation marks, such as "3"',
    IF_NONE_MATCH_PATTERN: 'should be entity tags in quotation marks, such as "3", with commas between them',
    **{arn_pattern(service): f"should be the ARN of {resource}" for service, resource in _RESOURCES.items()},
    cluster_pattern(): "should be the ARN of a cluster, such as arn:aws:ecs:eu-west-1:123456789012:cluster/orders",
    job_queue_pattern(): "should be the ARN of a job queue, such as "
    "arn:aws:batch:eu-west-1:123456789012:job-queue/orders",
    # Patterns of modules that would slow down errors of others: a test compares them with the OpenAPI document.
    "^[0-7][0-9A-HJKMNP-TV-Z]{25}$": "should be the id of a task: 26 digits and capital letters",
    "^[A-Za-z0-9_-]{1,2048}$": "should be the id of a lease, as the lease was handed out",
    "^([01][0-9]|2[0-3]):[0-5][0-9]$": "should be a time of day such as 09:30",
    "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$|^24:00(:00)?$": "should be a time of day such as 09:30, or 24:00",
    "^https?://": "should be a URL that begins with https:// or http://",
    "^(https?://|arn:)": "should be a URL that begins with https:// or http://, or an ARN",
    "^[A-Za-z_][A-Za-z0-9_-]{0,63}$": "should be 1 to 64 characters: letters A to Z, digits, _ and -, and should begin"
    " with a letter or _",
    "^[0-9]{1,9}$": "should be a whole number of at most 9 digits",
    ":": "should be a key and a value with a colon between them",
    r"^\*$": "should be a single asterisk",
    **{
        rf"^[!-~]{{1,{longest}}}$": f"should be 1 to {longest} visible ASCII characters, without spaces"
        for longest in (MAX_IDEMPOTENCY_KEY_LENGTH, MAX_UNIQUE_KEY_LENGTH)
    },
    CONTAINER_PATTERN: "should be 1 to 255 characters: letters A to Z, digits, _ and -",
}


def words_of(pattern: str) -> str | None:
    """Describes the texts that match a pattern; `None` for an unknown pattern."""
    return _WORDS.get(pattern)
