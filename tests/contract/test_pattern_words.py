"""Errors of the contract say in words what a text may be."""

from __future__ import annotations

import pytest

from duetime.contract.http.pattern_words import words_of
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.validation_errors import validated
from duetime.contract.schedules.calendars import DATE_PATTERN
from duetime.contract.tasks.bodies import TaskCreate
from duetime.contract.tasks.fields import LOCK_KEY_PATTERN, SCHEDULE_NAME_PATTERN, TAG_KEY_PATTERN, TYPE_PATTERN
from duetime.domain.tasks.arns import AwsService, arn_pattern

NAMES = [TYPE_PATTERN, TAG_KEY_PATTERN, LOCK_KEY_PATTERN, SCHEDULE_NAME_PATTERN]
ARNS = [arn_pattern(service) for service in AwsService]


@pytest.mark.parametrize("pattern", [DATE_PATTERN, *NAMES, *ARNS])
def test_every_pattern_of_the_contract_has_words(pattern: str) -> None:
    """A user is never shown a regular expression."""
    words = words_of(pattern)
    assert words is not None
    assert words.startswith("should be ")
    assert not set("^$[]{}\\*") & set(words)


def test_a_name_says_its_characters_and_its_length() -> None:
    """Everything that is needed to choose another one."""
    words = (
        "should be 1 to 64 characters: letters A to Z, digits and _ . : / -, and should begin with a letter, a digit"
    )
    with pytest.raises(FieldsInvalid) as refused:
        validated(TaskCreate, {"type": "bad type!"})
    assert refused.value.faults == (Fault("type", f"{words} or _", FaultCode.PATTERN),)


def test_an_arn_is_explained_by_an_example() -> None:
    """With the service that the target's kind says."""
    target = {"kind": "lambda", "arn": "arn:aws:sqs:eu-west-1:123456789012:q"}
    words = "should be the ARN of a Lambda function, such as arn:aws:lambda:eu-west-1:123456789012:function:report"
    with pytest.raises(FieldsInvalid) as refused:
        validated(TaskCreate, {"type": "x", "target": target})
    assert refused.value.faults == (Fault("target.arn", words, FaultCode.PATTERN),)


def test_an_unknown_pattern_has_no_words() -> None:
    """The library's own message stays, rather than a wrong one."""
    assert words_of("^x+$") is None
