"""The kinds of field that say who is told of a failure or of a late start."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from duetime.contract.tasks.target_fields import http_url
from duetime.domain.limits import MAX_LATE_SECONDS, MAX_URL_LENGTH, MIN_LATE_SECONDS
from duetime.domain.tasks.arns import AwsService, arn_pattern, service_of
from duetime.domain.tasks.notices import is_notice_arn


def _notice_address(address: str) -> str:
    if not address.startswith("arn:"):
        return http_url(address)
    if not is_notice_arn(address) or not re.match(arn_pattern(service_of(address) or AwsService.SNS), address):
        raise ValueError("should be a URL, or the ARN of an SNS topic that is not FIFO, or of an event bus")
    return address


NoticeAddress = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_URL_LENGTH,
        description="A URL that notices are posted to, signed, or the ARN of an SNS topic or event bus that the "
        "deployment's settings let tasks call.",
        examples=["https://example.org/alerts", "arn:aws:sns:eu-west-1:123456789012:alerts"],
        json_schema_extra={"pattern": "^(https?://|arn:)"},
    ),
    AfterValidator(_notice_address),
]
NotifiesFailure = Annotated[bool, Field(description="Whether it is told that the task has failed for good.")]
LateSeconds = Annotated[
    int,
    Field(
        ge=MIN_LATE_SECONDS,
        le=MAX_LATE_SECONDS,
        description="How many seconds after its due time it is told that the task has not started; null for never.",
    ),
]
