"""Replaces placeholders in payloads, URLs and requests, such as `<duetime.task-id>`, by facts about an attempt.

Values depend only on the task's record, so the same attempt always receives the same text. An additional `<` in front
(`<<duetime.task-id>`) escapes a placeholder.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from duetime.domain.tasks.targets import CallbackTarget, TopologyTarget
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

PREFIX = "<duetime."
_IN_JSON = PREFIX.encode()
_PLACEHOLDER = re.compile(r"(<?)<duetime\.([^<>]*)(>?)")


def _instant(at: Millis | None) -> str:
    return "" if at is None else to_iso(at)


_FACTS: dict[str, Callable[[Task], str]] = {
    "task-id": lambda task: task.id.text,
    "type": lambda task: task.type,
    "attempt": lambda task: str(task.attempt),
    "due-at": lambda task: to_iso(task.due_at),
    "created-at": lambda task: to_iso(task.created_at),
    "scheduled-at": lambda task: to_iso(task.scheduled_at),
    "previous-scheduled-at": lambda task: _instant(run.previous if (run := task.schedule_run) else None),
    "next-scheduled-at": lambda task: _instant(run.next if (run := task.schedule_run) else None),
    "schedule": lambda task: run.schedule if (run := task.schedule_run) else "",
    "cause": lambda task: run.cause.value if (run := task.schedule_run) else "",
    "topology": lambda task: node.topology.text if (node := task.node_ref) else "",
    "node": lambda task: node.key if (node := task.node_ref) else "",
}
PLACEHOLDERS = tuple(_FACTS)
"""Names of the placeholders. A placeholder's value is empty if a task does not have the fact."""


def refusal(text: str) -> str | None:
    """Why the placeholders in a string are invalid; `None` if they are valid."""
    for escaped, name, end in _PLACEHOLDER.findall(text):
        if escaped:
            continue
        if not end:
            return f"has a placeholder without its '>'; write '<{PREFIX}' for the text itself"
        if name not in _FACTS:
            return f"has an unknown placeholder, '{PREFIX}{name[:40]}>'; there are {', '.join(PLACEHOLDERS)}"
    return None


def filled_payload(payload: bytes, task: Task) -> bytes:
    """Replaces the placeholders in a payload's strings; keys of objects are unchanged.

    Args:
        payload: JSON text in UTF-8 without spaces.
        task: the record as claimed.
    """
    if _IN_JSON not in payload or isinstance(task.target, TopologyTarget | CallbackTarget):
        # Placeholders in a graph belong to the graph's nodes, and placeholders in an outcome belong to another task.
        return payload
    filled = _filled(json.loads(payload), task)
    return json.dumps(filled, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def filled_text(text: str, task: Task) -> str:
    """Replaces the placeholders in a string."""
    return _replaced(text, task, str)


def filled_url(url: str, task: Task) -> str:
    """Replaces the placeholders in a URL with percent-encoded values."""
    return _replaced(url, task, lambda value: quote(value, safe=""))


def sample_url(url: str) -> str:
    """Replaces each placeholder in a URL with a letter, so that the URL's form can be checked."""
    return _PLACEHOLDER.sub(lambda found: found[0] if found[1] or not found[3] else "x", url)


def holds_any(payload: bytes) -> bool:
    """Whether a stored payload may contain placeholders."""
    return _IN_JSON in payload


def texts_of(value: Any, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str, bool]]:  # noqa: ANN401 - any JSON
    """Each string in JSON that may contain placeholders, with its path and whether it is an object key."""
    if isinstance(value, str) and PREFIX in value:
        yield place, value, False
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from texts_of(each, (*place, index))
    elif isinstance(value, dict):
        for key, each in value.items():
            if PREFIX in key:
                yield (*place, key), key, True
            yield from texts_of(each, (*place, key))


def _filled(value: Any, task: Task) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        return _replaced(value, task, str)
    if isinstance(value, list):
        return [_filled(each, task) for each in value]
    if isinstance(value, dict):
        return {key: _filled(each, task) for key, each in value.items()}
    return value


def _replaced(text: str, task: Task, encode: Callable[[str], str]) -> str:
    def value(found: re.Match[str]) -> str:
        escaped, name, end = found.groups()
        if escaped:
            return f"{PREFIX}{name}{end}"
        # Text that only resembles a placeholder is left unchanged.
        return encode(_FACTS[name](task)) if end and name in _FACTS else found[0]

    return _PLACEHOLDER.sub(value, text) if PREFIX in text else text
