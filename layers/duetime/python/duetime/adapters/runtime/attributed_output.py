"""Says of every line that an attempt logs or prints which attempt it was, however many run in this process at once.

What is printed becomes a line of JSON in the form of Powertools' Logger; a line that is a JSON object already, as
loggers of structure write it, has the facts of the attempt added. The attempt is known by a context variable, which
`asyncio` hands on and a new thread does not: lines of a thread that a handler starts are left as they are, unless it
runs its work in a copy of the handler's context.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, TextIO, cast

from aws_lambda_powertools.logging.filters import SuppressFilter
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from duetime.domain.json_values import writable
from duetime.domain.tasks.trace_context import trace_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from duetime.domain.tasks.task import Task

_LONGEST_LINE = 100_000
"""Characters of a line; a longer one is written in parts (CloudWatch takes 256 KB: up to two bytes a character)."""
_REPLACED = "replaced"
"""Key of what a line said itself under the name of one of the facts."""
_METRICS = "_aws"
"""Key of a line of metrics in the embedded metric format, which is left as it is."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The attempt that lines belong to.

    Attributes:
        facts: what is said of it on every line.
        unfinished: the beginnings of lines, by stream and thread.
    """

    facts: Mapping[str, object]
    unfinished: dict[tuple[str, int], str] = field(default_factory=dict)


_attempt: ContextVar[_Attempt | None] = ContextVar("duetime_attempt", default=None)


def facts_of(task: Task) -> dict[str, object]:
    """What the lines of an attempt say of it."""
    facts: dict[str, object] = {
        "task_id": task.id.text,
        "attempt": task.attempt,
        "fence": task.fence,
        "type": task.type,
        "owner": task.owner,
    }
    if task.schedule_ref is not None:
        facts["schedule"] = task.schedule_ref.schedule
    if task.traceparent is not None:
        facts["trace_id"] = trace_id_of(task.traceparent)
    return facts


@contextmanager
def attributed_to(task: Task) -> Iterator[None]:
    """Attribute what is logged and printed in this block to an attempt at this task."""
    attempt = _Attempt(facts_of(task))
    token = _attempt.set(attempt)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, AttributedStream):
                stream.finish_lines(attempt)
        _attempt.reset(token)


def attribute_output(service: str, level: int, output: TextIO) -> None:
    """Have this process attribute what it logs and prints from now on. Doing it twice is doing it once.

    Handlers of the root logger that are there already, Lambda's among them, write to a stream of their own: they are
    given the facts with each record. If there is none, one is added.

    Args:
        service: the function.
        level: of the root logger, if a handler is added.
        output: where that handler writes.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, AttributedStream):
            setattr(sys, name, AttributedStream(stream, name, service))
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(_root_handler(service, output))
        root.setLevel(level)
    for handler in root.handlers:
        if not any(isinstance(each, _AddFacts) for each in handler.filters):
            handler.addFilter(_AddFacts())


class AttributedStream:
    """A text stream that writes whole lines, each with the facts of the attempt that it belongs to.

    Args:
        stream: where they go.
        name: `stdout` or `stderr`.
        service: the function.
    """

    def __init__(self, stream: TextIO, name: str, service: str) -> None:
        self._stream = stream
        self._name = name
        self._service = service
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write what is complete, keep the beginning of a line; what belongs to no attempt goes through as it is."""
        attempt = _attempt.get()
        if attempt is None:
            return self._stream.write(writable(text))
        key = (self._name, get_ident())
        *lines, rest = (attempt.unfinished.pop(key, "") + text).split("\n")
        while len(rest) > _LONGEST_LINE:
            lines.append(rest[:_LONGEST_LINE])
            rest = rest[_LONGEST_LINE:]
        if rest:
            attempt.unfinished[key] = rest
        self._write_lines(lines, attempt.facts)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write one after another."""
        for line in lines:
            self.write(line)

    def finish_lines(self, attempt: _Attempt) -> None:
        """Write the lines that an attempt has begun and not ended."""
        for key in [key for key in list(attempt.unfinished) if key[0] == self._name]:
            self._write_lines([attempt.unfinished.pop(key, "")], attempt.facts)

    def _write_lines(self, lines: list[str], facts: Mapping[str, object]) -> None:
        for line in filter(None, lines):
            for start in range(0, len(line), _LONGEST_LINE):
                written = self._attributed(line[start : start + _LONGEST_LINE], facts)
                with self._lock:
                    # What a handler prints must not fail its attempt; in JSON, what is escaped reads as it was.
                    self._stream.write(f"{writable(written)}\n")

    def _attributed(self, line: str, facts: Mapping[str, object]) -> str:
        structured = _object_in(line)
        if structured is None:
            structured = {
                "level": "INFO",
                "message": line,
                "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "service": self._service,
                "stream": self._name,
            }
        elif _METRICS in structured:
            return line
        return _compact(with_facts(structured, facts))


def with_facts(structured: Mapping[str, object], facts: Mapping[str, object]) -> dict[str, object]:
    """A line with the facts of its attempt; what it said itself under one of their names is kept apart."""
    replaced = {name: structured[name] for name, fact in facts.items() if structured.get(name, fact) != fact}
    return {**structured, **facts, **({_REPLACED: replaced} if replaced else {})}


def _compact(structured: Mapping[str, object]) -> str:
    return json.dumps(structured, ensure_ascii=False, separators=(",", ":"))


def _object_in(line: str) -> dict[str, object] | None:
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", found) if isinstance(found, dict) else None


class _AddFacts(logging.Filter):
    """Gives records the facts of the attempt that logs them, for formatters that write all that a record has."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the facts; every record passes."""
        attempt = _attempt.get()
        if attempt is not None:
            record.__dict__.update(with_facts(record.__dict__, attempt.facts))
        return True


def _root_handler(service: str, output: TextIO) -> logging.Handler:
    """What Lambda's own handler of the root logger does, where there is no Lambda."""
    handler = logging.StreamHandler(output)
    handler.setFormatter(LambdaPowertoolsFormatter(service=service, use_rfc3339=True, utc=True))
    # Powertools' own logger has a handler of its own, which writes the same; so it does with the handlers it finds.
    handler.addFilter(SuppressFilter(service))
    return handler
