"""Decides which values can be stored as JSON, with the same rule for payloads, results and checkpoints.

Also escapes text for UTF-8.
"""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Any, NoReturn

from duetime.domain.limits import MAX_ENCRYPTED_TEXT_LENGTH, MAX_JSON_DEPTH, MAX_NUMBER_DIGITS, MAX_RESULT_BYTES

SURROGATE = re.compile("[\ud800-\udfff]")
"""Matches one half of a surrogate pair."""
TOO_MANY_DIGITS = f"has more than {MAX_NUMBER_DIGITS} digits"
OUT_OF_RANGE = "is outside the range of a 64-bit floating-point number"
REPEATED = "appears more than once"
LONE_SURROGATE = "contains a lone surrogate"
_VALUE_DEPTH = MAX_JSON_DEPTH - 1
"""Maximum nesting depth of a value, which is nested inside an object in a request's body."""


class ValueRefused(ValueError):
    """A value that cannot be stored; the message gives the reason without quoting the value."""


def writable(text: str) -> str:
    r"""Makes a string valid for UTF-8 by escaping lone surrogates as in Python, such as `\udce9`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def most_characters(text: str, length: int) -> int:
    """Maximum stored length of a string in characters; higher for an encrypted string because it cannot be truncated.

    Args:
        text: the string.
        length: the maximum for a string that is not encrypted.
    """
    if len(text) <= length:
        return length
    # Imported only for long strings.
    from duetime_common.payload_codecs import is_encrypted_text  # noqa: PLC0415 - see above

    return MAX_ENCRYPTED_TEXT_LENGTH if is_encrypted_text(text) else length


def has_too_many_digits(number: str) -> bool:
    """Whether a number in JSON has more digits than are stored, not counting an exponent's digits."""
    if len(number) <= MAX_NUMBER_DIGITS:
        return False
    return len(number.lower().partition("e")[0].lstrip("-").replace(".", "")) > MAX_NUMBER_DIGITS


def is_out_of_range(number: str) -> bool:
    """Whether a number in JSON with a fraction or exponent overflows to infinity or underflows to zero."""
    value = float(number)
    return isinf(value) or (value == 0 and bool(number.lower().partition("e")[0].strip("-.0")))


def decoded(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Parses JSON; strings may contain lone surrogates.

    Raises:
        ValueRefused: a value cannot be stored.
        ValueError: the text is not JSON.
        RecursionError: the text exceeds the parser's nesting limit.
    """
    return _DECODER.decode(text)


def check_kept(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Parses JSON that can be stored. Lone surrogates and values that are nested too deeply are rejected.

    Raises:
        ValueRefused: a value cannot be stored.
        ValueError: the text is not JSON.
        RecursionError: the text exceeds the parser's nesting limit.
    """
    value = decoded(text)
    if text.count("[") + text.count("{") > _VALUE_DEPTH and _is_deep(value):
        raise ValueRefused(f"it is nested deeper than {_VALUE_DEPTH} levels")
    if _has_surrogates(text, value):
        raise ValueRefused(f"it {LONE_SURROGATE}, which UTF-8 cannot write")
    return value


def json_of(value: object) -> bytes:
    """Encodes a Python value as compact JSON in UTF-8. Values that exceed the maximum size of a result are not checked.

    Raises:
        ValueRefused: the value is not JSON, JSON would change it (two keys become one), or it cannot be stored.
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
    """Whether strings in a JSON text have lone surrogates, raw or escaped; `value` is the parsed text."""
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
    # A number that underflows is parsed as zero.
    if (value == 0 or isinf(value)) and is_out_of_range(text):
        raise ValueRefused(f"a number {OUT_OF_RANGE}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueRefused(f"a key {REPEATED}")
    return found


def _constant(text: str) -> NoReturn:
    raise ValueRefused(f"it has {text}, which is not a JSON number")


_DECODER = json.JSONDecoder(
    parse_int=_integer, parse_float=_number, parse_constant=_constant, object_pairs_hook=_object
)
