"""Request bodies and queries for topologies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field

from duetime.contract.http.operation import Parameters
from duetime.contract.http.request_model import Body
from duetime.contract.tasks.bodies import TaskCreate, TaskLabels, TaskUniqueness, without_uniqueness
from duetime.contract.tasks.fields import At, DelaySeconds, TaskType, each_once
from duetime.contract.tasks.operations import TaskAction
from duetime.contract.tasks.queries import ListedQuery, PageSize
from duetime.contract.tasks.target_fields import DefinitionName
from duetime.domain.limits import (
    MAX_CONDITION_LENGTH,
    MAX_DEADLINE_SECONDS,
    MAX_EXPECTED_SECONDS,
    MAX_NODE_KEY_LENGTH,
    MAX_NODES,
    MAX_OUTPUTS,
    MAX_PAGE,
    MAX_RERUN_NODES,
    MAX_RESULT_BYTES,
)
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.trigger_rules import TriggerRule

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.filters import TaskFilter

TYPE = "topology"
NodeName: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_NODE_KEY_LENGTH)]
_NODE_EXAMPLE = {"fetch": {"type": "fetch"}, "report": {"type": "report", "depends_on": ["fetch"], "inputs": ["fetch"]}}


def _as_node(schema: dict[str, Any]) -> None:
    """Removes the due time from a node's schema; the parser rejects the field with a reason."""
    for name in ("at", "due_at"):
        schema["properties"].pop(name, None)
    without_uniqueness(schema)


class NodeMap(Body):
    """Runs a node once for each item of a list."""

    over: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_CONDITION_LENGTH,
            description=f"JMESPath expression for a list of at most {MAX_NODES} items, from `parents.NAME.result`, "
            "`.outcome` and `.error`. If the value is not a list, the node fails.",
            examples=["parents.list.result"],
        ),
    ]
    max_parallel: Annotated[
        int | None,
        Field(ge=1, le=MAX_NODES, description="Maximum number of items that run at once; null for all items."),
    ] = None
    tolerated_failures: Annotated[
        int, Field(ge=0, le=MAX_NODES, description="How many items can fail without failing the node.")
    ] = 0


class TopologyNode(TaskCreate):
    """A node of a topology, which is a task without a due time, and the nodes that it depends on.

    A node with the target `topology` is itself a topology, whose graph is the payload or comes from a definition.
    """

    model_config = ConfigDict(json_schema_extra=_as_node)

    depends_on: Annotated[
        list[str], Field(default_factory=list, description="Names of the nodes that this node depends on.")
    ]
    delay_seconds: Annotated[
        float,
        Field(
            ge=0,
            le=MAX_DEADLINE_SECONDS,
            description="Seconds from when the trigger rule is met until the node is due; fractions are allowed. The "
            "upper limit is the maximum duration of a topology's run.",
            examples=[90],
        ),
    ] = 0
    trigger_rule: Annotated[
        TriggerRule, Field(strict=False, description="How the nodes in `depends_on` must end for this node to run.")
    ] = TriggerRule.ALL_SUCCESS
    inputs: Annotated[
        list[str],
        Field(
            default_factory=list, description="Nodes in `depends_on` whose results are passed to this node's target."
        ),
    ]
    when: Annotated[
        str | None,
        Field(
            max_length=MAX_CONDITION_LENGTH,
            description="JMESPath condition on `parents.NAME.outcome`, `.result` and `.error`, and on the definition's "
            "`parameters.NAME`, evaluated once the trigger rule is met. If the condition is false, the node is "
            "skipped; if it is neither true nor false, the node fails.",
        ),
    ] = None
    map: Annotated[
        NodeMap | None,
        Field(
            description="Runs the node once for each item of a list, as a nested topology. `<duetime.item>` and "
            "`<duetime.index>` stand for the item and its index, starting at 0. The result is the list of all results."
        ),
    ] = None
    expected_seconds: Annotated[
        float | None,
        Field(
            ge=0,
            le=MAX_EXPECTED_SECONDS,
            description="Expected duration, which is the node's weight in the topology's progress.",
        ),
    ] = None


class TopologyGraph(Body):
    """A graph: the payload of a topology's task."""

    nodes: Annotated[dict[str, TopologyNode], Field(description="The nodes by name.", examples=[_NODE_EXAMPLE])]
    on_failure: Annotated[
        OnFailure,
        Field(
            strict=False,
            description="What happens when a node fails: no more nodes start (`stop`), the trigger rules decide "
            "(`continue`), or no more nodes start and the nodes that ran are rolled back in reverse order "
            "(`rollback`).",
        ),
    ] = OnFailure.STOP
    timeout_seconds: Annotated[
        int | None,
        Field(ge=1, le=MAX_DEADLINE_SECONDS, description="Time limit of the entire run in seconds; null for no limit."),
    ] = None
    outputs: Annotated[
        list[str],
        Field(
            default_factory=list,
            max_length=MAX_OUTPUTS,
            description="Nodes whose results become `outputs` in the topology's result, by node name; null for a node "
            f"without a result. If they exceed {MAX_RESULT_BYTES} bytes in total, the topology fails.",
        ),
    ]


def as_creation(schema: dict[str, Any]) -> None:
    """Makes due times optional but not nullable in the schema."""
    schema["properties"]["due_at"].pop("default", None)


class TopologyCreate(TaskLabels, TaskUniqueness, TopologyGraph):
    """A topology to be created, due now unless `due_at` or `delay_seconds` is given."""

    model_config = ConfigDict(json_schema_extra=as_creation)

    type: TaskType = TYPE
    due_at: Annotated[
        At,
        Field(
            description="When the topology is due; a time in the past means now. Cannot be given with `delay_seconds`."
        ),
    ] = None
    delay_seconds: DelaySeconds = 0


class TopologyRetry(TaskAction):
    """Runs a topology again; the body can be left out."""

    nodes: Annotated[
        list[NodeName],
        Field(
            default_factory=list,
            max_length=MAX_RERUN_NODES,
            description="Nodes to run again together with their direct and indirect dependents, in addition to failed "
            "nodes; possible even if the topology has succeeded. If empty, only failed nodes run again.",
        ),
        AfterValidator(each_once),
    ]


class NodeListQuery(Parameters):
    """Parameters of `GET /v1/topologies/{topology_id}/nodes`."""

    limit: Annotated[PageSize, Field(description="Maximum number of nodes on a page.")] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="`next_token` from the previous page.")] = None

    def scope(self, owner: str, topology: TaskId) -> str:
        """The scope for which the list's page tokens are valid."""
        return repr((owner, "nodes", topology.text))


class TopologyListQuery(ListedQuery):
    """Parameters of `GET /v1/topologies`: the parameters of task lists, and the definition."""

    definition: Annotated[DefinitionName | None, Field(description="Only runs of the topology definition.")] = None

    @property
    def filter(self) -> TaskFilter:
        """The filter that these fields describe, always limited to topologies."""
        return replace(super().filter, is_topology=True, definition=self.definition)
