"""The contents of tasks are redacted by patterns."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.domain.redaction import Paths, Redaction, marker

GONE = marker()
PAYLOAD: dict[str, Any] = {
    "card": {"number": 1},
    "customer": {"email": "a", "name": "b"},
    "items": [{"card": 2, "price": 3}, {"price": 4}],
    "a/b": 5,
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("card", {**PAYLOAD, "card": GONE, "items": [{"card": GONE, "price": 3}, {"price": 4}]}),
        ("/card", {**PAYLOAD, "card": GONE}),
        ("/customer/email", {**PAYLOAD, "customer": {"email": GONE, "name": "b"}}),
        ("/customer/*", {**PAYLOAD, "customer": {"email": GONE, "name": GONE}}),
        ("/items/*/price", {**PAYLOAD, "items": [{"card": 2, "price": GONE}, {"price": GONE}]}),
        ("/items/1", {**PAYLOAD, "items": [PAYLOAD["items"][0], GONE]}),
        ("/a~1b", {**PAYLOAD, "a/b": GONE}),
        ("/card/number/x", PAYLOAD),
        ("*", GONE),
    ],
)
def test_a_name_matches_at_any_depth_and_a_pointer_from_the_root(path: str, expected: object) -> None:
    """A name matches at any depth, a pointer starts at the root, and `*` matches everything."""
    assert Paths.of([path]).removed_from(PAYLOAD) == expected


def test_a_value_without_fields_can_only_be_removed_entirely() -> None:
    """A value without fields can only be removed completely, and a missing result stays missing."""
    assert Paths.of(["card", "/card"]).removed_from("card") == "card"
    assert Paths.of(["*"]).removed_from("card") == GONE
    assert Paths.of(["*"]).removed_from(None) is None


POLICY = Redaction({"*": ["password"], "payment.*": ["card"], "secret": ["*"]})
CONTENT = {"card": 1, "password": 2}


def test_the_patterns_of_all_types_apply_to_an_unknown_type() -> None:
    """If the type is unknown, the patterns of all types apply."""
    assert POLICY.texts_of("report") == ["password"]
    assert POLICY.texts_of("payment.take") == ["password", "card"]
    assert POLICY.texts_of(None) == ["password", "card", "*"]


def test_the_contents_of_each_task_in_a_response_are_redacted_by_its_type() -> None:
    """Contents in lists, schedule templates and graphs are redacted, but not other fields with the same names."""
    shown = POLICY.removed_from(
        {
            "card": "a field of the response",
            "tasks": [
                {"type": "report", "name": "card", "payload": CONTENT, "result": None},
                {"type": "payment.take", "payload": CONTENT, "result": CONTENT},
                {"type": "secret", "payload": CONTENT, "target": {"body": {"text": "a"}}},
            ],
            "task": {"type": "payment.take", "target": {"kind": "http", "body": {"json": CONTENT, "x": CONTENT}}},
        }
    )
    without = {"card": GONE, "password": GONE}
    assert shown == {
        "card": "a field of the response",
        "tasks": [
            {"type": "report", "name": "card", "payload": {"card": 1, "password": GONE}, "result": None},
            {"type": "payment.take", "payload": without, "result": without},
            {"type": "secret", "payload": GONE, "target": {"body": GONE}},
        ],
        "task": {"type": "payment.take", "target": {"kind": "http", "body": {"json": without, "x": CONTENT}}},
    }


def test_a_graph_is_redacted_by_the_types_of_its_nodes() -> None:
    """Nodes can have the same names as fields, and parameters are redacted with the patterns of all the nodes."""
    policy = Redaction({"payment.*": ["card"]})
    graph = {
        "nodes": {"payload": {"type": "payment.take", "payload": {"card": 1}}, "b": {"type": "c", "payload": CONTENT}}
    }
    shown = policy.removed_from(
        {"type": "order", "payload": graph, "target": {"definition": {"parameters": {"card": 3, "of": 4}}}}
    )
    assert shown["payload"]["nodes"]["payload"] == {"type": "payment.take", "payload": {"card": GONE}}
    assert shown["payload"]["nodes"]["b"] == graph["nodes"]["b"]
    assert shown["target"]["definition"]["parameters"] == {"card": GONE, "of": 4}


def test_field_names_do_not_apply_to_bytes() -> None:
    """Field names in patterns do not apply to bytes, whose JSON form is defined by duetime."""
    data = {"$binary": {"base64": "AAAA", "content_type": "image/png"}}
    assert POLICY.removed_from({"type": "payment.take", "payload": data})["payload"] == data
    assert POLICY.removed_from({"type": "secret", "payload": data})["payload"] == GONE


def test_the_patterns_of_all_types_apply_to_a_query_response() -> None:
    """A query's response has no type, so the patterns of all types apply to it."""
    assert POLICY.removed_from({"status": 200, "body": CONTENT}) == {"status": 200, "body": GONE}
    policy = Redaction({"payment.*": ["card"]})
    assert policy.removed_from({"status": 200, "body": CONTENT})["body"] == {"card": GONE, "password": 2}


def test_values_that_differ_between_definitions_are_not_shown() -> None:
    """The differences between definitions show no values, but do show paths, versions and schemas."""
    difference = {"from": 1, "to": 2, "changes": [{"path": "nodes.a.payload.card", "from": 3, "to": 4}]}
    assert POLICY.removed_from(difference) == {
        "from": 1,
        "to": 2,
        "changes": [{"path": "nodes.a.payload.card", "from": GONE, "to": GONE}],
    }
    schema = {"type": "secret", "payload_schema": {"properties": {"payload": {"type": "string"}}}}
    assert POLICY.removed_from(schema) == schema
