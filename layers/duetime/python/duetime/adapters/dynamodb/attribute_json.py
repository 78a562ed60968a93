"""DynamoDB's JSON as botocore writes and parses it, but by each attribute value's one type instead of ten."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from botocore.parsers import JSONParser, ResponseParserFactory
from botocore.serialize import JSONSerializer

if TYPE_CHECKING:
    from botocore.model import MapShape, Shape
    from botocore.parsers import ResponseParser

_ATTRIBUTE_VALUE = "AttributeValue"
"""Name of the shape (Source: DynamoDB API Reference, AttributeValue)."""


class AttributeParserFactory(ResponseParserFactory):
    """Creates the parsers of a session's clients: this one for services with JSON, botocore's for the others."""

    def create_parser(self, protocol_name: str) -> ResponseParser:
        """The parser of a protocol's responses."""
        parser = super().create_parser(protocol_name)
        return AttributeParser() if type(parser) is JSONParser else parser


class AttributeParser(JSONParser):
    """Parses JSON responses like botocore, and attribute values by their own type only."""

    def _handle_map(self, shape: MapShape, value: dict[str, Any]) -> dict[str, Any]:
        if shape.value.name != _ATTRIBUTE_VALUE:
            parsed: dict[str, Any] = super()._handle_map(shape, value)  # type: ignore[misc]  # not in the stubs
            return parsed
        return {name: _attribute(each) for name, each in value.items()}


def _attribute(value: dict[str, Any]) -> dict[str, Any]:
    """An attribute value as boto3 returns it: only bytes differ from their JSON."""
    (kind,) = value
    match kind:
        case "B":
            return {kind: b64decode(value[kind])}
        case "BS":
            return {kind: [b64decode(each) for each in value[kind]]}
        case "M":
            return {kind: {name: _attribute(each) for name, each in value[kind].items()}}
        case "L":
            return {kind: [_attribute(each) for each in value[kind]]}
        case _:
            return value


class AttributeSerializer(JSONSerializer):
    """Writes JSON requests like botocore, and attribute values by their own type only."""

    def _serialize(self, serialized: dict[str | None, Any], value: Any, shape: Shape, key: str | None = None) -> None:  # noqa: ANN401 - any parameter
        if shape.name == _ATTRIBUTE_VALUE:
            serialized[key] = _written(value)
        else:
            super()._serialize(serialized, value, shape, key)  # type: ignore[misc]  # not in the stubs


def use_serializer(client: Any) -> None:  # noqa: ANN401 - the serializer is not in its type
    """Let a client that does not validate its parameters write its requests with this serializer."""
    # botocore has no component for it, as it has for parsers.
    if type(getattr(client, "_serializer", None)) is JSONSerializer:
        client._serializer = AttributeSerializer()  # noqa: SLF001 - see above


def _written(value: dict[str, Any]) -> dict[str, Any]:
    """An attribute value in JSON: only bytes differ from what boto3 is given."""
    (kind,) = value
    match kind:
        case "B":
            return {kind: b64encode(value[kind]).decode()}
        case "BS":
            return {kind: [b64encode(each).decode() for each in value[kind]]}
        case "M":
            return {kind: {name: _written(each) for name, each in value[kind].items()}}
        case "L":
            return {kind: [_written(each) for each in value[kind]]}
        case _:
            return value
