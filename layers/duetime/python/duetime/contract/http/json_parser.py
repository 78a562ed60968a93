"""Parses JSON, and marks each value that cannot be accepted, so that its place can be named afterwards.

Almost no text has such a value: it is parsed by a decoder that is made once and gives up at the first of them. Only
then a `Reader` goes through it again.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from duetime.contract.http.json_paths import BODY, joined
from duetime.contract.http.request_errors import MOST_FAULTS, BodyUnreadable, Fault, FaultCode
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

if TYPE_CHECKING:
    from collections.abc import Iterator


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
