"""Reads a request's body before anything else does, so that no text can hurt what comes after.

Parsers raise on deep nesting and endless integers, accept NaN and repeated keys, and hand on lone surrogates that
no encoder takes. Here such a value is replaced by a mark while it is parsed, and only a body in which something
was marked is walked through again to name the place.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from duetime.contract.http.json_parser import SURROGATE, Reader, faults_in
from duetime.contract.http.json_paths import BODY, path_of, shown
from duetime.contract.http.request_errors import BodyTooLarge, BodyUnreadable, Fault, FieldsInvalid
from duetime.domain.limits import MAX_BODY_BYTES, MAX_JSON_DEPTH

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


def read(body: str | None, *, is_base64: bool = False, depth: int = MAX_JSON_DEPTH) -> Document:
    """Read a body.

    Raises:
        BodyTooLarge: it has more bytes than a request may have.
        BodyUnreadable: it is not JSON in UTF-8.
        FieldsInvalid: it is nested too deeply.
    """
    text = text_of(body or "", is_base64=is_base64)
    if not text.strip():
        raise BodyUnreadable("is empty")
    _reject_deep(text, depth)
    reader = Reader()
    value = reader.parse(text)
    suspect = reader.marked or _SURROGATE_ESCAPE.search(text) or SURROGATE.search(text)
    return Document(value, marked=bool(suspect))


def reject_invalid_values(value: object, document: Document, place: tuple[str | int, ...] = ()) -> None:
    """Refuse a part of a document in which the guard has marked something."""
    if document.marked and (faults := faults_in(value, path_of(place) if place else "")):
        raise FieldsInvalid(faults)


def text_of(body: str, *, is_base64: bool = False) -> str:
    """The text of a body, whatever it is.

    Raises:
        BodyTooLarge: it has more bytes than a request may have.
        BodyUnreadable: it is not base64 or UTF-8, as it should be.
    """
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


def _reject_deep(text: str, limit: int) -> None:
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
                    [Fault(shown(key.strip('"')) if key else BODY, f"is nested deeper than {limit} levels")]
                )
