from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.json_values import ValueRefused, check_kept, json_of, writable
from duetime.domain.limits import MAX_JSON_DEPTH, MAX_NUMBER_DIGITS

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**37), 10**37)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_a_stored_json_value_is_read_back_unchanged(value: object) -> None:
    """Every JSON value without lone surrogates is read back unchanged."""
    assert json.loads(json_of(value)) == value


@given(st.text(max_size=20))
def test_a_text_without_surrogates_is_unchanged(text: str) -> None:
    """A string without surrogates does not change."""
    assert writable(text) == text
    assert writable(f"{text}\udce9").encode().endswith(b"\\udce9")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({1: "a", "1": "b"}, "more than once"),
        ({None: 1, "null": 1}, "more than once"),
        ({"a": {2.5: 1, "2.5": 1}}, "more than once"),
        (10**MAX_NUMBER_DIGITS, "digits"),
        (-(10**MAX_NUMBER_DIGITS), "digits"),
        (float("inf"), "not JSON compliant"),
        (["\ud800"], "lone surrogate"),
        ({"\ud800": 1}, "lone surrogate"),
        (object(), "not JSON serializable"),
        (json.loads("[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH), "nested deeper"),
        (b"bytes", "not JSON serializable"),
    ],
)
def test_a_value_that_would_be_lost_or_changed_is_rejected(value: object, why: str) -> None:
    """A value that would be lost or changed is refused, and the error gives the reason."""
    with pytest.raises(ValueRefused, match=why):
        json_of(value)


def test_the_largest_values_are_accepted() -> None:
    """Numbers with the maximum number of digits and values with the maximum depth are accepted."""
    number = 10**MAX_NUMBER_DIGITS - 1
    assert json_of([number, -number]) == f"[{number},{-number}]".encode()
    deepest = "[" * (MAX_JSON_DEPTH - 1) + "]" * (MAX_JSON_DEPTH - 1)
    assert json_of(json.loads(deepest)) == deepest.encode()
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ValueRefused):
        json_of(endless)


@pytest.mark.parametrize(
    "text", ["1e400", "1e-400", "NaN", '"\\udc00"', '{"a":1,"a":1}', "9" * 39, "", "{", "1" * 5000]
)
def test_invalid_or_unsupported_json_is_rejected(text: str) -> None:
    """Numbers that a float cannot hold, duplicate keys, lone surrogates and invalid JSON are refused."""
    with pytest.raises(ValueError, match=r"."):
        check_kept(text)


def test_an_escaped_surrogate_pair_is_accepted() -> None:
    """An escaped pair of surrogates, which JSON allows, is accepted."""
    assert check_kept('["\\ud83d\\ude00", 0, -0.0, 0e5]') == ["\U0001f600", 0, 0.0, 0.0]
