from __future__ import annotations

import base64
import json
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duetime.contract.http.request_errors import BodyTooLarge, BodyUnreadable, FaultyRequest, FieldsInvalid
from duetime.contract.http.request_json import Reader, faults_in, read
from duetime.domain.limits import MAX_BODY_BYTES, MAX_JSON_DEPTH
from tests.contract.properties import JSON, unhurried


def faults_of(text: str) -> dict[str, str]:
    """Return the faults of a body, by field."""
    try:
        document = read(text)
    except FaultyRequest as refusal:
        return {fault.field: fault.reason for fault in refusal.faults}
    return {fault.field: fault.reason for fault in faults_in(document.value)} if document.marked else {}


@unhurried
@given(JSON)
def test_valid_values_pass_the_guard_unchanged(value: Any) -> None:  # noqa: ANN401 - any JSON
    """Every valid value passes the guard unchanged, whether or not its text is escaped."""
    for is_ascii in (True, False):
        document = read(json.dumps(value, ensure_ascii=is_ascii))
        assert document.value == value
        assert not document.marked or faults_in(document.value) == ()


@unhurried
@given(text=st.text(st.characters()), is_base64=st.booleans())
def test_any_text_of_a_body_is_read_or_rejected(text: str, *, is_base64: bool) -> None:
    """Any string, even with lone surrogates, is either read or refused with the field's name."""
    with suppress(FaultyRequest):
        faults_in(read(text, is_base64=is_base64).value)


@unhurried
@given(st.binary())
def test_any_bytes_of_a_body_are_read_or_rejected(data: bytes) -> None:
    """Any bytes are either read or refused with the field's name."""
    with suppress(FaultyRequest):
        faults_in(read(base64.b64encode(data).decode(), is_base64=True).value)


@unhurried
@given(st.text(st.sampled_from(list('[]{}"\\,:0123456789eE.-+ntfNI\ud800 \n')), max_size=200))
def test_any_json_like_text_of_a_body_is_read_or_rejected(text: str) -> None:
    """Strings made of JSON's special characters are either parsed or refused with the field's name."""
    with suppress(FaultyRequest):
        faults_in(read(text).value)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"b":', ' [\n"]\\"",'])
def test_extreme_nesting_is_rejected_with_the_top_level_field(opening: str) -> None:
    """A value with 100,000 levels is refused without recursion, and the error names the top-level field."""
    text = '{"type": "report", "payload": ' + opening * 100_000
    with pytest.raises(FieldsInvalid) as refusal:
        read(text)
    assert [fault.field for fault in refusal.value.faults] == ["payload"]


def test_nesting_above_the_limit_is_rejected() -> None:
    """A body with the maximum depth is read and a deeper body is refused; brackets in strings do not count."""
    read("[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH)
    read(json.dumps(["[" * 1_000 + '\\"{' * 1_000]))
    assert faults_of("[" * (MAX_JSON_DEPTH + 1) + "]" * (MAX_JSON_DEPTH + 1)) == {
        "body": "is nested deeper than 64 levels"
    }


_NEARLY_BRACKETS = st.text(st.sampled_from(list('[]{}"\\n\ud800é')), max_size=8)


def _depth(value: Any) -> int:  # noqa: ANN401 - any JSON
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(_depth, parts), default=0)


@unhurried
@given(
    st.recursive(
        _NEARLY_BRACKETS, lambda parts: st.lists(parts, max_size=3) | st.dictionaries(_NEARLY_BRACKETS, parts)
    ),
    st.integers(0, 4),
)
@example(["]", [""]], 1)
@example(['"]"', [""]], 1)
@example(['\\"]"', [""]], 1)
@example(["\\", "]", "\\", [""]], 1)
def test_brackets_in_strings_do_not_change_the_depth(value: Any, limit: int) -> None:  # noqa: ANN401 - any JSON
    """Brackets, quotation marks and backslashes in strings do not change the depth of a body."""
    for is_ascii in (True, False):
        with pytest.raises(FieldsInvalid) if _depth(value) > limit else nullcontext():
            read(json.dumps(value, ensure_ascii=is_ascii), depth=limit)


def test_many_shallow_containers_do_not_count_as_depth() -> None:
    """More siblings than the depth limit are accepted, because only nesting counts."""
    value = {"payload": [{"a": [1]}] * 10_000}
    assert read(json.dumps(value)).value == value


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        ("9" * 5_000, "more than 38 digits"),
        ("-" + "9" * 39, "more than 38 digits"),
        ("0." + "1" * 39, "more than 38 digits"),
        ("1" * 39 + "e-5", "more than 38 digits"),
        ("1e400", "outside the range"),
        ("-1E400", "outside the range"),
        ("1e-400", "outside the range"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("-Infinity", "-Infinity"),
    ],
)
def test_numbers_that_cannot_be_stored_exactly_are_rejected(number: str, reason: str) -> None:
    """A number that cannot be stored exactly is refused with the number's position."""
    faults = faults_of(f'{{"type": "report", "payload": {{"a": [0, 1, 2, {number}]}}}}')
    assert list(faults) == ["payload.a[3]"]
    assert reason in faults["payload.a[3]"]


@pytest.mark.parametrize("number", ["9" * 38, "-" + "9" * 38, "0.0", "-0.0", "0e5", "1e308", "5e-324"])
def test_numbers_within_the_limits_are_read_unchanged(number: str) -> None:
    """The largest, smallest and longest numbers within the limits are read unchanged."""
    assert faults_of(number) == {}
    assert read(number).value == json.loads(number)


def test_lone_surrogates_are_rejected_and_pairs_are_accepted() -> None:
    """A lone surrogate in a value or a name is refused, escaped or raw, but a pair is a character."""
    assert faults_of(r'{"payload": {"a": ["\ud800"]}}') == {"payload.a[0]": "contains a lone surrogate"}
    assert faults_of('{"payload": "\udfff"}') == {"payload": "contains a lone surrogate"}
    assert faults_of(r'{"\ud800": 1}') == {r"\ud800": "has a lone surrogate in its name"}
    assert read(r'{"a": "\ud83d\ude00"}').value == {"a": "😀"}
    assert faults_of(r'{"a": "\ud83d\ude00"}') == {}


def test_duplicate_keys_are_rejected() -> None:
    """Duplicate keys are refused, because the effective value would be ambiguous."""
    assert faults_of('{"type": "a", "type": "b"}') == {"type": "appears more than once"}
    assert faults_of('{"payload": [{"x": 1, "x": 1}]}') == {"payload[0].x": "appears more than once"}
    # The body has as many colons as names, because one colon is in a string and is escaped.
    assert faults_of(r'{"payload": "\u003A", "x": 1, "x": 1}') == {"x": "appears more than once"}


_NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)
_KEYS = st.sampled_from(["a", "b", ":", r"\u003a", r"\":", "é"])


def _object(members: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{key}": {value}' for key, value in members) + "}"


_TEXTS = st.recursive(
    _NUMBERS | _KEYS.map('"{}"'.format) | st.sampled_from(["NaN", "null", r'"\ud800"']),
    lambda parts: (
        st.lists(parts).map(lambda each: "[" + ", ".join(each) + "]") | st.lists(st.tuples(_KEYS, parts)).map(_object)
    ),
    max_leaves=8,
)


@unhurried
@given(_TEXTS)
def test_the_fast_and_the_exact_parser_find_the_same_errors(text: str) -> None:
    """Both parsers refuse the same keys, numbers and surrogates, and read all other values with equal types."""
    document, exact = read(text), Reader().parse(text)
    assert faults_in(document.value) == faults_in(exact)
    assert faults_in(exact) or repr(document.value) == repr(exact)
    assert document.marked or not faults_in(exact)


def test_names_of_fields_in_errors_are_safe_to_print() -> None:
    """An object key in a body is quoted in the error without control characters, and is cut if it is long."""
    (field,) = faults_of(json.dumps({"\x00\u202e" + "k" * 500: float("nan")}))
    assert field.isprintable()
    assert len(field) < 100


def test_only_the_first_of_many_errors_are_reported() -> None:
    """If there are thousands of faults, only the first faults are reported."""
    assert len(faults_of(json.dumps([float("nan")] * 10_000))) == 20


@pytest.mark.parametrize("body", [None, "", "   \n", "{", '{"a": }', "'a'", "\ufeff{}", "{} {}", '{"a": "\n"}', "nul"])
def test_a_body_that_is_not_json_is_rejected(body: str | None) -> None:
    """If a body is not JSON, the error names the body and not a field."""
    with pytest.raises(BodyUnreadable) as refusal:
        read(body)
    assert [fault.field for fault in refusal.value.faults] == ["body"]


@pytest.mark.parametrize("body", ["abc", "ä", "e30=\n", "****", base64.b64encode(b"\xff\xfe{}").decode()])
def test_a_body_that_is_not_base64_of_utf_8_is_rejected(body: str) -> None:
    """A body that the gateway marks as base64 must be base64 of UTF-8."""
    with pytest.raises(BodyUnreadable):
        read(body, is_base64=True)


def test_the_size_of_a_body_is_counted_in_bytes() -> None:
    """A body of the maximum size is read and a larger body is refused, also in base64 or with wide characters."""
    fits = json.dumps("a" * (MAX_BODY_BYTES - 2))
    assert read(fits).value
    assert read(base64.b64encode(fits.encode()).decode(), is_base64=True).value
    for body, is_base64 in (
        (fits + " ", False),
        (json.dumps("ä" * (MAX_BODY_BYTES // 2), ensure_ascii=False), False),
        (base64.b64encode(fits.encode() + b" ").decode(), True),
    ):
        with pytest.raises(BodyTooLarge):
            read(body, is_base64=is_base64)
