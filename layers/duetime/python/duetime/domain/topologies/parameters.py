"""Parses the parameters of topology definitions, and inserts their values into a run's nodes.

A parameter is used as a placeholder, such as `<duetime.parameters.region>`. Placeholders are allowed in a node's
payload, in the URL, headers, query and body of an HTTP target, in the key of an event, and in the parameters of a
definition that a node runs. Placeholders are replaced when a run is created, so that the run's graph completely
describes its nodes.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_PARAMETERS_BYTES
from duetime.domain.tasks.placeholders import PREFIX, refusal, texts_of
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Place = tuple[str | int, ...]


URL, BODY = "url", "body"
DEFINITION, PARAMETERS = "definition", "parameters"
OF_A_TARGET = frozenset({URL, BODY, "headers", "query", "key"})
"""Fields of a target whose strings may contain placeholders."""


@frozen
class Replacement:
    """Replaces placeholders with values.

    In a payload or the JSON body of a request, a string that consists only of a placeholder becomes the value itself,
    whatever its type. Elsewhere, the value becomes part of the text; in a URL, it is percent-encoded.

    Attributes:
        placeholder: pattern with two groups, which are the escape characters and the name.
        prefix: common prefix of all placeholders.
        values: values by name.
    """

    placeholder: re.Pattern[str]
    prefix: str
    values: Mapping[str, Any]

    def in_node(self, node: Any) -> Any:  # noqa: ANN401 - any JSON
        """A node with its placeholders replaced."""
        if not isinstance(node, dict):
            return node
        found = dict(node)
        if "payload" in node:
            found["payload"] = self._replaced(node["payload"], self._typed)
        target = node.get("target")
        if isinstance(target, dict):
            found["target"] = {name: self._of_target(name, each) for name, each in target.items()}
        return found

    def _of_target(self, name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
        if name == DEFINITION and isinstance(value, dict) and PARAMETERS in value:
            return {**value, PARAMETERS: self._replaced(value[PARAMETERS], self._typed)}
        if name not in OF_A_TARGET:
            return value
        if name == BODY and isinstance(value, dict):
            return {
                form: self._replaced(each, self._typed if form == "json" else self._inside)
                for form, each in value.items()
            }
        return self._replaced(value, self._in_url if name == URL else self._inside)

    def _replaced(self, value: Any, replace: Callable[[str], Any]) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, str):
            return replace(value) if self.prefix in value else value
        if isinstance(value, list):
            return [self._replaced(each, replace) for each in value]
        if isinstance(value, dict):
            return {key: self._replaced(each, replace) for key, each in value.items()}
        return value

    def _typed(self, text: str) -> Any:  # noqa: ANN401 - any JSON
        found = self.placeholder.fullmatch(text)
        if found is not None and not found[1] and found[2] in self.values:
            return self.values[found[2]]
        return self._inside(text)

    def _in_url(self, text: str) -> str:
        return self._inside(text, lambda value: quote(value, safe=""))

    def _inside(self, text: str, encode: Callable[[str], str] = str) -> str:
        def value(found: re.Match[str]) -> str:
            escaped, name = found.groups()
            if escaped or name not in self.values:
                return found[0]
            given = self.values[name]
            return encode(given if isinstance(given, str) else json_text(given))

        return self.placeholder.sub(value, text)


def compact_json(value: object) -> bytes:
    """Encodes a value as JSON in UTF-8 without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def json_text(value: object) -> str:
    """Encodes a value as JSON without spaces, with fields sorted by name."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


PARAMETER_PREFIX = f"{PREFIX}parameters."
_PLACEHOLDER = re.compile(rf"(<?){re.escape(PARAMETER_PREFIX)}([^<>]*)>")
_MISPLACED = (
    "cannot hold a parameter: the payload can, and of a target url, headers, query, body, key and the parameters of "
    "a definition"
)


class ParameterType(StrEnum):
    """The type of a parameter's values, named as in JSON Schema."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    ARRAY = "array"


_PYTHON: Mapping[ParameterType, tuple[type, ...]] = {
    ParameterType.STRING: (str,),
    ParameterType.INTEGER: (int,),
    ParameterType.NUMBER: (int, float),
    ParameterType.BOOLEAN: (bool,),
    ParameterType.OBJECT: (dict,),
    ParameterType.ARRAY: (list,),
}
_SAMPLES: Mapping[ParameterType, Any] = {
    ParameterType.STRING: "x",
    ParameterType.INTEGER: 1,
    ParameterType.NUMBER: 1,
    ParameterType.BOOLEAN: True,
    ParameterType.OBJECT: {},
    ParameterType.ARRAY: [],
}


@frozen
class Parameter:
    """One parameter of a definition.

    Attributes:
        type: type of its values.
        is_required: whether each run must set a value.
        default: the value for runs that set no value, if the parameter is not required.
        enum: allowed values; `None` for all values of its type.
    """

    type: ParameterType
    is_required: bool
    default: Any = None
    enum: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Parameter:
        """Parses a parameter of a definition."""
        enum = written.get("enum")
        return cls(
            ParameterType(written.get("type", ParameterType.STRING)),
            "default" not in written,
            written.get("default"),
            None if enum is None else tuple(enum),
        )

    @property
    def sample(self) -> Any:  # noqa: ANN401 - any JSON
        """A valid value, which is used to validate a definition before it runs."""
        if not self.is_required:
            return self.default
        return self.enum[0] if self.enum else _SAMPLES[self.type]

    def fault(self, value: object) -> tuple[str, FaultCode] | None:
        """Why a value is invalid, as a reason and a code; `None` if the value is valid."""
        # A boolean is a number in Python, but not in JSON.
        is_other = isinstance(value, bool) is not (self.type is ParameterType.BOOLEAN)
        if is_other or not isinstance(value, _PYTHON[self.type]):
            return f"should be of the type {self.type.value}", FaultCode.WRONG_TYPE
        if self.enum is not None and json_text(value) not in map(json_text, self.enum):
            return f"should be one of {', '.join(map(json_text, self.enum))}", FaultCode.NOT_ALLOWED
        for _, text, _ in texts_of(value, ()):
            if (reason := refusal(text)) is not None:
                return reason, FaultCode.INVALID
        return None


def parameters_of(document: Mapping[str, Any]) -> Mapping[str, Parameter]:
    """The parameters that a definition declares, by name."""
    return {name: Parameter.of(written) for name, written in document.get("parameters", {}).items()}


def values_of(declared: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameter values of a run, which are the given values, and defaults for all other parameters.

    Raises:
        FieldInvalid: a value is unknown, missing, or of the wrong type; or the values are too large in total.
    """
    values = {}
    for name in given:
        if name not in declared:
            known = f"; it has {', '.join(declared)}" if declared else ""
            reason = f"is not a parameter of the definition{known}"
            raise FieldInvalid(f"parameters.{name}", reason, FaultCode.UNKNOWN_FIELD)
    for name, parameter in declared.items():
        if name not in given and parameter.is_required:
            raise FieldInvalid(f"parameters.{name}", "is required", FaultCode.REQUIRED)
        values[name] = given.get(name, parameter.default)
        if name in given and (fault := parameter.fault(values[name])) is not None:
            raise FieldInvalid(f"parameters.{name}", *fault)
    if (size := len(json_text(values).encode())) > MAX_PARAMETERS_BYTES:
        reason = f"have {size} bytes together; {MAX_PARAMETERS_BYTES} are allowed"
        raise FieldInvalid("parameters", reason, FaultCode.TOO_LONG)
    return values


def misplaced(nodes: Mapping[str, Any], declared: Mapping[str, Parameter]) -> Iterator[tuple[Place, str]]:
    """Parameters' placeholders in places where placeholders are not replaced, with the reason."""
    for key, node in nodes.items():
        for place, text, is_key in texts_of(node, ("nodes", key)):
            for escaped, name in _PLACEHOLDER.findall(text):
                if escaped or is_key:
                    # Keys with placeholders are rejected elsewhere.
                    continue
                if not _may_hold_parameters(place[2:]):
                    yield place, _MISPLACED
                elif name not in declared:
                    there_are = f"has {', '.join(declared)}" if declared else "declares none"
                    yield (
                        place,
                        f"has an unknown parameter, '{PARAMETER_PREFIX}{name[:40]}>'; the definition {there_are}",
                    )


def with_values(nodes: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Nodes, as JSON, in which the placeholders of parameters are replaced by values.

    In a payload or a JSON body, a string that consists only of a placeholder becomes the value itself, whatever its
    type. Elsewhere, the value becomes part of the text; in a URL, it is percent-encoded.
    """
    found = Replacement(_PLACEHOLDER, PARAMETER_PREFIX, values)
    return {key: found.in_node(node) for key, node in nodes.items()}


def _may_hold_parameters(place: Place) -> bool:
    """Whether placeholders are replaced in this part of a node."""
    if place[:3] == ("target", DEFINITION, PARAMETERS):
        return True
    return place[:1] == ("payload",) or (place[:1] == ("target",) and place[1:2] != () and place[1] in OF_A_TARGET)
