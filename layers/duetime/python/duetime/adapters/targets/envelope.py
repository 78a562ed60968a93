"""What a target outside this process is sent, and what is made of what it answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.domain.tasks.trace_context import TRACEPARENT
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.ports.targets import Work


def envelope(work: Work) -> bytes:
    """The same facts as a Python handler's context, as JSON; the payload stands in it as it came."""
    task = work.task
    facts = {
        "task_id": task.id.text,
        "type": task.type,
        "attempt": task.attempt,
        "fence": task.fence,
        "deadline": to_iso(work.deadline),
    }
    if task.traceparent is not None:
        facts[TRACEPARENT] = task.traceparent
    given = b"" if work.inputs is None else b', "inputs": ' + work.inputs
    return json.dumps(facts).encode()[:-1] + given + b', "payload": ' + work.payload + b"}"


def result_of(data: bytes) -> bytes:
    """The result: the answer if it is JSON, else its text as a JSON string, or null if there is none."""
    if not data.strip():
        return b"null"
    try:
        return compact(json.loads(data))
    except (ValueError, RecursionError):
        return compact(data.decode("utf-8", "replace"))


def compact(value: object) -> bytes:
    """JSON in UTF-8 without spaces. What JSON cannot hold, NaN and numbers beyond a float among it, is rejected.

    Raises:
        ValueError: it holds such a thing.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # A lone surrogate, which JSON can write and UTF-8 cannot.
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
