"""Tests that the document has a description for each operation and field, and no unused description."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from duetime.contract.openapi.descriptions import MEANINGS, describe_fields
from duetime.contract.openapi.document import document

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT: dict[str, Any] = json.loads(json.dumps(document()))
SCHEMAS = DOCUMENT["components"]["schemas"]
PRIVATE = re.compile(
    r"\b(asked for|heed\w*|first design\w*|let (in|run)|looked at|sign of life|one's own|placed|goes on|gives? up)\b"
)
"""Words that are unusual in this field, or that earlier versions of the descriptions used."""


def operations() -> Iterator[dict[str, Any]]:
    """Return every operation, and every request by the scheduler."""
    for part in ("paths", "webhooks"):
        for methods in DOCUMENT[part].values():
            yield from methods.values()


def descriptions(value: object) -> Iterator[str]:
    """Return every text in a part of the document."""
    if isinstance(value, list):
        for each in value:
            yield from descriptions(each)
    elif isinstance(value, dict):
        yield from (value[name] for name in ("summary", "description") if isinstance(value.get(name), str))
        for name, each in value.items():
            if name not in ("example", "examples", "value"):
                yield from descriptions(each)


def test_every_field_is_described() -> None:
    """Each property of each model has a description, or refers to a model that has a description."""
    bare = [
        f"{model}.{name}"
        for model, schema in SCHEMAS.items()
        for name, field in schema.get("properties", {}).items()
        if not field.get("description") and "$ref" not in field
    ]
    assert bare == []
    assert [name for name, schema in SCHEMAS.items() if not schema.get("description")] == []


def test_descriptions_do_not_repeat_summaries() -> None:
    """An operation's description does not repeat its summary, except for actions whose summary is complete."""
    same = {one["operationId"] for one in operations() if one["description"] == one["summary"]}
    assert same <= {"updateTask", "deleteTask"}


def test_a_response_is_described_like_the_request_that_creates_it() -> None:
    """A field has the same description as in the request that creates the resource, in any order of declarations."""

    def said(requests: list[str]) -> str:
        fields = ("key", "scope", "seconds")
        texts = {"LockInput": "Its key.", "LockPatch": "Null removes it.", "OtherInput": "Of another."}
        schemas: dict[str, Any] = {
            name: {"properties": {field: {"description": text} for field in fields}} for name, text in texts.items()
        }
        schemas["Lock"] = {"properties": {field: {} for field in fields}}
        describe_fields(schemas, requests)
        return str(schemas["Lock"]["properties"]["key"]["description"])

    names = ["LockInput", "LockPatch", "OtherInput"]
    assert [said(names), said(names[::-1])] == ["Its key.", "Its key."]


def test_each_description_by_name_is_used() -> None:
    """Each description that is registered by a field's name is used, so none is left over from a renamed field."""
    used = {
        name
        for schema in SCHEMAS.values()
        for name, field in schema.get("properties", {}).items()
        if field.get("description") == MEANINGS.get(name)
    }
    assert set(MEANINGS) - used == set()


def test_texts_are_written_for_users() -> None:
    """No text uses words that only the authors know."""
    parts = [DOCUMENT[name] for name in ("info", "tags", "paths", "webhooks", "components")]
    texts = set(descriptions(parts))
    assert {text for text in texts if PRIVATE.search(text)} == set()
