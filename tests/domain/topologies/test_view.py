"""Tests the states of nodes that users see."""

from __future__ import annotations

import pytest

from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.topologies.node_status import NodeStatus, Reason
from duetime.domain.topologies.run_state import shown_statuses
from tests.domain.factories import task
from tests.domain.topologies.graphs import SUCCEEDED

NODES = {"ran": SUCCEEDED, "waits": NodeStatus(), "missing": NodeStatus(is_missing=True)}


@pytest.mark.parametrize("state", list(State))
def test_a_node_without_a_task_is_stopped_once_its_topology_has_ended(state: State) -> None:
    """A node without a task is shown as blocked until its topology ends, and as stopped afterwards."""
    shown = shown_statuses(task(state=state), NODES)
    assert (shown["ran"], shown["waits"]) == (NODES["ran"], NODES["waits"])
    missing = (shown["missing"].state, shown["missing"].reason)
    assert missing == ((State.CANCELLED, Reason.STOPPED) if state in TERMINAL else (State.BLOCKED, None))
