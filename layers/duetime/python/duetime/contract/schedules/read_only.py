"""Fields that answers show and no request sets: they are refused as what they are, not as unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from duetime.contract.http.request_errors import Fault, FieldsInvalid
from duetime.contract.http.validation_errors import read_body
from duetime.contract.schedules.bodies import ScheduleCreate
from duetime.contract.schedules.responses import ScheduleResponse

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document

M = TypeVar("M", bound=BaseModel)

READ_ONLY = frozenset(ScheduleResponse.__annotations__) - frozenset(ScheduleCreate.model_fields)
"""What an answer shows of a schedule and its owner cannot set."""
_REASONS = {**dict.fromkeys(READ_ONLY, "is read-only"), "name": "cannot be changed"}


def read_writable(model: type[M], document: Document) -> M:
    """A body about a schedule as its model has it.

    Raises:
        FieldsInvalid: some fields cannot be accepted; those that an answer shows are refused as read-only.
    """
    try:
        return read_body(model, document)
    except FieldsInvalid as refusal:
        known = {name: why for name, why in _REASONS.items() if name not in model.model_fields}
        raise FieldsInvalid(Fault(each.field, known.get(each.field, each.reason)) for each in refusal.faults) from None
