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
from itertools import accumulate, islice
from math import inf
from typing import TYPE_CHECKING, Any, NoReturn

from duetime.contract.http.json_paths import BODY, joined, path_of, shown
from duetime.contract.http.request_errors import (
    MOST_FAULTS,
    BodyTooLarge,
    BodyUnreadable,
    Fault,
    FaultCode,
    FieldsInvalid,
)
from duetime.domain.json_values import (
    LONE_SURROGATE,
    OUT_OF_RANGE,
    REPEATED,
    SURROGATE,
    TOO_MANY_DIGITS,
    decoded,
    has_too_many_digits,
    is_out_of_range,
)
from duetime.domain.limits import MAX_BODY_BYTES, MAX_JSON_DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterator


_GZIP = b"\x1f\x8b"
_GZIP_REPLACED = "\x1f\ufffd"
"""How a gzip body begins that somebody has read as UTF-8."""
_REPLACEMENT = "\ufffd"
"""What stands where bytes were that are no character."""
_PACKED = "is packed by gzip: say so by 'Content-Encoding: gzip'"
_PACKED_AS_TEXT = (
    "is packed, but the gateway handed it on as text: send a packed body without 'Content-Type', then it comes through"
)
_UTF_16 = "is UTF-16 or UTF-32: send UTF-8"
_NOT_UTF_8 = "is not UTF-8: bytes that are no character were replaced on its way"
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_STEPS = [(byte in b"[{") - (byte in b"]}") for byte in range(256)]
"""By how much each byte of a text outside its strings nests what follows."""
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b'[]{}"')
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


def read(body: str | None, *, is_base64: bool = False, depth: int = MAX_JSON_DEPTH) -> Document:
    """Read a body.

    Raises:
        BodyTooLarge: it has more bytes than a request may have.
        BodyUnreadable: it is not JSON in UTF-8.
        FieldsInvalid: it is nested too deeply.
    """
    return document_of(text_of(body or "", is_base64=is_base64), depth)


def document_of(text: str, depth: int = MAX_JSON_DEPTH) -> Document:
    """Parse the text of a body.

    Raises:
        BodyUnreadable: it is not JSON.
        FieldsInvalid: it is nested too deeply.
    """
    if not text.strip():
        raise BodyUnreadable("is empty")
    if (unlike := _not_json(text)) is not None:
        raise BodyUnreadable(unlike)
    _reject_deep(text, depth)
    value, is_marked = parse(text)
    return Document(value, is_marked or _may_have_surrogates(text))


def _may_have_surrogates(text: str) -> bool:
    """Whether any stand in a text; what is asked first takes no time."""
    if "\\u" in text and _SURROGATE_ESCAPE.search(text):
        return True
    return not text.isascii() and SURROGATE.search(text) is not None


def reject_invalid_values(value: object, document: Document, place: tuple[str | int, ...] = ()) -> None:
    """Refuse a part of a document in which the guard has marked something."""
    if document.marked and (faults := faults_in(value, path_of(place) if place else "")):
        raise FieldsInvalid(faults)


def text_of(body: str, *, is_base64: bool = False, encoding: str = "", length: str | None = None) -> str:
    """The text of a body, whatever it is.

    Args:
        body: as the gateway hands it on.
        is_base64: whether the gateway has encoded it.
        encoding: its `Content-Encoding`, if it has one.
        length: its `Content-Length`, if that is known.

    Raises:
        BodyTooLarge: it has more bytes than a request may have, packed or unpacked.
        BodyUnreadable: it is not base64 or UTF-8, as it should be, or not packed as it says.
        EncodingUnsupported: it is packed otherwise than by gzip.
    """
    # Base64 has four characters for three bytes: too long a text is refused before it is decoded.
    if len(body) > (MAX_BODY_BYTES * 4 // 3 + 4 if is_base64 else MAX_BODY_BYTES):
        raise BodyTooLarge(MAX_BODY_BYTES)
    if is_base64:
        return _decoded(body, encoding)
    bytes_ = len(body) if body.isascii() else len(body.encode("utf-8", "surrogatepass"))
    if bytes_ > MAX_BODY_BYTES:
        raise BodyTooLarge(MAX_BODY_BYTES)
    if encoding:
        unpacked(b"", encoding)
        raise BodyUnreadable(_PACKED_AS_TEXT)
    if _REPLACEMENT in body and length is not None and length != str(bytes_):
        raise BodyUnreadable(_PACKED if body.startswith(_GZIP_REPLACED) else _NOT_UTF_8)
    return body


def unpacked(data: bytes, encoding: str) -> bytes:
    """The bytes of a body without its `Content-Encoding`; see `contract.http.compression`."""
    # Bodies are seldom packed: most functions never need it.
    from duetime.contract.http.compression import unpack  # noqa: PLC0415 - see the line above

    return unpack(data, encoding, MAX_BODY_BYTES)


def _decoded(body: str, encoding: str) -> str:
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise BodyUnreadable("is not base64") from None
    if encoding:
        data = unpacked(data, encoding)
    if len(data) > MAX_BODY_BYTES:
        raise BodyTooLarge(MAX_BODY_BYTES)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BodyUnreadable(_unlike_utf_8(data) or f"is not UTF-8 at byte {error.start}") from None


def _unlike_utf_8(data: bytes) -> str | None:
    """What bytes are that are not UTF-8, if that can be seen."""
    if data.startswith(_GZIP):
        return _PACKED
    return _UTF_16 if data.startswith((b"\xff\xfe", b"\xfe\xff")) else None


def _not_json(text: str) -> str | None:
    """What a text is that begins like something other than JSON."""
    if text.startswith("\ufeff"):
        return "begins with a byte order mark (U+FEFF): leave it out"
    if text.startswith(_GZIP_REPLACED):
        return _PACKED
    return _UTF_16 if "\x00" in text[:4] else None


def _bracket_depth(text: str) -> float:
    """How deeply a text is nested; infinite if strings hold brackets, of which this does not tell which they are.

    It takes a tenth of the time in which the tokens of a text are told apart.
    """
    data = text.encode("utf-8", "surrogatepass")
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # What is left of a string without brackets is its two quotation marks.
    brackets = data.translate(None, _NO_BRACKETS).replace(b'""', b"")
    return inf if b'"' in brackets else max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def _reject_deep(text: str, limit: int) -> None:
    if text.count("[") + text.count("{") <= limit or _bracket_depth(text) <= limit:
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
                    [
                        Fault(
                            shown(key.strip('"')) if key else BODY,
                            f"is nested deeper than {limit} levels",
                            FaultCode.TOO_DEEP,
                        )
                    ]
                )


@dataclass(frozen=True, slots=True)
class _Mark:
    """Stands where a value was that cannot be accepted."""

    reason: str
    code: FaultCode


def parse(text: str) -> tuple[object, bool]:
    """A text's value, with marks in place of what cannot be accepted, and whether there is any.

    Raises:
        BodyUnreadable: it is not JSON.
    """
    try:
        return decoded(text), False
    except (ValueError, RecursionError):
        reader = Reader()
        return reader.parse(text), reader.marked


class Reader:
    """Parses one text.

    Attributes:
        marked: something in it was marked.
    """

    def __init__(self) -> None:
        self.marked = False

    def parse(self, text: str) -> object:
        """The text's value, with marks in place of what cannot be accepted.

        Raises:
            BodyUnreadable: it is not JSON.
        """
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
                f"is not JSON: {error.msg.lower().removesuffix(' at')} at line {error.lineno}, column {error.colno}"
            ) from None
        except RecursionError:
            # The depth was counted before; a smaller stack than expected must still not be the caller's 500.
            _reject_unparsable()

    def _integer(self, text: str) -> object:
        if has_too_many_digits(text):
            return self._mark(TOO_MANY_DIGITS, FaultCode.TOO_LONG)
        return int(text)

    def _number(self, text: str) -> object:
        if has_too_many_digits(text):
            return self._mark(TOO_MANY_DIGITS, FaultCode.TOO_LONG)
        return self._mark(OUT_OF_RANGE, FaultCode.OUT_OF_RANGE) if is_out_of_range(text) else float(text)

    def _constant(self, text: str) -> object:
        return self._mark(f"is {text}, which is no JSON number", FaultCode.NOT_ALLOWED)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            times = Counter(key for key, _ in pairs)
            found |= {key: self._mark(REPEATED, FaultCode.DUPLICATE) for key, count in times.items() if count > 1}
        return found

    def _mark(self, reason: str, code: FaultCode) -> _Mark:
        self.marked = True
        return _Mark(reason, code)


def _reject_unparsable() -> NoReturn:
    raise BodyUnreadable("is nested too deeply")


def faults_in(value: object, path: str = "") -> tuple[Fault, ...]:
    """The first places in a document, or in the part of it at a path, that cannot be accepted."""
    return tuple(islice(_faults(value, path), MOST_FAULTS))


def _faults(value: object, path: str) -> Iterator[Fault]:
    """The places of all marks and lone surrogates in a value that is known not to be deep."""
    if isinstance(value, _Mark):
        yield Fault(path or BODY, value.reason, value.code)
    elif isinstance(value, str):
        if SURROGATE.search(value):
            yield Fault(path or BODY, LONE_SURROGATE, FaultCode.NOT_ALLOWED)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(item, joined(path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            if SURROGATE.search(key):
                yield Fault(joined(path, key), "has a lone surrogate in its name", FaultCode.NOT_ALLOWED)
            yield from _faults(item, joined(path, key))
