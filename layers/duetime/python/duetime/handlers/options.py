"""Validates default task options in handler decorators as in task creations, and describes handlers for the API."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from duetime.handlers.errors import OptionInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.handlers.task_handlers import Registered

_IN_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME"
"""Variable that Lambda sets in functions, where options are not checked again, because they were checked when the
layers were built (Source: Lambda Developer Guide)."""


def checked_options(task_type: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check the given options, and return them as JSON. An option that is `None` is not given.

    Raises:
        OptionInvalid: an option is unknown or has a wrong value.
    """
    options = {name: value for name, value in given.items() if value is not None}
    if not options or _IN_LAMBDA in os.environ:
        return options
    # The REST contract's pydantic models are imported here, because functions that run handlers should not import them.
    from duetime.contract.http.request_errors import FieldsInvalid  # noqa: PLC0415 - see the line above
    from duetime.contract.task_types import defaults_of_value  # noqa: PLC0415 - see the line above

    try:
        return defaults_of_value(options)
    except FieldsInvalid as refusal:
        reasons = "; ".join(f"{fault.field!r} {fault.reason}" for fault in refusal.faults)
        raise OptionInvalid(task_type, reasons) from None


def description(registered: Registered) -> dict[str, Any]:
    """A handler's description for the API, as JSON with the fields of `HandlerDescription`."""
    from duetime_common.payload_models import schema_of  # noqa: PLC0415 - not in functions

    model = registered.payload_model
    return {
        "phases": sorted(registered.phases, key=("prepare", "run", "clean", "rollback").index),
        "defaults": dict(registered.options),
        "payload_schema": None if model is None else schema_of(model),
    }
