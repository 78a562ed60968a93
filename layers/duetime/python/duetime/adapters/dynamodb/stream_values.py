"""Records of the table's stream, as Lambda hands them out: there, bytes are Base64 texts.

Source: AWS Lambda Developer Guide, "Using Lambda with DynamoDB".
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema

if TYPE_CHECKING:
    from duetime.adapters.dynamodb.attribute_values import Value


def with_bytes(value: Value) -> Value:
    """An attribute value as boto3 hands it out: bytes are bytes."""
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {"B": b64decode(content, validate=True)}
        case "L":
            return {"L": [with_bytes(each) for each in content]}
        case "M":
            return {"M": {name: with_bytes(each) for name, each in content.items()}}
    return value


def name_of(record: Any) -> str:  # noqa: ANN401 - it may be anything
    """What a person can find it by: never the images, which hold what users wrote."""
    try:
        keys = record["dynamodb"]["Keys"]
        return f"{record['eventID']} {keys[schema.PARTITION_KEY]['S']} {keys[schema.SORT_KEY]['S']}"[:300]
    except Exception:  # noqa: BLE001 - as above
        return "without a key"
