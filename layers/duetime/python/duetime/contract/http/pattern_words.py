"""What a regular expression of the contract allows, in words: for errors, which people read."""

from __future__ import annotations

import re

_DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_NAME = re.compile(r"\^\[A-Za-z0-9_\]\[A-Za-z0-9_([^\]]+)\]\{0,([0-9]+)\}\$")
_ARN = re.compile(r"\^arn:aws[^:]*:([a-z-]+):")
_RESOURCES = {
    "lambda": "a Lambda function, such as arn:aws:lambda:eu-west-1:123456789012:function:report",
    "sqs": "an SQS queue, such as arn:aws:sqs:eu-west-1:123456789012:orders",
    "sns": "an SNS topic, such as arn:aws:sns:eu-west-1:123456789012:orders",
    "events": "an event bus, such as arn:aws:events:eu-west-1:123456789012:event-bus/orders",
    "states": "a state machine, such as arn:aws:states:eu-west-1:123456789012:stateMachine:orders",
}


def words_of(pattern: str) -> str | None:
    """What a text should be that has to match a pattern; nothing if the pattern is not known."""
    if pattern == _DATE:
        return "should be a date such as 2026-12-25"
    if name := _NAME.fullmatch(pattern):
        others, more = name.groups()
        return (
            f"should be 1 to {int(more) + 1} characters: letters A to Z, digits and _ {' '.join(others)},"
            " and should begin with a letter, a digit or _"
        )
    if (arn := _ARN.match(pattern)) and arn[1] in _RESOURCES:
        return f"should be the ARN of {_RESOURCES[arn[1]]}"
    return None
