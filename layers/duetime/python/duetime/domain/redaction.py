"""Redacts values in payloads and results, so that readers and the archive do not see them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from duetime.domain.wildcards import ANY, wildcard_matcher
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REDACTED = "$redacted"
"""Name of the only field of a JSON object that replaces a hidden value."""
_CONTENTS = frozenset({"payload", "result", "json", "form"})
"""Response fields that contain JSON from the owner, except the fields below."""
_PARAMETERS = frozenset({"parameters", "default"})
"""Fields with topology definition parameters, whose values can be used by nodes of any type."""
_CHANGED = frozenset({"from", "to"})
"""Fields of a difference that contain values; the difference's `path` is the location of these values."""
_BODY = "body"
"""Field with the content of a request, in one of several forms, or with a target's response to a query."""
_SCHEMA = "payload_schema"
"""Field that contains field names but no values."""
_BY_NAME = "nodes"
"""Field that contains objects under names that users choose."""


def marker() -> dict[str, bool]:
    """The JSON that replaces a hidden value.

    This JSON cannot be mistaken for a value, and requests that contain it are rejected.
    """
    return {REDACTED: True}


@frozen
class Paths:
    """The hidden parts of a type.

    Attributes:
        all: whether everything is hidden.
        names: fields at any depth.
        pointers: JSON pointers, split into steps; the step `*` stands for any field or element.
    """

    all: bool = False
    names: frozenset[str] = frozenset()
    pointers: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, texts: Sequence[str]) -> Paths:
        """Parses paths as written in the settings, which are `*`, names, and JSON pointers."""
        names = frozenset(text for text in texts if text != ANY and not text.startswith("/"))
        pointers = [text[1:].split("/") for text in texts if text.startswith("/")]
        steps = (tuple(step.replace("~1", "/").replace("~0", "~") for step in each) for each in pointers)
        return cls(ANY in texts, names, tuple(steps))

    def removed_from(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """A copy of a value with markers in place of the hidden parts."""
        if self.all:
            return None if value is None else marker()
        return self._without(value, self.pointers)

    def _without(self, value: Any, pointers: Sequence[tuple[str, ...]]) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, dict):
            return {key: self._member(key, each, pointers) for key, each in value.items()}
        if isinstance(value, list):
            return [self._member(str(index), each, pointers) for index, each in enumerate(value)]
        return value

    def _member(self, step: str, value: Any, pointers: Sequence[tuple[str, ...]]) -> Any:  # noqa: ANN401 - any JSON
        below = [each[1:] for each in pointers if each[0] in {step, ANY}]
        return marker() if step in self.names or () in below else self._without(value, below)


@frozen
class Redaction:
    """The hidden parts of tasks' contents.

    Attributes:
        by_pattern: paths by type pattern; the paths of all matching patterns apply to a type.
    """

    by_pattern: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def texts_of(self, task_type: str | None) -> list[str]:
        """The paths of a type, as in the settings; the paths of all types if the type is unknown."""
        return [
            text
            for pattern, texts in self.by_pattern.items()
            if task_type is None or wildcard_matcher(pattern).fullmatch(task_type)
            for text in texts
        ]

    def removed_from(self, document: Any, task_type: str | None = None) -> Any:  # noqa: ANN401 - any JSON
        """A response, or a part of a response, with the contents of all tasks redacted.

        Args:
            document: JSON, in which an object with a `type` is a task or describes a task to create.
            task_type: the type of the task that the part belongs to; `None` if unknown.
        """
        if isinstance(document, list):
            return [self.removed_from(each, task_type) for each in document]
        if not isinstance(document, dict):
            return document
        named = document.get("type")
        known = named if isinstance(named, str) else task_type
        return {name: self._field(name, each, document, known) for name, each in document.items()}

    def _field(self, name: str, value: Any, within: Mapping[str, Any], task_type: str | None) -> Any:  # noqa: ANN401 - any JSON
        if name in _CONTENTS or (name == _BODY and task_type is None):
            # A topology's payload is a graph, whose nodes have their own types and payloads.
            return self._paths_of(task_type).removed_from(self.removed_from(value, task_type))
        if name in _PARAMETERS:
            return self._paths_of(None).removed_from(self.removed_from(value, task_type))
        if (name in _CHANGED and "path" in within) or (name == _BODY and self._paths_of(task_type).all):
            return marker()
        if name == _SCHEMA:
            return value
        if name == _BY_NAME and isinstance(value, dict):
            return {key: self.removed_from(each, task_type) for key, each in value.items()}
        return self.removed_from(value, task_type)

    def _paths_of(self, task_type: str | None) -> Paths:
        return Paths.of(self.texts_of(task_type))
