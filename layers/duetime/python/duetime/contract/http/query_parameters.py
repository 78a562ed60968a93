"""Query parameters: rejects unknown and repeated ones, and decodes them once."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeVar
from urllib.parse import parse_qsl

from pydantic import BeforeValidator, WithJsonSchema

from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid, ParametersInvalid
from duetime.contract.http.request_json import shown
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import validated

if TYPE_CHECKING:
    from collections.abc import Sequence


P = TypeVar("P", bound="Parameters")
_MOST_PARAMETERS = 100
_WHOLE = re.compile(r"[0-9]{1,3}")
_FLAGS = {"1": True, "true": True, "0": False, "false": False}


def whole_number(text: object, least: int, most: int) -> int:
    """Parses a whole number within limits."""
    number = int(text) if isinstance(text, str) and _WHOLE.fullmatch(text) else -1
    if not least <= number <= most:
        raise ValueError(f"should be a whole number from {least} to {most}")
    return number


def _flag(text: object) -> bool:
    if text not in _FLAGS:
        raise ValueError("should be 1 (true) or 0 (false)")
    return _FLAGS[str(text)]


Flag = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"type": "boolean"})]
"""A boolean: `1` or `true`, `0` or `false`."""


class Parameters(Body):
    """The query parameters of a request.

    Attributes:
        repeatable: parameters that may be repeated.
    """

    repeatable: ClassVar[frozenset[str]] = frozenset()

    def contradictions(self) -> Sequence[Fault]:
        """Faults of combinations of valid parameters."""
        return ()


def read_query(model: type[P], raw: str) -> P:
    """Parses a query.

    Raises:
        ParametersInvalid: a parameter is unknown, repeated, or has an invalid value.
    """
    pairs = _pairs(raw, model.repeatable)
    values: dict[str, object] = dict(pairs)
    values |= {name: [value for key, value in pairs if key == name] for name in model.repeatable & values.keys()}
    try:
        query = validated(model, values)
    except FieldsInvalid as refusal:
        raise ParametersInvalid(replace(each, reason=_of_parameter(each.reason)) for each in refusal.faults) from None
    if faults := query.contradictions():
        raise ParametersInvalid(faults)
    return query


def no_query(raw: str) -> None:
    """Rejects all parameters by name.

    Raises:
        ParametersInvalid: there is a parameter.
    """
    if pairs := _pairs(raw):
        raise ParametersInvalid(
            Fault(shown(name), "is not a known parameter: this operation has none", FaultCode.UNKNOWN_FIELD)
            for name, _ in pairs
        )


def _pairs(raw: str, repeatable: frozenset[str] = frozenset()) -> Sequence[tuple[str, str]]:
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS)
    except UnicodeDecodeError:
        raise ParametersInvalid.of("query", "is not UTF-8", FaultCode.UNREADABLE) from None
    except ValueError:
        reason = f"has more than {_MOST_PARAMETERS} parameters"
        raise ParametersInvalid.of("query", reason, FaultCode.TOO_LONG) from None
    times = Counter(name for name, _ in pairs)
    repeated = [name for name, count in times.items() if count > 1 and name not in repeatable]
    if repeated:
        reason = "is given more than once, and takes one value"
        raise ParametersInvalid(Fault(shown(name), reason, FaultCode.DUPLICATE) for name in repeated)
    return pairs


def _of_parameter(reason: str) -> str:
    return reason.replace("is not a known field", "is not a known parameter")
