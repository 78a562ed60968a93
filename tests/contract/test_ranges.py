"""Tests that a range whose end is before its start is refused as a probable mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pytest
from pydantic import BaseModel

from duetime.contract.http.request_errors import FaultCode, FieldsInvalid
from duetime.contract.http.validation_errors import validated
from duetime.contract.openapi.document import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

EARLY, LATE = "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"
CHECKED_BY_THE_DOMAIN = ("BackfillCreate",)
"""Models whose range the domain checks, because backfills are not created only by requests.

`tests/functions/api/test_ranges.py` tests their requests.
"""


def models_of(annotation: object) -> Iterator[type[BaseModel]]:
    """Return the models in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_of(argument)


def request_models() -> set[type[BaseModel]]:
    """Return every model of a query or of a part of a body."""
    found: set[type[BaseModel]] = set()
    waiting = [model for each in OPERATIONS for model in (each.query, each.body) if model is not None]
    while waiting:
        model = waiting.pop()
        if model not in found:
            found.add(model)
            waiting += [each for field in model.model_fields.values() for each in models_of(field.annotation)]
    return found


RANGES = sorted(
    (model.__name__, model, name.removesuffix("_after"))
    for model in request_models()
    for name in model.model_fields
    if name.endswith("_after") and model.__name__ not in CHECKED_BY_THE_DOMAIN
)


def faults(model: type[BaseModel], given: dict[str, Any]) -> dict[str, tuple[str, FaultCode]]:
    """Return the reason and code of each refused field."""
    try:
        validated(model, given)
    except FieldsInvalid as refused:
        return {fault.field: (fault.reason, fault.code) for fault in refused.faults}
    return {}


def test_every_start_of_a_range_has_its_end() -> None:
    """Each field `X_after` has a field `X_before`, which is declared after it."""
    assert len(RANGES) >= 10
    for name, model, subject in RANGES:
        fields = list(model.model_fields)
        assert fields.index(f"{subject}_after") < fields.index(f"{subject}_before"), name


@pytest.mark.parametrize(("model", "subject"), [each[1:] for each in RANGES])
@pytest.mark.parametrize("end", [EARLY, LATE])
def test_an_empty_range_is_rejected_with_the_name_of_its_end(model: type[BaseModel], subject: str, end: str) -> None:
    """In every query and body with both bounds, an end that is not after the start is refused by name."""
    given: dict[str, Any] = {f"{subject}_after": LATE, f"{subject}_before": end}
    assert faults(model, given)[f"{subject}_before"] == (f"should be after {subject}_after", FaultCode.CONFLICT)


@pytest.mark.parametrize(("model", "subject"), [each[1:] for each in RANGES])
def test_a_range_in_order_or_with_one_bound_is_accepted(model: type[BaseModel], subject: str) -> None:
    """Two bounds in the right order are accepted, and so is a single bound."""
    both = {f"{subject}_after": EARLY, f"{subject}_before": LATE}
    for given in (both, *({key: value} for key, value in both.items())):
        assert not both.keys() & faults(model, given).keys()
