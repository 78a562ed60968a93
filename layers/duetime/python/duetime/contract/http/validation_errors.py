"""Bodies as models, and pydantic's errors as faults: the same names of places, in plain words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from duetime.contract.http.json_paths import path_of
from duetime.contract.http.pattern_words import words_of
from duetime.contract.http.request_errors import MOST_FAULTS, Fault, FieldsInvalid
from duetime.contract.http.request_json import reject_invalid_values
from duetime.domain.tasks.arns import AwsService

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

    from duetime.contract.http.request_json import Document

M = TypeVar("M", bound=BaseModel)

_TARGET_KINDS = ("handler", "http", "pull", "topology", *(service.value for service in AwsService))
_PLAIN = {
    "missing": "is required",
    "extra_forbidden": "is not a known field",
    "model_type": "should be an object",
    "model_attributes_type": "should be an object",
    "dict_type": "should be an object",
    "union_tag_not_found": "is required",
    "union_tag_invalid": f"should be one of {', '.join(map(repr, _TARGET_KINDS))}",
}
_SUBJECT = re.compile(r"^(Input|String|Dictionary|List|Value error,|Value) ")


def validated(model: type[M], value: object, place: tuple[str | int, ...] = ()) -> M:
    """Parsed JSON as a model.

    Args:
        model: what it should be.
        value: the parsed JSON.
        place: the steps that lead to it in the request's body.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # Neither the input nor an address of documentation belongs into an answer.
        found = error.errors(include_url=False, include_input=False)
        raise FieldsInvalid(_fault(place, details) for details in found[:MOST_FAULTS]) from None


def read_body(model: type[M], document: Document) -> M:
    """A body as its model has it.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
    """
    reject_invalid_values(document.value, document)
    return validated(model, document.value)


def _fault(place: tuple[str | int, ...], details: ErrorDetails) -> Fault:
    pattern = details.get("ctx", {}).get("pattern")
    reason = _PLAIN.get(details["type"]) or (pattern and words_of(pattern)) or _SUBJECT.sub("", details["msg"])
    steps = [*place, *_steps(details["loc"])]
    if details["type"].startswith("union_tag_"):
        steps.append("kind")
    return Fault(path_of(steps), reason)


def _steps(location: tuple[str | int, ...]) -> Iterable[str | int]:
    """The steps of a place as a client sees it: pydantic adds the kind of a union, and marks a key."""
    for index, step in enumerate(location):
        is_kind = index > 0 and location[index - 1] == "target" and step in _TARGET_KINDS
        if step != "[key]" and not is_kind:
            yield step
