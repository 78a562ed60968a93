"""Tests that a task, schedule or topology with an unknown placeholder is refused with the field's name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from duetime.contract.http.request_errors import FieldsInvalid
from duetime.contract.http.request_json import read
from duetime.contract.schedules.decoding import schedule_spec
from duetime.contract.tasks.decoding import batch_items, task_spec
from duetime.contract.tasks.updates import task_update
from duetime.contract.topologies.decoding import topology_request

BAD = "<duetime.now>"
IN_PAYLOAD = {"type": "report", "payload": {"a": ["", {"b": BAD}]}}
NODES = {"nodes": {"one": IN_PAYLOAD}}
URL = "https://example.org/a/<duetime.task-id>?at=<duetime.scheduled-at>"


def http(url: str) -> dict[str, Any]:
    """Return a task that calls a URL."""
    return {"type": "report", "target": {"kind": "http", "url": url}}


def faults(decode: Any, body: object) -> list[str]:  # noqa: ANN401 - any of the decoders
    """Return the fields for which a body is refused."""
    with pytest.raises(FieldsInvalid) as refused:
        decode(read(json.dumps(body)))
    return [fault.field for fault in refused.value.faults]


@pytest.mark.parametrize(
    ("decode", "body", "field"),
    [
        (task_spec, IN_PAYLOAD, "payload.a[1].b"),
        (task_spec, {"type": "report", "payload": {"<duetime.task-id>": 1}}, "payload.<duetime.task-id>"),
        (task_spec, http("https://example.org/<duetime.now>"), "target.url"),
        (task_spec, http("https://<duetime.type>.example.org/"), "target.url"),
        (task_spec, http("https://example.org:<duetime.attempt>/"), "target.url"),
        (task_spec, {"type": "t", "callback_url": URL}, "callback_url"),
        (
            task_spec,
            {"type": "t", "target": {"kind": "topology"}, "payload": NODES},
            "payload.nodes.one.payload.a[1].b",
        ),
        (task_update, {"payload": BAD}, "payload"),
        (topology_request, NODES, "nodes.one.payload.a[1].b"),
        (schedule_spec, {"name": "n", "cron": "* * * * *", "task": IN_PAYLOAD}, "task.payload.a[1].b"),
    ],
)
def test_an_unknown_placeholder_is_rejected_with_its_field(decode: Any, body: object, field: str) -> None:  # noqa: ANN401 - same
    """Placeholders are checked wherever a task is described, and cannot determine the host."""
    assert faults(decode, body) == [field]


def test_an_unknown_placeholder_rejects_only_its_task_of_a_batch() -> None:
    """If one task in a batch has an unknown placeholder, the other task is accepted with its URL unchanged."""
    bad, good = batch_items(read(json.dumps({"tasks": [IN_PAYLOAD, http(URL)]})))
    assert isinstance(bad.wanted, FieldsInvalid)
    assert bad.wanted.faults[0].field == "tasks[0].payload.a[1].b"
    assert not isinstance(good.wanted, FieldsInvalid)
    assert getattr(good.wanted.target, "url", "") == URL
