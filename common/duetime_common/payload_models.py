"""Converts payloads and results from and to pydantic models and dataclasses.

Both are parsed by pydantic, which is imported on first use.
"""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

M = TypeVar("M")
_ADAPTERS: dict[type, Any] = {}


def check_model(model: object) -> None:
    """Check the value of a handler's keyword `payload`.

    Raises:
        TypeError: The value is not a pydantic model, a dataclass or `bytes`.
    """
    if not (isinstance(model, type) and (_is_model(model) or _is_bytes(model))):
        raise TypeError(f"payload takes a class that is a pydantic model or a dataclass, or bytes, not {model!r}")


def from_json(model: type[M], document: object) -> M:
    """Parse JSON into an instance of a class.

    Raises:
        ValueError: The JSON is invalid. The message names the fields, and quotes no values.
    """
    if _is_bytes(model):
        if not isinstance(document, model):
            raise ValueError("not bytes, but JSON")
        return document
    if isinstance(document, bytes):
        raise ValueError(f"not a valid {model.__name__}, but bytes")  # noqa: TRY004 - as for any invalid payload
    from pydantic import ValidationError  # noqa: PLC0415 - slow to import, and most handlers have no model

    try:
        return _adapter(model).validate_json(json.dumps(document))
    except ValidationError as error:
        # This is not `from error`, because the message of `error` quotes values.
        raise ValueError(_faults(model, error)) from None


def to_json(model: type[M], value: M) -> Any:  # noqa: ANN401 - any JSON
    """Encode a value as JSON that the class can parse. Bytes are unchanged.

    Raises:
        ValueError: The JSON cannot be parsed again. The message names the fields, and quotes no values.
    """
    if _is_bytes(model):
        return from_json(model, value)
    document = _adapter(model).dump_python(value, mode="json", warnings=False)
    from_json(model, document)
    return document


def schema_of(model: type) -> str | None:
    """The JSON Schema of a class as JSON text; `None` for classes without a schema, such as `bytes`."""
    if _is_bytes(model):
        return None
    from pydantic.errors import PydanticInvalidForJsonSchema  # noqa: PLC0415 - as above

    try:
        return json.dumps(_adapter(model).json_schema(), ensure_ascii=False)
    except PydanticInvalidForJsonSchema:
        return None


def plain(value: object) -> object:
    """Convert a pydantic model or a dataclass to JSON; any other value is unchanged.

    Raises:
        ValueError: Two keys would be equal in JSON.
    """
    model = type(value)
    if _is_model(model):
        # If two keys are equal in JSON, such as 1 and "1", the text contains both keys, but the document would
        # contain only the last key.
        json.loads(_adapter(model).dump_json(value), object_pairs_hook=_checked)
        return _adapter(model).dump_python(value, mode="json")
    return value


def _is_model(model: type) -> bool:
    return hasattr(model, "model_dump") or is_dataclass(model)


def _is_bytes(model: type) -> bool:
    return issubclass(model, bytes)


def _checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears more than once")
    return found


def _adapter(model: type[M]) -> TypeAdapter[M]:
    if model not in _ADAPTERS:
        from pydantic import TypeAdapter  # noqa: PLC0415 - as above

        _ADAPTERS[model] = TypeAdapter(model)
    adapter: TypeAdapter[M] = _ADAPTERS[model]
    return adapter


def _faults(model: type[M], error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    listed = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'it'}: {fault['msg']}" for fault in faults)
    return f"not a valid {model.__name__}: {listed}"
