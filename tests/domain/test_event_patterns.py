"""Tests matches and rejections of event patterns, with moto's matcher as an independent check."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto.events.models import EventPattern

from duetime.domain.event_patterns import STEPS, EventTooLarge, PatternInvalid, matches, reject_pattern
from duetime.domain.limits import MAX_EVENT_PATTERN_LENGTH

EVENT: dict[str, Any] = {
    "id": "1",
    "source": "com.example.orders",
    "detail-type": "OrderPlaced",
    "resources": ["arn:aws:s3:::a", "arn:aws:s3:::b"],
    "detail": {
        "amount": 150,
        "paid": True,
        "note": None,
        "file": "dir/lib/picture.png",
        "ip": "10.0.1.17",
        "empty": [],
        "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}],
        "customer": {"name": "Ann", "tier": "gold"},
    },
}
MATCHING: list[dict[str, Any]] = [
    {"source": ["com.example.orders"]},
    {"source": ["other", "com.example.orders"], "detail-type": ["OrderPlaced"]},
    {"source": [{"prefix": "com.example."}]},
    {"source": [{"prefix": {"equals-ignore-case": "COM."}}]},
    {"source": [{"suffix": "orders"}]},
    {"source": [{"suffix": {"equals-ignore-case": "ORDERS"}}]},
    {"detail-type": [{"equals-ignore-case": "orderplaced"}]},
    {"detail-type": [{"anything-but": "OrderPaid"}]},
    {"detail-type": [{"anything-but": ["OrderPaid", "OrderSent"]}]},
    {"detail-type": [{"anything-but": {"prefix": "User"}}]},
    {"detail": {"amount": [150]}},
    {"detail": {"amount": [{"numeric": [">", 100, "<=", 150]}]}},
    {"detail": {"amount": [{"numeric": ["=", 150]}]}},
    {"detail": {"amount": [{"anything-but": 100}]}},
    {"detail": {"paid": [True]}},
    {"detail": {"note": [None]}},
    {"detail": {"file": [{"wildcard": "dir/*/*.png"}]}},
    {"detail": {"file": [{"wildcard": "dir*"}]}},
    {"detail": {"ip": [{"cidr": "10.0.0.0/16"}]}},
    {"detail": {"amount": [{"exists": True}]}},
    {"detail": {"refund": [{"exists": False}]}},
    {"detail": {"refund": {"at": [{"exists": False}]}}},
    {"resources": ["arn:aws:s3:::b"]},
    {"detail": {"customer": {"tier": ["gold"]}}},
    {"detail": {"$or": [{"amount": [1]}, {"paid": [True]}]}},
]
OTHERS: list[dict[str, Any]] = [
    {"source": ["com.example"]},
    {"source": ["com.example.orders"], "detail-type": ["OrderPaid"]},
    {"source": [{"prefix": "org."}]},
    {"source": [{"suffix": "com"}]},
    {"detail-type": [{"anything-but": ["OrderPlaced", "OrderSent"]}]},
    {"detail-type": [{"anything-but": {"prefix": "Order"}}]},
    {"detail": {"amount": ["150"]}},
    {"detail": {"amount": [{"numeric": [">", 150]}]}},
    {"detail": {"file": [{"wildcard": "dir/*/*.jpg"}]}},
    {"detail": {"ip": [{"cidr": "10.1.0.0/16"}]}},
    {"detail": {"amount": [{"exists": False}]}},
    {"detail": {"refund": [{"exists": True}]}},
    {"detail": {"refund": [{"anything-but": "x"}]}},
    {"resources": ["arn:aws:s3:::c"]},
    {"detail": {"customer": {"tier": ["silver"]}}},
    {"detail": {"$or": [{"amount": [1]}, {"paid": [False]}]}},
]


@pytest.mark.parametrize("pattern", MATCHING, ids=json.dumps)
def test_each_operator_matches(pattern: dict[str, Any]) -> None:
    """A valid pattern matches an event that has an accepted value in each field; moto's matcher agrees."""
    reject_pattern(pattern)
    assert matches(pattern, EVENT)
    assert EventPattern(None, pattern).matches_event(EVENT)  # type: ignore[arg-type]  # any event


@pytest.mark.parametrize("pattern", OTHERS, ids=json.dumps)
def test_an_event_without_an_accepted_value_in_each_field_does_not_match(pattern: dict[str, Any]) -> None:
    """An event with an unaccepted value in one field does not match; moto's matcher agrees."""
    reject_pattern(pattern)
    assert not matches(pattern, EVENT)
    assert not EventPattern(None, pattern).matches_event(EVENT)  # type: ignore[arg-type]  # any event


@pytest.mark.parametrize(
    ("pattern", "is_match"),
    [
        ({"detail": {"lines": {"sku": ["a"], "n": [1]}}}, True),
        ({"detail": {"lines": {"sku": ["a"], "n": [2]}}}, False),
        ({"detail": {"paid": [1]}}, False),
        ({"detail": {"empty": [{"exists": False}]}}, True),
        ({"detail": {"customer": [{"exists": True}]}}, False),
        ({"detail": {"file": [{"wildcard": r"dir\*"}]}}, False),
    ],
    ids=str,
)
def test_objects_in_lists_match_by_element(pattern: dict[str, Any], is_match: bool) -> None:  # noqa: FBT001 - a test parameter
    """A pattern's fields must match in one list element, `true` is not a number, and `exists` needs a value."""
    reject_pattern(pattern)
    assert matches(pattern, EVENT) is is_match


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        ([], ""),
        ({}, ""),
        ({"source": "a"}, "source"),
        ({"source": []}, "source"),
        ({"source": [["a"]]}, "source"),
        ({"detail": {}}, "detail"),
        ({"source": [{"begins": "a"}]}, "source"),
        ({"source": [{"prefix": "a", "suffix": "b"}]}, "source"),
        ({"source": [{"prefix": 5}]}, "source.prefix"),
        ({"source": [{"prefix": {"other": "a"}}]}, "source.prefix"),
        ({"source": [{"exists": "yes"}]}, "source.exists"),
        ({"a": [{"numeric": [">"]}]}, "a.numeric"),
        ({"a": [{"numeric": [">", "5"]}]}, "a.numeric"),
        ({"a": [{"numeric": ["!", 5]}]}, "a.numeric"),
        ({"a": [{"numeric": [[], 5]}]}, "a.numeric"),
        ({"a": [{"cidr": "10.0.0.0/99"}]}, "a.cidr"),
        ({"a": [{"cidr": 5}]}, "a.cidr"),
        ({"a": [{"anything-but": []}]}, "a.anything-but"),
        ({"a": [{"anything-but": {"numeric": [">", 5]}}]}, "a.anything-but"),
        ({"$or": [{"a": [1]}]}, "$or"),
        ({"$or": [{"a": [1]}, {"b": 1}]}, "$or.b"),
    ],
    ids=str,
)
def test_an_error_for_an_invalid_pattern_names_the_field(pattern: object, place: str) -> None:
    """The error for an invalid pattern names the field."""
    with pytest.raises(PatternInvalid) as refused:
        reject_pattern(pattern)
    assert ".".join(refused.value.place) == place
    assert str(refused.value)


def test_a_pattern_is_limited_to_the_size_in_an_eventbridge_rule() -> None:
    """A pattern can be as long as in an EventBridge rule, but not longer."""
    around = len('{"a": [""]}')
    reject_pattern({"a": ["x" * (MAX_EVENT_PATTERN_LENGTH - around)]})
    with pytest.raises(PatternInvalid, match="4096"):
        reject_pattern({"a": ["x" * (MAX_EVENT_PATTERN_LENGTH - around + 1)]})


def test_an_event_that_needs_too_many_comparisons_is_rejected() -> None:
    """The total number of comparisons is limited, because lists multiply them."""
    pattern = {"a": {"b": [str(each) for each in range(500)]}}
    with pytest.raises(EventTooLarge):
        matches(pattern, {"a": [{"b": "x"}] * STEPS})


def test_a_wildcard_pattern_searches_for_each_part_once() -> None:
    """Each part of a pattern with wildcards is searched for once, from the end of the previous part."""
    assert not matches({"a": [{"wildcard": "*a" * 1_000 + "b"}]}, {"a": "a" * 100_000})


_JSON_VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
_JSON = st.recursive(
    _JSON_VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_NAMES = st.sampled_from(
    ["a", "$or", "prefix", "suffix", "exists", "numeric", "anything-but", "cidr", "wildcard", "equals-ignore-case"]
)
_PATTERNS = st.recursive(
    _JSON, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=2), max_leaves=8
)


_COMPARISONS = st.sampled_from(
    [
        {"prefix": "a"},
        {"suffix": {"equals-ignore-case": "B"}},
        {"numeric": [">", 0, "<=", 5]},
        {"exists": False},
        {"cidr": "10.0.0.0/8"},
        {"wildcard": "a*b"},
        {"anything-but": ["a", 1]},
    ]
)
_VALID = st.recursive(
    st.dictionaries(
        st.sampled_from("ab"), st.lists(_JSON_VALUES | _COMPARISONS, min_size=1, max_size=3), min_size=1, max_size=2
    ),
    lambda inner: (
        st.dictionaries(st.sampled_from("ab"), inner, min_size=1, max_size=2)
        | st.lists(inner, min_size=2, max_size=3).map(lambda alternatives: {"$or": alternatives})
    ),
    max_leaves=5,
)
_EVENTS = st.dictionaries(_NAMES | st.just("b"), _JSON, max_size=3)


@given(_PATTERNS | _VALID, _EVENTS)
def test_an_accepted_pattern_compares_with_any_event_without_an_error(pattern: Any, event: dict[str, Any]) -> None:  # noqa: ANN401 - any JSON
    """A pattern that is accepted can be compared with any event without an error."""
    try:
        reject_pattern(pattern)
    except PatternInvalid:
        return
    assert matches(pattern, event) in {True, False}
