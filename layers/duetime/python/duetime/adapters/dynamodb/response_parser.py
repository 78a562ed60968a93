"""Parses DynamoDB's responses as botocore does, which looks for ten types in each attribute's value; it has one."""

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
    """Makes the parsers of a session's clients: this one for services that speak JSON, botocore's for the others."""

    def create_parser(self, protocol_name: str) -> ResponseParser:
        """The parser of a protocol's responses."""
        parser = super().create_parser(protocol_name)
        return AttributeParser() if type(parser) is JSONParser else parser


class AttributeParser(JSONParser):
    """Parses responses in JSON as botocore does, and the attributes of items by their own type only."""

    def _handle_map(self, shape: MapShape, value: dict[str, Any]) -> dict[str, Any]:
        if shape.value.name != _ATTRIBUTE_VALUE:
            parsed: dict[str, Any] = super()._handle_map(shape, value)  # type: ignore[misc]  # not in the stubs
            return parsed
        return {name: _attribute(each) for name, each in value.items()}


def _attribute(value: dict[str, Any]) -> dict[str, Any]:
    """An attribute's value as boto3 gives it: only bytes are written otherwise in JSON."""
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
