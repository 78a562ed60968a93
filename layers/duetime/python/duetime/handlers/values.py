"""Values of handlers as JSON: results, checkpoints and the results of steps."""

from __future__ import annotations

from duetime.domain.json_values import json_of
from duetime_common.binary_payloads import json_of_bytes


def encoded(value: object) -> bytes:
    """Encode a value as JSON text in UTF-8; a dataclass or pydantic model becomes an object, as do bytes.

    Raises:
        ValueRefused: it is not stored.
    """
    if isinstance(value, bytes):
        value = json_of_bytes(value)
    if value is None or isinstance(value, str | int | float | bool | dict | list):
        return json_of(value)
    # Imported only for values of a class.
    from duetime_common.payload_models import plain  # noqa: PLC0415 - see the line above

    return json_of(plain(value))
