"""Matches events against EventBridge event patterns, and validates patterns.

Source: EventBridge User Guide, "Comparison operators for use in event patterns".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any, TypeAlias

from duetime.domain.errors import RequestError
from duetime.domain.limits import MAX_EVENT_PATTERN_LENGTH

Pattern: TypeAlias = "Mapping[str, Any]"
"""A pattern: field names, each with a list of accepted values and comparisons, or with a pattern for nested fields."""


Test: TypeAlias = Callable[[Any], bool]


STEPS = 200_000
"""Maximum number of comparisons for matching an event with a pattern; this many comparisons take less than a second."""


_OR = "$or"


_IGNORING_CASE = "equals-ignore-case"


_MISSING = object()


_NUMBER_TESTS: Mapping[str, Callable[[float, float], bool]] = {
    "=": lambda value, bound: value == bound,
    "<": lambda value, bound: value < bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    ">=": lambda value, bound: value >= bound,
}


class PatternInvalid(ValueError):
    """A pattern is invalid.

    Attributes:
        place: path of the invalid part, as field names.
    """

    def __init__(self, place: Sequence[str], reason: str) -> None:
        super().__init__(reason)
        self.place = tuple(place)


class EventTooLarge(RequestError):
    """An event has too many values to compare with a pattern."""

    def __init__(self) -> None:
        super().__init__(f"its comparison with a pattern takes more than {STEPS:_} steps")


class _Budget:
    """Counts the comparisons of one event."""

    def __init__(self) -> None:
        self._left = STEPS

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise EventTooLarge


def matches(pattern: Pattern, event: Mapping[str, Any]) -> bool:
    """Whether a valid pattern matches an event: each field of the pattern has an accepted value in the event.

    A list in the event matches if one of its elements matches.

    Raises:
        EventTooLarge: the comparison takes too many steps.
    """
    return _matches_object(pattern, event, _Budget())


def _matches_object(pattern: Pattern, value: object, budget: _Budget) -> bool:
    if isinstance(value, list):
        return any(_matches_object(pattern, each, budget) for each in value)
    fields = value if isinstance(value, dict) else {}
    budget.spend(len(pattern))
    for name, wanted in pattern.items():
        if name == _OR and isinstance(wanted, list):
            if not any(_matches_object(each, fields, budget) for each in wanted):
                return False
        elif isinstance(wanted, Mapping):
            if not _matches_object(wanted, fields.get(name, _MISSING), budget):
                return False
        elif not _matches_value(wanted, fields.get(name, _MISSING), budget):
            return False
    return True


def _matches_value(wanted: Sequence[Any], value: object, budget: _Budget) -> bool:
    # Objects are compared only by their fields, and an empty list has no value to compare.
    values = [value] if not isinstance(value, list) else value
    present = [each for each in values if each is not _MISSING and not isinstance(each, dict)]
    budget.spend(len(wanted) * max(1, len(present)))
    for each in wanted:
        if isinstance(each, Mapping) and "exists" in each:
            if each["exists"] is bool(present):
                return True
        elif any(map(_test_of(each), present)):
            return True
    return False


def _test_of(wanted: object) -> Test:
    """The test of one accepted value or comparison."""
    if not isinstance(wanted, Mapping):
        return lambda value: _equal(wanted, value)
    ((name, given),) = wanted.items()
    return _COMPARISONS[name](given)


def _equal(wanted: object, value: object) -> bool:
    # In Python, True equals 1.
    return wanted == value and isinstance(wanted, bool) is isinstance(value, bool)


def _text(test: Callable[[str], bool]) -> Test:
    return lambda value: isinstance(value, str) and test(value)


def _one_of(given: object, make: Callable[[Any], Test]) -> Test:
    """A test that passes if the test for at least one of the given strings passes."""
    tests = [make(each) for each in (given if isinstance(given, list) else [given])]
    return lambda value: any(test(value) for test in tests)


def _ignoring_case(given: Any, compare: Callable[[str, str], bool]) -> Test:  # noqa: ANN401 - checked before
    """A test of a string's start or end that optionally ignores case."""
    if isinstance(given, Mapping):
        wanted = given[_IGNORING_CASE]
        return _one_of(wanted, lambda each: _text(lambda value: compare(value.casefold(), each.casefold())))
    return _one_of(given, lambda each: _text(lambda value: compare(value, each)))


def _numeric(given: Sequence[Any]) -> Test:
    bounds = [(_NUMBER_TESTS[name], bound) for name, bound in zip(given[::2], given[1::2], strict=True)]
    return lambda value: (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and all(test(value, bound) for test, bound in bounds)
    )


def _anything_but(given: Any) -> Test:  # noqa: ANN401 - checked before
    test = _test_of(given) if isinstance(given, Mapping) else _one_of(given, _test_of)
    return lambda value: not test(value)


def _wildcard(wanted: str) -> Test:
    parts = _wildcard_parts(wanted)

    def test(value: str) -> bool:
        first, *others = parts
        if not others:
            return value == first
        if not value.startswith(first):
            return False
        at = len(first)
        # The earliest match of each part leaves the most text for the other parts, so no other match needs to be tried.
        for part in others[:-1]:
            found = value.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return len(value) - len(others[-1]) >= at and value.endswith(others[-1])

    return _text(test)


def _wildcard_parts(wanted: str) -> list[str]:
    r"""The strings between a pattern's asterisks; `\*` and `\\` stand for a literal asterisk and backslash."""
    parts, escaped = [""], False
    for character in wanted:
        if escaped or character not in "\\*":
            parts[-1] += character
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            parts.append("")
    return parts


def _cidr(wanted: str) -> Test:
    network = ip_network(wanted, strict=False)

    def test(value: str) -> bool:
        try:
            return ip_address(value) in network
        except ValueError:
            return False

    return _text(test)


_COMPARISONS: Mapping[str, Callable[[Any], Test]] = {
    "prefix": lambda given: _ignoring_case(given, str.startswith),
    "suffix": lambda given: _ignoring_case(given, str.endswith),
    _IGNORING_CASE: lambda given: _one_of(given, lambda each: _text(lambda value: value.casefold() == each.casefold())),
    "wildcard": lambda given: _one_of(given, _wildcard),
    "anything-but": _anything_but,
    "numeric": _numeric,
    "cidr": lambda given: _one_of(given, _cidr),
}


def reject_pattern(pattern: object) -> None:
    """Rejects a pattern that is not a valid EventBridge event pattern.

    Raises:
        PatternInvalid: the pattern is invalid or too large.
    """
    if len(json.dumps(pattern, ensure_ascii=False)) > MAX_EVENT_PATTERN_LENGTH:
        raise PatternInvalid((), f"should have at most {MAX_EVENT_PATTERN_LENGTH} characters")
    _reject_fields(pattern, ())


def _reject_fields(pattern: object, place: tuple[str, ...]) -> None:
    if not isinstance(pattern, Mapping):
        raise PatternInvalid(place, "should be an object")
    if not pattern:
        raise PatternInvalid(place, "is empty: it must name at least one field")
    for name, wanted in pattern.items():
        inside = (*place, name)
        if name == _OR and isinstance(wanted, list):
            if len(wanted) < 2:  # noqa: PLR2004 - an alternative
                raise PatternInvalid(inside, "should have at least two patterns")
            for each in wanted:
                _reject_fields(each, inside)
        elif isinstance(wanted, Mapping):
            _reject_fields(wanted, inside)
        elif isinstance(wanted, list):
            _reject_values(wanted, inside)
        else:
            raise PatternInvalid(inside, "should be a list of accepted values, or an object with fields")


def _reject_values(wanted: Sequence[Any], place: tuple[str, ...]) -> None:
    if not wanted:
        raise PatternInvalid(place, "is empty: it must list the accepted values")
    for each in wanted:
        if isinstance(each, Mapping):
            _reject_comparison(each, place)
        elif isinstance(each, list):
            raise PatternInvalid(place, "has a list in it")


def _reject_comparison(
    comparison: Mapping[str, Any], place: tuple[str, ...], operators: Collection[str] | None = None
) -> None:
    """Rejects an invalid comparison, or an operator that is not among the given operators."""
    if len(comparison) != 1:
        raise PatternInvalid(place, "has a comparison that is not exactly one operator with its value")
    ((name, given),) = comparison.items()
    known = sorted(_CHECKS if operators is None else operators)
    if name not in known:
        raise PatternInvalid(place, f"has the operator {name!a}; there are {', '.join(known)}")
    _CHECKS[name](given, (*place, name))


def _reject_existence(given: object, place: tuple[str, ...]) -> None:
    if not isinstance(given, bool):
        raise PatternInvalid(place, "should be true or false")


def _reject_ends(given: object, place: tuple[str, ...]) -> None:
    if not isinstance(given, Mapping):
        _reject_texts(given, place)
    elif [*given] == [_IGNORING_CASE]:
        _reject_texts(given[_IGNORING_CASE], place)
    else:
        raise PatternInvalid(place, 'should be a text, or {"equals-ignore-case": text}')


def _reject_texts(given: object, place: tuple[str, ...]) -> None:
    texts = given if isinstance(given, list) else [given]
    if not texts or not all(isinstance(each, str) and each for each in texts):
        raise PatternInvalid(place, "should be a text, or a list of texts")


def _reject_networks(given: Any, place: tuple[str, ...]) -> None:  # noqa: ANN401 - any JSON
    _reject_texts(given, place)
    for each in given if isinstance(given, list) else [given]:
        try:
            ip_network(each, strict=False)
        except ValueError:
            raise PatternInvalid(place, "should be an address range such as 10.0.0.0/24") from None


def _reject_numeric(given: object, place: tuple[str, ...]) -> None:
    pairs = [*zip(given[::2], given[1::2], strict=False)] if isinstance(given, list) else []
    is_whole = isinstance(given, list) and len(given) in {2, 4}
    if not is_whole or not all(_is_bound(*pair) for pair in pairs):
        raise PatternInvalid(place, 'should be one or two comparisons such as [">", 0, "<=", 5]')


def _is_bound(name: object, bound: object) -> bool:
    is_number = isinstance(bound, int | float) and not isinstance(bound, bool)
    return isinstance(name, str) and name in _NUMBER_TESTS and is_number


def _reject_anything_but(given: object, place: tuple[str, ...]) -> None:
    if isinstance(given, Mapping):
        _reject_comparison(given, place, _INNER)
        return
    values = given if isinstance(given, list) else [given]
    if not values or not all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in values):
        raise PatternInvalid(place, "should be a text or number, a list of them, or a comparison")


_CHECKS: Mapping[str, Callable[[Any, tuple[str, ...]], None]] = {
    "exists": _reject_existence,
    "prefix": _reject_ends,
    "suffix": _reject_ends,
    _IGNORING_CASE: _reject_texts,
    "wildcard": _reject_texts,
    "anything-but": _reject_anything_but,
    "numeric": _reject_numeric,
    "cidr": _reject_networks,
}


_INNER = ("prefix", "suffix", _IGNORING_CASE, "wildcard")
"""Operators within `anything-but`."""
