"""Replaces placeholders in nodes, as JSON: in payloads, HTTP requests and the parameters of definitions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping

URL, BODY = "url", "body"
DEFINITION, PARAMETERS = "definition", "parameters"
OF_A_TARGET = frozenset({URL, BODY, "headers", "query"})
"""Fields of a target whose texts may contain placeholders."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replaces placeholders by values.

    In a payload or the JSON body of a request, a text that consists only of a placeholder becomes the value itself, of
    any type. Elsewhere the value becomes part of the text; in a URL it is percent-encoded.

    Attributes:
        placeholder: pattern with two groups: the escape characters, and the name.
        prefix: common prefix of all placeholders.
        values: by name.
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
    """JSON in UTF-8 without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def json_text(value: object) -> str:
    """JSON without spaces, with fields sorted by name."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
