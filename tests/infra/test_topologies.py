"""The state machine of topologies, as it is deployed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.domain.limits import MAX_NODES, WAITS_AT_ONCE
from infra.topologies import definition

if TYPE_CHECKING:
    from tests.infra.synthesis import Synthesis

HISTORY = 25_000
"""Most events of an execution (Source: Step Functions Developer Guide, quotas)."""
EVENTS_OF_A_NODE = 8
EVENTS_OF_A_CHILD = 6
INLINE = 40
CONCURRENCY = 1_000
"""Invocations at once that an account has by default (Source: AWS Lambda quotas)."""


def test_no_map_waits_for_more_than_it_may() -> None:
    """An inline map has at most 40 iterations at once; all else is waited for by executions of their own.

    Together they begin no more waits at once than half of what an account may invoke: the workers need the rest.
    """
    states = definition("arn")["States"]
    chunk = states["ManyNodes"]["ItemProcessor"]["States"]["Chunk"]
    for inline in (states["Nodes"], chunk):
        assert inline["ItemProcessor"]["ProcessorConfig"] == {"Mode": "INLINE"}
        assert inline["MaxConcurrency"] == WAITS_AT_ONCE == INLINE
    assert states["ManyNodes"]["ItemProcessor"]["ProcessorConfig"]["Mode"] == "DISTRIBUTED"
    assert states["ManyNodes"]["MaxConcurrency"] * INLINE < CONCURRENCY / 2


def test_the_largest_graph_fits_into_the_history() -> None:
    """Neither the execution that starts the children nor a child that waits comes near 25 000 events."""
    assert MAX_NODES / WAITS_AT_ONCE * EVENTS_OF_A_CHILD < HISTORY / 10
    assert WAITS_AT_ONCE * EVENTS_OF_A_NODE < HISTORY / 10


def test_every_wait_has_a_heartbeat_and_a_limit() -> None:
    """A lost token is noticed: the wait for a node begins anew after its heartbeat."""
    nodes = definition("arn")["States"]["Nodes"]["ItemProcessor"]["States"]["Node"]
    assert nodes["HeartbeatSeconds"] < nodes["TimeoutSeconds"]
    assert nodes["Retry"][0]["ErrorEquals"] == ["States.HeartbeatTimeout"]
    assert nodes["Resource"].endswith(".waitForTaskToken")


def test_the_machine_is_traced_and_logged(every: Synthesis) -> None:
    """X-Ray and the execution log are on, and the machine is a Standard one."""
    ((_, machine),) = every.properties("AWS::StepFunctions::StateMachine").items()
    assert machine["StateMachineType"] == "STANDARD"
    assert machine["TracingConfiguration"] == {"Enabled": True}
    assert machine["LoggingConfiguration"]["Level"] == "ALL"


def test_the_deployed_machine_is_the_one_that_is_tested(every: Synthesis) -> None:
    """What stands in the template is the definition, with the function's ARN in it."""
    ((_, machine),) = every.properties("AWS::StepFunctions::StateMachine").items()
    _, parts = machine["DefinitionString"]["Fn::Join"]
    text = "".join(part if isinstance(part, str) else "arn" for part in parts)
    found: dict[str, Any] = json.loads(text)
    assert found["States"].keys() == definition("arn")["States"].keys()
