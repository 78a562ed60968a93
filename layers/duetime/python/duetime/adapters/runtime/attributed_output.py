"""Adds an attempt's facts to every line that the attempt logs or prints, even if attempts run concurrently.

A printed line becomes a line of JSON in the form of Powertools' Logger. If a line is already a JSON object, as from
structured loggers, the attempt's facts are added to the object. A context variable identifies the attempt. `asyncio`
passes the variable on, but a new thread does not. Lines from a thread that a handler starts are therefore unchanged,
unless the thread runs in a copy of the handler's context.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from datetime import UTC, datetime
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, TextIO, cast

from aws_lambda_powertools.logging.filters import SuppressFilter
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from duetime.domain.ids import trace_id_of
from duetime.domain.json_values import writable
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from duetime.domain.tasks.task import Task

_LONGEST_LINE = 100_000
"""Maximum number of characters in a line. Longer lines are split, because CloudWatch allows 1 MB (Source: CloudWatch
Logs API Reference, PutLogEvents), and a character can take six bytes."""
_REPLACED = "replaced"
"""Key under which a line's own values are kept if their names are also names of facts."""
_METRICS = "_aws"
"""Key that marks a metrics line in the embedded metric format. Metrics lines are not changed."""


@frozen
class _Attempt:
    """The attempt to which lines are attributed.

    Attributes:
        facts: the facts to add to every line.
        unfinished: the unfinished lines, by stream and thread.
    """

    facts: Mapping[str, object]
    unfinished: dict[tuple[str, int], str] = field(default_factory=dict)


_attempt: ContextVar[_Attempt | None] = ContextVar("duetime_attempt", default=None)


def facts_of(task: Task) -> dict[str, object]:
    """The facts that are added to an attempt's lines."""
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
    """Attribute the lines that are logged and printed in this block to this task's attempt."""
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
    """Make this process attribute all log and print lines from now on. Calling this again changes nothing.

    The root logger's existing handlers, including Lambda's handler, write to their own streams, so the facts are added
    to each log record. If the root logger has no handler, this function adds a handler.

    Args:
        service: name of the function.
        level: level of the root logger, if a handler is added.
        output: stream of the added handler.
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
    """A text stream that writes complete lines, and adds the facts of each line's attempt.

    Args:
        stream: the destination of the lines.
        name: `stdout` or `stderr`.
        service: name of the function.
    """

    def __init__(self, stream: TextIO, name: str, service: str) -> None:
        self._stream = stream
        self._name = name
        self._service = service
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of the stream
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write complete lines, and keep an incomplete line.

        Text that is not from an attempt is passed on unchanged.
        """
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
        """Write several strings."""
        for line in lines:
            self.write(line)

    def finish_lines(self, attempt: _Attempt) -> None:
        """Write an attempt's unfinished lines."""
        for key in [key for key in list(attempt.unfinished) if key[0] == self._name]:
            self._write_lines([attempt.unfinished.pop(key, "")], attempt.facts)

    def _write_lines(self, lines: list[str], facts: Mapping[str, object]) -> None:
        for line in filter(None, lines):
            for start in range(0, len(line), _LONGEST_LINE):
                written = self._attributed(line[start : start + _LONGEST_LINE], facts)
                with self._lock:
                    # Printing must not fail the attempt, so unwritable characters are escaped; JSON decodes them to the
                    # originals.
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
    """A line with its attempt's facts. The line's own values with the same names move to another key."""
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
    """Adds the attempt's facts to log records, for formatters that write all fields of a record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the facts, and let every record pass."""
        attempt = _attempt.get()
        if attempt is not None:
            record.__dict__.update(with_facts(record.__dict__, attempt.facts))
        return True


def _root_handler(service: str, output: TextIO) -> logging.Handler:
    """A root handler like Lambda's handler, for use outside Lambda."""
    handler = logging.StreamHandler(output)
    handler.setFormatter(LambdaPowertoolsFormatter(service=service, use_rfc3339=True, utc=True))
    # The filter skips records of Powertools' logger, because this logger has its own handler for the same lines.
    handler.addFilter(SuppressFilter(service))
    return handler
