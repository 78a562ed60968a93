"""The bodies of requests that describe topologies."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from duetime.contract.tasks.bodies import Body, TaskCreate, TaskLabels
from duetime.contract.tasks.fields import (  # noqa: TC001 - pydantic reads the annotations
    At,
    DelaySeconds,
    TaskType,
)
from duetime.domain.limits import MAX_DEADLINE_SECONDS, MAX_EXPECTED_SECONDS
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.trigger_rules import TriggerRule

TYPE = "topology"
_NODE_EXAMPLE = {"fetch": {"type": "fetch"}, "report": {"type": "report", "depends_on": ["fetch"], "inputs": ["fetch"]}}


class TopologyNode(TaskCreate):
    """A node: a task without a due time, and what it waits for."""

    depends_on: Annotated[list[str], Field(default_factory=list, description="The nodes that it waits for.")]
    rule: Annotated[TriggerRule, Field(strict=False, description="How those must have ended for it to run.")] = (
        TriggerRule.ALL_SUCCESS
    )
    inputs: Annotated[
        list[str], Field(default_factory=list, description="Those of them whose results its target is given.")
    ]
    expected_seconds: Annotated[
        float | None,
        Field(ge=0, le=MAX_EXPECTED_SECONDS, description="How long it should run: its weight in the run's progress."),
    ] = None


class TopologyGraph(Body):
    """A graph: what the payload of a topology's task holds."""

    nodes: Annotated[dict[str, TopologyNode], Field(description="The nodes, by their names.", examples=[_NODE_EXAMPLE])]
    on_failure: Annotated[
        OnFailure,
        Field(
            strict=False,
            description="When a node has failed: start nothing more (`stop`), let the rules decide (`continue`), or "
            "also undo what has run, in reverse order (`rollback`).",
        ),
    ] = OnFailure.STOP
    deadline_seconds: Annotated[
        int | None,
        Field(ge=1, le=MAX_DEADLINE_SECONDS, description="How long the run may take; null for as long as it needs."),
    ] = None


def _as_creation(schema: dict[str, Any]) -> None:
    """No due time is written as one that is left out, not as null."""
    schema["properties"]["due_at"].pop("default", None)


class TopologyCreate(TaskLabels, TopologyGraph):
    """A topology to be created; without `due_at` and `delay_seconds` it is due now."""

    model_config = ConfigDict(json_schema_extra=_as_creation)

    type: TaskType = TYPE
    due_at: Annotated[At, Field(description="When it is due. Excludes `delay_seconds`.")] = None
    delay_seconds: DelaySeconds = 0
