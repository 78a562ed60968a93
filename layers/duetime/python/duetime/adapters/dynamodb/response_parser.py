"""Parses DynamoDB's responses like botocore, but reads each attribute value only as the type that the value has."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

from botocore.parsers import JSONParser, ResponseParserFactory

if TYPE_CHECKING:
    from botocore.model import MapShape
    from botocore.parsers import ResponseParser

_ATTRIBUTE_VALUE = "AttributeValue"
"""Name of botocore's shape for attribute values (Source: DynamoDB API Reference, AttributeValue)."""


class AttributeParserFactory(ResponseParserFactory):
    """Creates a session's parsers: `AttributeParser` for JSON services, and botocore's parsers for other services."""

    def create_parser(self, protocol_name: str) -> ResponseParser:
        """The parser for a protocol's responses."""
        parser = super().create_parser(protocol_name)
        return AttributeParser() if type(parser) is JSONParser else parser


class AttributeParser(JSONParser):
    """Parses JSON responses like botocore, but does not try each possible type for an attribute value."""

    def _handle_map(self, shape: MapShape, value: dict[str, Any]) -> dict[str, Any]:
        if shape.value.name != _ATTRIBUTE_VALUE:
            parsed: dict[str, Any] = super()._handle_map(shape, value)  # type: ignore[misc]  # not in the stubs
            return parsed
        return {name: _attribute(each) for name, each in value.items()}


def _attribute(value: dict[str, Any]) -> dict[str, Any]:
    """An attribute value as boto3 returns it. Only bytes differ from their form in JSON."""
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
