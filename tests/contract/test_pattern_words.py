"""Tests that the contract's errors describe allowed strings in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import pytest
from pydantic import Field

from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import validated, words_of
from duetime.contract.openapi.document import document
from duetime.contract.tasks.bodies import TaskCreate

if TYPE_CHECKING:
    from collections.abc import Iterator


def patterns(schema: object) -> Iterator[str]:
    """Return every pattern in a part of a JSON document."""
    if isinstance(schema, dict):
        if isinstance(pattern := schema.get("pattern"), str):
            yield pattern
        schema = list(schema.values())
    for each in schema if isinstance(schema, list) else []:
        yield from patterns(each)


PATTERNS = sorted({*patterns(json.loads(json.dumps(document())))})


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_of_the_openapi_document_has_a_description(pattern: str) -> None:
    """Every pattern in the OpenAPI document has a description, so that users never see a regular expression."""
    words = words_of(pattern)
    assert words is not None
    assert words.startswith("should be ")
    assert not set("^$[]{}\\*") & set(words)


def test_the_error_for_a_name_states_allowed_characters_and_length() -> None:
    """The error for an invalid name states the allowed characters and length, so that users can choose another name."""
    words = (
        "should be 1 to 64 characters: letters A to Z, digits and _ . : / -, and should begin with a letter, a digit"
    )
    with pytest.raises(FieldsInvalid) as refused:
        validated(TaskCreate, {"type": "bad type!"})
    assert refused.value.faults == (Fault("type", f"{words} or _", FaultCode.PATTERN),)


def test_the_error_for_an_arn_shows_an_example() -> None:
    """The example ARN in the error is for the service of the target's kind."""
    target = {"kind": "lambda", "arn": "arn:aws:sqs:eu-west-1:123456789012:q"}
    words = "should be the ARN of a Lambda function, such as arn:aws:lambda:eu-west-1:123456789012:function:report"
    with pytest.raises(FieldsInvalid) as refused:
        validated(TaskCreate, {"type": "x", "target": target})
    assert refused.value.faults == (Fault("target.arn", words, FaultCode.PATTERN),)


def test_an_unknown_pattern_has_no_description() -> None:
    """If a pattern is unknown, the error has no description of it, and still does not show the regular expression."""
    assert words_of("^x+$") is None

    class Strict(Body):
        text: Annotated[str, Field(pattern="^x+$")]

    with pytest.raises(FieldsInvalid) as refused:
        validated(Strict, {"text": "y"})
    (fault,) = refused.value.faults
    assert (fault.reason, fault.code) == ("does not have the expected form", FaultCode.PATTERN)
