"""Validates bodies against models, and converts pydantic's errors into faults with the API's paths and wording.

A model may list known names that it rejects, as sets in class variables: `READ_ONLY` for fields that only responses
have, and `FIXED` for fields that cannot change after creation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from duetime.contract.http.etags import IF_MATCH_PATTERN, IF_NONE_MATCH_PATTERN
from duetime.contract.http.request_errors import MOST_FAULTS, Fault, FaultCode, FieldsInvalid, ParametersInvalid
from duetime.contract.http.request_json import path_of, reject_invalid_values
from duetime.contract.http.timestamps import RANGE_REVERSED
from duetime.contract.tasks.fields import (
    GROUP_ID_PATTERN,
    LOCK_KEY_PATTERN,
    OWNER_PATTERN,
    OWNER_RULE,
    PROGRESS_MESSAGE_PATTERN,
    SCHEDULE_NAME_PATTERN,
    TAG_KEY_PATTERN,
    TYPE_PATTERN,
)
from duetime.contract.tasks.target_fields import CONTAINER_PATTERN, SECRET_NAME_PATTERN
from duetime.domain.limits import (
    MAX_ENCRYPTED_TEXT_LENGTH,
    MAX_GROUP_ID_LENGTH,
    MAX_IDEMPOTENCY_KEY_LENGTH,
    MAX_LOCK_KEY_LENGTH,
    MAX_NAME_LENGTH,
    MAX_PROGRESS_MESSAGE_LENGTH,
    MAX_SECRET_NAME_LENGTH,
    MAX_STEP_NAME_LENGTH,
    MAX_TAG_KEY_LENGTH,
    MAX_TYPE_LENGTH,
    MAX_UNIQUE_KEY_LENGTH,
    MAX_UPLOAD_ID_LENGTH,
)
from duetime.domain.links import TOKEN_PATTERN
from duetime.domain.tasks.targets import AwsService, arn_pattern, cluster_pattern, job_queue_pattern
from duetime.domain.uploads import UPLOAD_ID_PATTERN
from duetime_common.payload_codecs import CONTENT_TYPE_PATTERN
from duetime_common.steps import STEP_NAME_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pydantic_core import ErrorDetails

    from duetime.contract.http.request_json import Document


M = TypeVar("M", bound=BaseModel)
Place = tuple[str | int, ...]

_TARGET_KINDS = (
    "handler",
    "http",
    "pull",
    "topology",
    "approval",
    "wait_for_event",
    *(service.value for service in AwsService),
)
_PLAIN = {
    "missing": "is required",
    "string_pattern_mismatch": "does not have the expected form",
    "union_tag_not_found": "is required",
    "union_tag_invalid": f"should be one of {', '.join(map(repr, _TARGET_KINDS))}",
}
_EXPECTED = {
    **dict.fromkeys(("string_type", "string_unicode"), "text"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "an object"),
}
_CODES = {
    **dict.fromkeys(_EXPECTED, FaultCode.WRONG_TYPE),
    **dict.fromkeys(("missing", "union_tag_not_found"), FaultCode.REQUIRED),
    **dict.fromkeys(("string_too_long", "too_long"), FaultCode.TOO_LONG),
    **dict.fromkeys(("string_too_short", "too_short"), FaultCode.TOO_SHORT),
    **dict.fromkeys(
        ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of", "finite_number"),
        FaultCode.OUT_OF_RANGE,
    ),
    "string_pattern_mismatch": FaultCode.PATTERN,
    RANGE_REVERSED: FaultCode.CONFLICT,
    **dict.fromkeys(("literal_error", "enum", "union_tag_invalid"), FaultCode.NOT_ALLOWED),
}
_SUBJECT = re.compile(r"^(Input|String|Dictionary|List|Value error,|Value) | after validation")
_MOST_EXACT = 2**53
"""Floating-point numbers represent all whole numbers up to this number exactly."""


def validated(model: type[M], value: object, place: Place = ()) -> M:
    """Validates parsed JSON against a model.

    Args:
        model: the expected model.
        value: the parsed JSON.
        place: path of the value in the request's body, as steps.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    try:
        # Unlike `model_validate`, this call does not spend time on checking its own arguments.
        return model.__pydantic_validator__.validate_python(value)  # type: ignore[no-any-return]
    except ValidationError as error:
        # Responses contain only the type of the input, and no URLs from pydantic's documentation.
        found = error.errors(include_url=False)
    whole = [each["loc"] for each in found if each["type"] == "int_type" and _is_whole(each["input"])]
    if whole:
        for location in whole:
            value = _with_integer(value, location)
        return validated(model, value, place)
    raise FieldsInvalid(_fault(model, place, details) for details in found[:MOST_FAULTS])


def read_body(model: type[M], document: Document) -> M:
    """Validates a body against its model.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    reject_invalid_values(document.value, document)
    return validated(model, document.value)


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer() and abs(value) <= _MOST_EXACT


def _with_integer(value: Any, location: Sequence[str | int]) -> Any:  # noqa: ANN401 - any JSON
    """A copy in which floats without a fraction are integers, because 30.0 equals 30 in JSON Schema."""
    if not location:
        return int(value) if isinstance(value, float) else value
    step, *rest = location
    if isinstance(value, dict) and step in value:
        return {**value, step: _with_integer(value[step], rest)}
    if isinstance(value, list) and isinstance(step, int):
        return [_with_integer(each, rest) if index == step else each for index, each in enumerate(value)]
    # Pydantic adds steps that are not in the value, such as the kind of a target.
    return _with_integer(value, rest)


def _fault(model: type[BaseModel], place: Place, details: ErrorDetails) -> Fault:
    steps = [*place, *_steps(details["loc"])]
    kind = details["type"]
    if kind == "extra_forbidden":
        return _unknown(_models_at(model, details["loc"][:-1]), str(details["loc"][-1]), path_of(steps))
    if kind.startswith("union_tag_"):
        steps.append("kind")
    return Fault(path_of(steps), _reason(details), _CODES.get(kind, FaultCode.INVALID))


def _reason(details: ErrorDetails) -> str:
    if (expected := _EXPECTED.get(details["type"])) is not None:
        given = _type_of(details["input"])
        is_number = given == "a number" and expected.endswith("number")
        return f"should be {expected}" if is_number else f"should be {expected}, not {given}"
    pattern = details.get("ctx", {}).get("pattern")
    return (pattern and words_of(pattern)) or _PLAIN.get(details["type"]) or _SUBJECT.sub("", details["msg"])


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "true or false", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")


def _steps(location: Place) -> Iterable[str | int]:
    """The steps of a path as clients see it, without the kinds of unions and the marks of keys that pydantic adds."""
    for index, step in enumerate(location):
        is_kind = index > 0 and location[index - 1] == "target" and step in _TARGET_KINDS
        if step != "[key]" and not is_kind:
            yield step


def _unknown(models: Sequence[type[BaseModel]], name: str, field: str) -> Fault:
    """The fault for a name that none of the possible models accepts."""
    if any(name in getattr(each, "READ_ONLY", ()) for each in models):
        return Fault(field, "is read-only: leave it out", FaultCode.READ_ONLY)
    if any(name in getattr(each, "FIXED", ()) for each in models):
        return Fault(field, "cannot be changed after creation: leave it out", FaultCode.CANNOT_CHANGE)
    # This module is imported only for misspelled names.
    from duetime.contract.http.suggestions import hint  # noqa: PLC0415 - see the line above

    known = {field.alias or key for each in models for key, field in each.model_fields.items()}
    return Fault(field, f"is not a known field{hint(name, known)}", FaultCode.UNKNOWN_FIELD)


def _models_at(model: type[BaseModel], location: Place) -> list[type[BaseModel]]:
    """The possible models of the object at a location; for a target, the model of its kind."""
    models = [model]
    for step in location:
        fields = [each.model_fields[step] for each in models if isinstance(step, str) and step in each.model_fields]
        if fields:
            models = [found for field in fields for found in _models_in(field.annotation)]
        elif isinstance(step, str):
            models = [each for each in models if step in _kinds_of(each)] or models
    return models


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _kinds_of(model: type[BaseModel]) -> tuple[object, ...]:
    kind = model.model_fields.get("kind")
    return () if kind is None else get_args(kind.annotation)


DATE_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_NAMES = {
    TYPE_PATTERN: (MAX_TYPE_LENGTH, ". : / -"),
    TAG_KEY_PATTERN: (MAX_TAG_KEY_LENGTH, ". / -"),
    LOCK_KEY_PATTERN: (MAX_LOCK_KEY_LENGTH, ". : -"),
    SCHEDULE_NAME_PATTERN: (MAX_NAME_LENGTH, ". : -"),
    GROUP_ID_PATTERN: (MAX_GROUP_ID_LENGTH, ". : -"),
    SECRET_NAME_PATTERN: (MAX_SECRET_NAME_LENGTH, ". / -"),
    STEP_NAME_PATTERN: (MAX_STEP_NAME_LENGTH, ". -"),
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
    f"^{OWNER_PATTERN}$": OWNER_RULE,
    UPLOAD_ID_PATTERN: f"should be 1 to {MAX_UPLOAD_ID_LENGTH} characters: letters A to Z, digits, _ and -",
    CONTENT_TYPE_PATTERN: "should be a content type such as image/png",
    DATE_PATTERN: "should be a date such as 2026-12-25",
    **{
        pattern: f"should be 1 to {longest} characters: letters A to Z, digits and _ {others}, and should begin with a"
        " letter, a digit or _"
        for pattern, (longest, others) in _NAMES.items()
    },
    PROGRESS_MESSAGE_PATTERN: f"should be at most {MAX_PROGRESS_MESSAGE_LENGTH} characters on one line, or an encrypted"
    f" text of at most {MAX_ENCRYPTED_TEXT_LENGTH}",
    IF_MATCH_PATTERN: 'should be an entity tag in quotation marks, such as "3"',
    IF_NONE_MATCH_PATTERN: 'should be entity tags in quotation marks, such as "3", with commas between them',
    **{arn_pattern(service): f"should be the ARN of {resource}" for service, resource in _RESOURCES.items()},
    cluster_pattern(): "should be the ARN of a cluster, such as arn:aws:ecs:eu-west-1:123456789012:cluster/orders",
    job_queue_pattern(): "should be the ARN of a job queue, such as "
    "arn:aws:batch:eu-west-1:123456789012:job-queue/orders",
    # These patterns are copies, because their modules would be slow to import. A test compares the copies with the
    # OpenAPI document.
    "^[0-7][0-9A-HJKMNP-TV-Z]{25}$": "should be the id of a task: 26 digits and capital letters",
    "^[A-Za-z0-9_-]{1,2048}$": "should be the id of a lease, as the lease was handed out",
    "^([01][0-9]|2[0-3]):[0-5][0-9]$": "should be a time of day such as 09:30",
    "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$|^24:00(:00)?$": "should be a time of day such as 09:30, or 24:00",
    "^https?://": "should be a URL that begins with https:// or http://",
    "^(https?://|arn:)": "should be a URL that begins with https:// or http://, or an ARN",
    "^[A-Za-z_][A-Za-z0-9_-]{0,63}$": "should be 1 to 64 characters: letters A to Z, digits, _ and -, and should begin"
    " with a letter or _",
    "^[0-9a-f]{20}$": "should be the id of an API key or a link: 20 digits and letters a to f",
    f"^{TOKEN_PATTERN}$": "should be the token of a link",
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
    """Describes the strings that match a pattern; `None` for an unknown pattern."""
    return _WORDS.get(pattern)


def matching_parameter(text: str, pattern: str, name: str = "name") -> str:
    """Checks a path parameter against its pattern.

    Raises:
        ParametersInvalid: the parameter does not match.
    """
    if re.fullmatch(pattern, text) is None:
        raise ParametersInvalid.of(name, words_of(pattern) or "is not valid", FaultCode.PATTERN)
    return text
