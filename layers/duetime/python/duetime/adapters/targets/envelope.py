"""Encodes the data for targets outside this process, and decodes the results in their responses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.domain.ids import TRACEPARENT
from duetime.domain.json_values import check_kept
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.ports.targets import Work

UNRETRIABLE = "Unretriable"
"""Name of the error with which a function or state machine prevents a retry."""


def audience_of(url: str) -> str:
    """The name of an endpoint in signed data, which is the endpoint's URL without query and fragment."""
    return url.partition("#")[0].partition("?")[0]


def envelope(work: Work, audience: str | None = None) -> bytes:
    """The facts in a Python handler's context and the unchanged payload, as JSON.

    Args:
        work: the phase to run, with its task and payload.
        audience: the endpoint of a signed envelope, whose signature does not cover the URL and the owner; otherwise
            `None`.
    """
    task = work.task
    facts: dict[str, object] = {
        **({} if audience is None else {"owner": task.owner, "audience": audience}),
        "task_id": task.id.text,
        "type": task.type,
        "attempt": task.attempt,
        "fence": task.fence,
        "deadline": to_iso(work.deadline),
        "due_at": to_iso(task.due_at),
        "created_at": to_iso(task.created_at),
        "lateness_ms": task.lateness,
        **_parents(task),
    }
    if task.tags:
        facts["tags"] = dict(task.tags)
    if task.traceparent is not None:
        facts[TRACEPARENT] = task.traceparent
    given = b"" if work.inputs is None else b', "inputs": ' + work.inputs
    return json.dumps(facts).encode()[:-1] + given + b', "payload": ' + work.payload + b"}"


def _parents(task: Task) -> dict[str, object]:
    """The facts about a task's schedule and topology."""
    run, node = task.schedule_run, task.node_ref
    parents: dict[str, object] = {}
    if run is not None:
        parents["schedule"] = {
            "name": run.schedule,
            "scheduled_at": to_iso(run.nominal),
            "previous_at": None if run.previous is None else to_iso(run.previous),
            "next_at": None if run.next is None else to_iso(run.next),
            "cause": run.cause,
        }
    if node is not None:
        parents["topology"] = {"id": node.topology.text, "run": node.run, "node": node.key}
    return parents


def result_of(data: bytes) -> bytes:
    """Convert a response to a result. An empty response becomes null.

    Otherwise, the result is the response's JSON if it is a valid payload, or a JSON string with the response's text.
    """
    if not data.strip():
        return b"null"
    try:
        return compact(check_kept(data.decode(json.detect_encoding(data))))
    except (ValueError, RecursionError):
        return compact(data.decode("utf-8", "replace"))


def compact(value: object) -> bytes:
    """A service's response as JSON in UTF-8 without spaces. Lone surrogates become question marks.

    Raises:
        ValueError: the value contains NaN, or a number too large for a float.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
