"""Parses DynamoDB's responses like botocore, but reads each attribute value by its only type."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

from botocore.parsers import JSONParser, ResponseParserFactory

if TYPE_CHECKING:
    from botocore.model import MapShape
    from botocore.parsers import ResponseParser

_ATTRIBUTE_VALUE = "AttributeValue"
"""Name of the shape (Source: DynamoDB API Reference, AttributeValue)."""


class AttributeParserFactory(ResponseParserFactory):
    """Creates a session's parsers: the parser below for JSON services, and botocore's parsers for other services."""

    def create_parser(self, protocol_name: str) -> ResponseParser:
        """The parser for a protocol's responses."""
        parser = super().create_parser(protocol_name)
        return AttributeParser() if type(parser) is JSONParser else parser


class AttributeParser(JSONParser):
    """Parses JSON responses like botocore, but attribute values by their own type only."""

    def _handle_map(self, shape: MapShape, value: dict[str, Any]) -> dict[str, Any]:
        if shape.value.name != _ATTRIBUTE_VALUE:
            parsed: dict[str, Any] = super()._handle_map(shape, value)  # type: ignore[misc]  # not in the stubs
            return parsed
        return {name: _attribute(each) for name, each in value.items()}


def _attribute(value: dict[str, Any]) -> dict[str, Any]:
    """An attribute value as boto3 returns it: only bytes differ from their form in JSON."""
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
