"""Stored bodies of an earlier version, in the names of the present one."""

from __future__ import annotations

import json

from duetime.contract.bulk.bodies import read_stored
from duetime.contract.tasks.updates import TaskFieldMerge
from duetime.contract.topologies.decoding import read_graph, read_stored_graph
from duetime.domain.bulk.operation import BulkKind
from duetime.domain.tasks.filters import Range
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import LockSpec

OLD = {"type": "load", "deadline_seconds": 90, "rollback": True, "lock": {"key": "db", "limit": 2}}
PRESENT = {
    "type": "load",
    "notify_within_seconds": 90,
    "rollback_on_failure": True,
    "lock": {"key": "db", "max_holders": 2},
}


def test_a_graph_that_was_stored_under_earlier_names_is_read() -> None:
    """A topology that was accepted before an upgrade runs after it, each node as it was asked for."""
    old = read_stored_graph(json.dumps({"nodes": {"a": OLD}}).encode())
    present = read_graph(json.dumps({"nodes": {"a": PRESENT}}).encode())
    assert old == present
    spec = old.by_key["a"].spec
    assert (spec.notify_within_seconds, spec.rollback_on_failure, spec.lock) == (90, True, LockSpec("db", 2))


def test_a_bulk_operation_that_was_stored_under_earlier_names_is_read() -> None:
    """One that goes on across an upgrade means the same tasks, and changes the same."""
    wanted = {"type": "a", "state": "postponed", "due_from": "2026-11-21T00:00:00Z", "due_to": "2026-11-22T00:00:00Z"}
    change = {"at": "2026-12-01T00:00:00Z", "deadline_seconds": 90, "lock": {"key": "db", "limit": 2}}
    request = read_stored(BulkKind.UPDATE, json.dumps({"filter": wanted, "change": change}).encode())
    assert request.action.wanted.states == (State.WAITING,)
    assert request.action.wanted.due == Range(1_795_219_200_000, 1_795_305_600_000)
    assert request.change is not None
    assert request.change.due_at == 1_796_083_200_000
    wanted_fields = {"notify_within_seconds": 90, "lock": {"key": "db", "max_holders": 2}}
    assert request.change.merge == TaskFieldMerge(wanted_fields)
