"""Reads a request's body before anything else does, so that no text can hurt what comes after.

Parsers raise on deep nesting and endless integers, accept NaN and repeated keys, and hand on lone surrogates that
no encoder takes. Here such a value is replaced by a mark while it is parsed, and only a body in which something
was marked is walked through again to name the place.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from math import isinf
from typing import TYPE_CHECKING, Any, NoReturn

from duetime.contract.paths import WHOLE, joined, shown
from duetime.contract.refusals import MOST_FAULTS, BodyTooLarge, BodyUnreadable, Fault, FieldsInvalid
from duetime.domain.limits import MAX_BODY_BYTES, MAX_JSON_DEPTH, MAX_NUMBER_DIGITS

if TYPE_CHECKING:
    from collections.abc import Iterator

_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
# Possessive, so that no text makes it go back over what it has read.
_NESTING = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """A body as it was read.

    Attributes:
        value: the parsed JSON.
        marked: something in it may be unacceptable; `faults_in` names the places.
    """

    value: object
    marked: bool


@dataclass(frozen=True, slots=True)
class _Mark:
    """Stands where a value was that cannot be accepted."""

    reason: str


def read(body: str | None, *, is_base64: bool = False, depth: int = MAX_JSON_DEPTH) -> Document:
    """Read a body.

    Raises:
        BodyTooLarge: it has more bytes than a request may have.
        BodyUnreadable: it is not JSON in UTF-8.
        FieldsInvalid: it is nested too deeply.
    """
    text = _text_of(body or "", is_base64=is_base64)
    if not text.strip():
        raise BodyUnreadable("is empty")
    _refuse_deep(text, depth)
    reader = _Reader()
    value = reader.parse(text)
    suspect = reader.marked or _SURROGATE_ESCAPE.search(text) or _SURROGATE.search(text)
    return Document(value, marked=bool(suspect))


def faults_in(value: object) -> tuple[Fault, ...]:
    """The first places in a document, or in a part of it, that cannot be accepted."""
    return tuple(islice(_faults(value, ""), MOST_FAULTS))


def _text_of(body: str, *, is_base64: bool) -> str:
    # Base64 has four characters for three bytes: too long a text is refused before it is decoded.
    if len(body) > (MAX_BODY_BYTES * 4 // 3 + 4 if is_base64 else MAX_BODY_BYTES):
        raise BodyTooLarge(MAX_BODY_BYTES)
    if is_base64:
        return _decoded(body)
    if len(body.encode("utf-8", "surrogatepass")) > MAX_BODY_BYTES:
        raise BodyTooLarge(MAX_BODY_BYTES)
    return body


def _decoded(body: str) -> str:
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise BodyUnreadable("is not base64") from None
    if len(data) > MAX_BODY_BYTES:
        raise BodyTooLarge(MAX_BODY_BYTES)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BodyUnreadable(f"is not UTF-8 at byte {error.start}") from None


def _refuse_deep(text: str, limit: int) -> None:
    if text.count("[") + text.count("{") <= limit:
        return
    depth = 0
    key = ""
    for token in _NESTING.finditer(text):
        first = text[token.start()]
        if first == '"':
            key = token[0] if depth == 1 else key
        else:
            depth += 1 if first in "[{" else -1
            if depth > limit:
                raise FieldsInvalid(
                    [Fault(shown(key.strip('"')) if key else WHOLE, f"is nested deeper than {limit} levels")]
                )


class _Reader:
    """Parses JSON, and puts marks where a value cannot be accepted."""

    def __init__(self) -> None:
        self.marked = False

    def parse(self, text: str) -> object:
        try:
            return json.loads(
                text,
                parse_int=self._integer,
                parse_float=self._number,
                parse_constant=self._constant,
                object_pairs_hook=self._object,
            )
        except json.JSONDecodeError as error:
            raise BodyUnreadable(
                f"is not JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}"
            ) from None
        except RecursionError:
            # The depth was counted before; a smaller stack than expected must still not be the caller's 500.
            _refuse_unparsable()

    def _integer(self, text: str) -> object:
        if len(text.lstrip("-")) > MAX_NUMBER_DIGITS:
            return self._mark(f"has more than {MAX_NUMBER_DIGITS} digits")
        return int(text)

    def _number(self, text: str) -> object:
        mantissa = text.lower().partition("e")[0].lstrip("-").replace(".", "")
        if len(mantissa) > MAX_NUMBER_DIGITS:
            return self._mark(f"has more than {MAX_NUMBER_DIGITS} digits")
        number = float(text)
        if isinf(number) or (number == 0 and mantissa.strip("0")):
            return self._mark("is outside the range of a 64-bit floating-point number")
        return number

    def _constant(self, text: str) -> object:
        return self._mark(f"is {text}, which is no JSON number")

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            times = Counter(key for key, _ in pairs)
            found |= {key: self._mark("appears more than once") for key, count in times.items() if count > 1}
        return found

    def _mark(self, reason: str) -> _Mark:
        self.marked = True
        return _Mark(reason)


def _refuse_unparsable() -> NoReturn:
    raise BodyUnreadable("is nested too deeply")


def _faults(value: object, path: str) -> Iterator[Fault]:
    """The places of all marks and lone surrogates in a value that is known not to be deep."""
    if isinstance(value, _Mark):
        yield Fault(path or WHOLE, value.reason)
    elif isinstance(value, str):
        if _SURROGATE.search(value):
            yield Fault(path or WHOLE, "contains a lone surrogate")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(item, joined(path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            if _SURROGATE.search(key):
                yield Fault(joined(path, key), "has a lone surrogate in its name")
            yield from _faults(item, joined(path, key))
