"""Placeholders in payloads and URLs are replaced by an attempt's facts, as values and never as syntax."""

from __future__ import annotations

import json

import pytest

from duetime.domain.ids import TaskId
from duetime.domain.tasks.placeholders import PLACEHOLDERS, filled_payload, filled_url, refusal
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task import Cause, NodeRef, ScheduleRef
from tests.domain.factories import NOW, task

TOPOLOGY = TaskId.of(NOW, 3, 7)
RUN = ScheduleRef("nightly", 3, NOW - 60_000, Cause.BACKFILL, "abc", previous=NOW - 120_000, next=NOW)
NODE = task(
    type="report", attempt=2, topology_schedule_ref=RUN, node_ref=NodeRef(TOPOLOGY, 1, "load/eu"), created_at=NOW - 1
)
ALL = {
    "task-id": NODE.id.text,
    "type": "report",
    "attempt": "2",
    "due-at": "2026-11-21T02:33:07.250Z",
    "created-at": "2026-11-21T02:33:07.249Z",
    "scheduled-at": "2026-11-21T02:32:07.250Z",
    "previous-scheduled-at": "2026-11-21T02:31:07.250Z",
    "next-scheduled-at": "2026-11-21T02:33:07.250Z",
    "schedule": "nightly",
    "cause": "backfill",
    "topology": TOPOLOGY.text,
    "node": "load/eu",
}


def filled(value: object) -> object:
    """The JSON that the node's target receives."""
    return json.loads(filled_payload(json.dumps(value, ensure_ascii=False).encode(), NODE))


def test_placeholders_are_replaced_in_texts_at_any_depth() -> None:
    """Placeholders are replaced in strings at any depth, while numbers, keys and other strings do not change."""
    assert set(ALL) == set(PLACEHOLDERS)
    given = {"all": [{name: f"a <duetime.{name}> b" for name in ALL}], "n": 12345678901234567890, "<b>": "<duetime"}
    assert filled(given) == {
        "all": [{n: f"a {value} b" for n, value in ALL.items()}],
        "n": given["n"],
        "<b>": "<duetime",
    }


def test_the_scheduled_time_without_a_schedule_is_the_due_time() -> None:
    """For a task without a schedule, the scheduled time is its due time, and the schedule's facts are empty."""
    text = "|".join(
        f"<duetime.{name}>" for name in ("scheduled-at", "previous-scheduled-at", "schedule", "cause", "node")
    )
    assert json.loads(filled_payload(json.dumps(text).encode(), task())) == "2026-11-21T02:33:07.250Z||||"


def test_a_value_with_quotes_is_escaped_in_json_and_urls() -> None:
    """If a node's name has quotes, it stays a value in JSON, and is encoded in a URL."""
    named = task(node_ref=NodeRef(TOPOLOGY, 1, 'a","b":"?&/ü'))
    assert json.loads(filled_payload(b'{"a":"<duetime.node>"}', named)) == {"a": 'a","b":"?&/ü'}
    assert (
        filled_url("https://h.example/<duetime.node>", named) == "https://h.example/a%22%2C%22b%22%3A%22%3F%26%2F%C3%BC"
    )


@pytest.mark.parametrize(
    ("given", "result"),
    [
        ("<<duetime.task-id>", "<duetime.task-id>"),
        ("<<duetime.nothing>", "<duetime.nothing>"),
        ("<<duetime.", "<duetime."),
        ("<<<duetime.type>", "<<duetime.type>"),
        ("<duetime.type><duetime.type>", "reportreport"),
        ("&lt;duetime.type>", "&lt;duetime.type>"),
    ],
)
def test_an_additional_bracket_escapes_a_placeholder(given: str, result: str) -> None:
    """An additional bracket escapes a placeholder, and the target gets the text without this bracket."""
    assert refusal(given) is None
    assert filled({"a": given}) == {"a": result}


@pytest.mark.parametrize(
    "text", ["<duetime.task_id>", "x <duetime.>", "<duetime.type", "<duetime.type <b>", "<<duetime.a> <duetime.b>"]
)
def test_a_misspelled_or_unterminated_placeholder_is_rejected(text: str) -> None:
    """A misspelled or unterminated placeholder is refused, because it would otherwise be passed on unchanged."""
    assert refusal(text) is not None
    assert "duetime." in str(filled(text))


def test_a_topologys_own_task_does_not_replace_its_graphs_placeholders() -> None:
    """A topology's own task does not replace the placeholders in its graph, because they are for the nodes."""
    payload = b'{"nodes":{"a":{"type":"x","payload":"<duetime.task-id>"}}}'
    assert filled_payload(payload, task(target=TopologyTarget())) == payload
