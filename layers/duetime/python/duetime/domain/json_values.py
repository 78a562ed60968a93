"""Which values are kept as JSON: one rule for payloads, results and checkpoints; and texts that UTF-8 can write."""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Any, NoReturn

from duetime.domain.limits import MAX_JSON_DEPTH, MAX_NUMBER_DIGITS, MAX_RESULT_BYTES

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a pair that only together is a character."""
TOO_MANY_DIGITS = f"has more than {MAX_NUMBER_DIGITS} digits"
OUT_OF_RANGE = "is outside the range of a 64-bit floating-point number"
REPEATED = "appears more than once"
LONE_SURROGATE = "contains a lone surrogate"
_VALUE_DEPTH = MAX_JSON_DEPTH - 1
"""Levels of nesting in a value: a request's body has it in an object."""


class ValueRefused(ValueError):
    """A value that is not kept; its message says why, and quotes nothing of it."""


def writable(text: str) -> str:
    r"""A text that UTF-8 can write: a lone surrogate is escaped as Python writes it, such as `\udce9`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def has_too_many_digits(number: str) -> bool:
    """Whether a number of a JSON text has more digits than are kept; an exponent's do not count."""
    if len(number) <= MAX_NUMBER_DIGITS:
        return False
    return len(number.lower().partition("e")[0].lstrip("-").replace(".", "")) > MAX_NUMBER_DIGITS


def is_out_of_range(number: str) -> bool:
    """Whether a number of a JSON text, with a fraction or an exponent, becomes infinite, or zero without being it."""
    value = float(number)
    return isinf(value) or (value == 0 and bool(number.lower().partition("e")[0].strip("-.0")))


def decoded(text: str) -> Any:  # noqa: ANN401 - any JSON
    """The value of a JSON text, whose strings may have lone surrogates.

    Raises:
        ValueRefused: something in it is not kept.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply for the parser.
    """
    return _DECODER.decode(text)


def check_kept(text: str) -> Any:  # noqa: ANN401 - any JSON
    """The value of a JSON text, if it is kept: without lone surrogates, and not too deep.

    Raises:
        ValueRefused: something in it is not kept.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply for the parser.
    """
    value = decoded(text)
    if text.count("[") + text.count("{") > _VALUE_DEPTH and _is_deep(value):
        raise ValueRefused(f"it is nested deeper than {_VALUE_DEPTH} levels")
    if _has_surrogates(text, value):
        raise ValueRefused(f"it {LONE_SURROGATE}, which UTF-8 cannot write")
    return value


def json_of(value: object) -> bytes:
    """A value of Python as compact JSON in UTF-8, if it is kept; one that is too large for a result is not looked into.

    Raises:
        ValueRefused: it is not JSON, loses something in JSON (two keys become one), or is not kept.
    """
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        if len(text) <= MAX_RESULT_BYTES:
            check_kept(text)
        return text.encode()
    except UnicodeEncodeError:
        raise ValueRefused(f"it {LONE_SURROGATE}, which UTF-8 cannot write") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueRefused(str(error)) from None


def _has_surrogates(text: str, value: object) -> bool:
    """Whether strings of a JSON text, whose value this is, have lone surrogates, as they are or escaped."""
    if text.isascii() and "\\u" not in text:
        return False
    return SURROGATE.search(json.dumps(value, ensure_ascii=False)) is not None


def _is_deep(value: object) -> bool:
    level: list[Any] = [value]
    for _ in range(_VALUE_DEPTH + 1):
        containers = [each for each in level if isinstance(each, dict | list)]
        if not containers:
            return False
        level = [inner for each in containers for inner in (each.values() if isinstance(each, dict) else each)]
    return True


def _integer(text: str) -> int:
    if has_too_many_digits(text):
        raise ValueRefused(f"a number {TOO_MANY_DIGITS}")
    return int(text)


def _number(text: str) -> float:
    if has_too_many_digits(text):
        raise ValueRefused(f"a number {TOO_MANY_DIGITS}")
    value = float(text)
    # Zero may be what is left of a number that was too small.
    if (value == 0 or isinf(value)) and is_out_of_range(text):
        raise ValueRefused(f"a number {OUT_OF_RANGE}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueRefused(f"a key {REPEATED}")
    return found


def _constant(text: str) -> NoReturn:
    raise ValueRefused(f"it has {text}, which is no JSON number")


_DECODER = json.JSONDecoder(
    parse_int=_integer, parse_float=_number, parse_constant=_constant, object_pairs_hook=_object
)
