"""Parses request JSON, builds paths such as `tasks[7].payload.x`, and applies merge patches (RFC 7396)."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic_core import from_json, to_json

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
    has_too_many_digits,
    is_out_of_range,
)
from duetime.domain.limits import MAX_BODY_BYTES, MAX_JSON_DEPTH, MAX_NUMBER_DIGITS
from duetime.domain.redaction import REDACTED
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


BODY = "body"
"""Path of the entire body."""
_LONGEST_KEY = 64


def joined(path: str, part: str | int) -> str:
    """Extends a path by one step; the empty path refers to the body."""
    if isinstance(part, int):
        return f"{path or BODY}[{part}]"
    return f"{path}.{shown(part)}" if path else shown(part)


def path_of(parts: Iterable[str | int]) -> str:
    """The path with the given steps."""
    return reduce(joined, parts, "") or BODY


def shown(key: str) -> str:
    """A client's key in printable form; a long key is truncated, and an empty key is shown as `""`."""
    cut = key[:_LONGEST_KEY]
    printable = cut if cut.isprintable() else cut.encode("unicode_escape").decode("ascii")
    return f"{printable}…" if len(key) > _LONGEST_KEY else printable or '""'


_KIND = "kind"
_BODY = "body"


def merged(before: Mapping[str, Any], patch: Mapping[str, Any], opaque: Sequence[str] = ()) -> dict[str, Any]:
    """Applies a merge patch to an object.

    Null removes a field, objects are merged, and other values replace the old values.

    An object with a `kind` is replaced completely if the kind changes, because kinds have no fields in common. The
    `body` of such an object can be any JSON, and is always replaced completely.

    Args:
        before: the current object.
        patch: the changes.
        opaque: fields whose values, including null, are replaced completely.
    """
    after = dict(before)
    for name, value in patch.items():
        if name in opaque or (name == _BODY and value is not None and _KIND in before):
            after[name] = value
        elif value is None:
            after.pop(name, None)
        elif isinstance(value, Mapping):
            known = before.get(name)
            is_same = isinstance(known, Mapping) and value.get(_KIND, known.get(_KIND)) == known.get(_KIND)
            after[name] = merged(known if is_same and isinstance(known, Mapping) else {}, value)
        else:
            after[name] = value
    return after


_GZIP = b"\x1f\x8b"
_GZIP_REPLACED = "\x1f\ufffd"
"""How a gzip body begins if it was decoded as UTF-8."""
_REPLACEMENT = "\ufffd"
"""The character that decoders substitute for invalid bytes."""
_PACKED = "is compressed with gzip: set 'Content-Encoding: gzip'"
_PACKED_AS_TEXT = "is compressed, but the gateway passed it on as text: send a compressed body without 'Content-Type'"
_UTF_16 = "is UTF-16 or UTF-32: send UTF-8"
_NOT_UTF_8 = "is not UTF-8: invalid bytes were replaced in transit"
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_REDACTED = f'"{REDACTED}"'
_NOT_THE_VALUE = f"is `{REDACTED}`, the marker of a hidden value: send the value, or leave the field out"
_SHAPE = bytes.maketrans(b"123456789.E", b"0000000000e")
_TOO_LONG = b"0" * (MAX_NUMBER_DIGITS + 1)
"""Pattern of a number that may have too many digits."""
_EXPONENT = b"0e000"
"""Pattern of an exponent with three digits; a number with a shorter exponent is never out of range."""
_COLON = "\\u003"
"""How an escaped colon (U+003A) begins."""
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b'[]{}"')
# The possessive quantifiers prevent backtracking for any text.
_NESTING = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


@frozen
class Document:
    """A parsed body.

    Attributes:
        value: the parsed JSON.
        marked: whether any value may be invalid; `faults_in` returns the paths of invalid values.
        depth: an upper bound on the nesting depth.
    """

    value: object
    marked: bool
    depth: float = inf


def read(body: str | None, *, is_base64: bool = False, depth: int = MAX_JSON_DEPTH) -> Document:
    """Parses a body.

    Raises:
        BodyTooLarge: the body exceeds the maximum size.
        BodyUnreadable: the body is not JSON in UTF-8.
        FieldsInvalid: the body is nested too deeply.
    """
    return document_of(text_of(body or "", is_base64=is_base64), depth)


def document_of(text: str, depth: int = MAX_JSON_DEPTH) -> Document:
    """Parses the text of a body.

    Raises:
        BodyUnreadable: the text is not JSON.
        FieldsInvalid: the text is nested too deeply.
    """
    try:
        # `from_json` rejects NaN, infinity and lone surrogates; a raw surrogate is a TypeError.
        value = from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError):
        return _examined(text, depth)
    if not _is_exact(text, value):
        return _examined(text, depth)
    return Document(value, marked=False, depth=_depth(text, depth))


def _examined(text: str, depth: int) -> Document:
    """Parses a string that may contain invalid values; this takes three times as long as parsing a valid string."""
    if not text or text.isspace():
        raise BodyUnreadable("is empty")
    if (unlike := _not_json(text)) is not None:
        raise BodyUnreadable(unlike)
    found = _depth(text, depth)
    reader = Reader()
    value = reader.parse(text)
    return Document(value, reader.marked or _may_have_surrogates(text), found)


def _is_exact(text: str, value: object) -> bool:
    """Whether it is certain that a string has no repeated keys, redacted values or numbers that parsing has changed."""
    shape = text.encode().translate(_SHAPE, b"+-")
    if _TOO_LONG in shape or _EXPONENT in shape or _REDACTED in text or _COLON in text:
        return False
    # Every key is followed by a colon, and colons in strings are kept, so the value has fewer colons only if keys were
    # repeated.
    return text.count(":") == to_json(value).count(b":")


def _may_have_surrogates(text: str) -> bool:
    """Whether a string may contain surrogates; the fastest check runs first."""
    if "\\u" in text and _SURROGATE_ESCAPE.search(text):
        return True
    return not text.isascii() and SURROGATE.search(text) is not None


def reject_invalid_values(value: object, document: Document, place: tuple[str | int, ...] = ()) -> None:
    """Rejects a part of a document that contains invalid values."""
    if document.marked and (faults := faults_in(value, path_of(place) if place else "")):
        raise FieldsInvalid(faults)


def text_of(body: str, *, is_base64: bool = False, encoding: str = "", length: str | None = None) -> str:
    """The text of a body; the text may be invalid JSON.

    Args:
        body: the body from the gateway.
        is_base64: whether the gateway has encoded the body.
        encoding: the `Content-Encoding`, if any.
        length: the `Content-Length`, if known.

    Raises:
        BodyTooLarge: the body exceeds the maximum size, compressed or decompressed.
        BodyUnreadable: the body is not valid base64, UTF-8 or gzip.
        EncodingUnsupported: the encoding is not gzip.
    """
    # Base64 uses four characters for three bytes, so a string that is too long can be rejected before it is decoded.
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
    """Decompresses a body; see `contract.http.compression`."""
    # Bodies are rarely compressed, so most processes never need the imported module.
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
    """The likely format of bytes that are not UTF-8; `None` if the format is not recognized."""
    if data.startswith(_GZIP):
        return _PACKED
    return _UTF_16 if data.startswith((b"\xff\xfe", b"\xfe\xff")) else None


def _not_json(text: str) -> str | None:
    """The likely format of a string whose start is not JSON."""
    if text.startswith("\ufeff"):
        return "begins with a byte order mark (U+FEFF): leave it out"
    if text.startswith(_GZIP_REPLACED):
        return _PACKED
    return _UTF_16 if "\x00" in text[:4] else None


def _bracket_depth(text: str, limit: int) -> float:
    """The nesting depth of JSON; infinite if the depth exceeds a limit or if strings contain brackets.

    This function takes a tenth of the time that tokenizing the JSON takes.
    """
    data = text.encode("utf-8", "surrogatepass")
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Strings without brackets are reduced to their two quotation marks.
    brackets = data.translate(_BRACKETS, _NO_BRACKETS).replace(b'""', b"")
    depth = 0
    while brackets and depth < limit:
        # The innermost level.
        brackets = brackets.replace(b"[]", b"")
        depth += 1
    return inf if brackets else depth


def _depth(text: str, limit: int) -> float:
    """An upper bound on the nesting depth of JSON, which is at most the limit.

    Raises:
        FieldsInvalid: the JSON is nested more deeply than the limit allows.
    """
    if (brackets := text.count("[") + text.count("{")) <= limit:
        return brackets
    if (depth := _bracket_depth(text, limit)) <= limit:
        return depth
    _reject_deep(text, limit)
    return limit


def _reject_deep(text: str, limit: int) -> None:
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


@frozen
class _Mark:
    """Replaces an invalid value."""

    reason: str
    code: FaultCode


class Reader:
    """A parser for one text.

    Attributes:
        marked: whether any value was replaced.
    """

    def __init__(self) -> None:
        self.marked = False

    def parse(self, text: str) -> object:
        """Parses the text, with marks in place of invalid values.

        Raises:
            BodyUnreadable: the text is not JSON.
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
            # The depth was checked before; if the stack is still too small, the response should not have status 500.
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
        return self._mark(f"is {text}, which is not a JSON number", FaultCode.NOT_ALLOWED)

    def _object(self, pairs: list[tuple[str, Any]]) -> object:
        found = dict(pairs)
        if REDACTED in found:
            return self._mark(_NOT_THE_VALUE, FaultCode.NOT_ALLOWED)
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
    """The first invalid values in a document, or in the part at a path."""
    return tuple(islice(_faults(value, path), MOST_FAULTS))


def _faults(value: object, path: str) -> Iterator[Fault]:
    """The paths of all marks and lone surrogates in a value whose depth is limited."""
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


def compact(value: object) -> bytes:
    """Encodes JSON in UTF-8 without spaces.

    The value must come from a document, which ensures that its depth is limited and that it contains no NaN.
    """
    return to_json(value)
