"""Validates topologies without a server, by the rules that the API applies (`duetime_common.graph_rules`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from duetime_client.errors import ClientError, InvalidField
from duetime_client.literals import TopologyFailurePolicy
from duetime_client.task_request_fields import NewTask
from duetime_client.topology_definitions import RunFields
from duetime_common.graph_rules import cycle_fault, graph_faults

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

RULES = frozenset({"all_success", "all_done", "one_success", "one_failed", "none_failed", "always"})
ON_FAILURE = frozenset(get_args(TopologyFailurePolicy))
_OF_A_GRAPH = frozenset({"nodes", "on_failure", "timeout_seconds", "outputs"})
OF_A_TOPOLOGY = _OF_A_GRAPH | RunFields.__annotations__.keys()
OF_A_NODE = (
    NewTask.__annotations__.keys() - {"due_at", "unique", "debounce", "order", "parent_task_id", "group", "after"}
) | {*("depends_on", "trigger_rule", "inputs", "when", "map", "expected_seconds")}
_MOST_FAULTS = 20
_SHOWN_LENGTH = 128


class TopologyInvalid(ClientError, ValueError):
    """A topology that is not valid; `errors` names the fields."""

    def __init__(self, errors: Iterable[InvalidField]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(f"{error.field}: {error.reason}" for error in self.errors))


@dataclass(frozen=True, slots=True)
class _Node:
    """The place of a node in its graph; dependencies that cannot be read are left out."""

    key: str
    depends_on: Sequence[str]
    inputs: Sequence[str]


def validate_topology(body: object) -> None:
    """Validate the graph of a topology; the API validates the fields of its tasks.

    Raises:
        TopologyInvalid: the graph has errors, of which up to twenty are named; a cycle is named only if there are no
            other errors.
    """
    if faults := [fault for fault, _ in zip(_faults(body, OF_A_TOPOLOGY), range(_MOST_FAULTS), strict=False)]:
        raise TopologyInvalid(faults)


def _faults(body: object, known: Collection[str]) -> Iterator[InvalidField]:
    nodes = body.get("nodes") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(nodes, dict):
        yield InvalidField("nodes", "should be an object with nodes by name")
        return
    is_valid = True
    for fault in (*_shape_faults(body, nodes, known), *_rule_faults(body, nodes)):
        is_valid = False
        yield fault
    cycle = cycle_fault({key: node.get("depends_on", []) for key, node in nodes.items()}) if is_valid else None
    if cycle:
        yield InvalidField(cycle.field, cycle.reason)


def _rule_faults(body: Mapping[str, Any], nodes: Mapping[str, Any]) -> Iterator[InvalidField]:
    """Yield the faults in the graph by the API's rules; names that cannot be read are ignored."""
    placed = [_Node(key, _names(node, "depends_on"), _names(node, "inputs")) for key, node in nodes.items()]
    for fault in graph_faults(placed, _names(body, "outputs")):
        yield InvalidField(fault.field, fault.reason)


def _names(holder: object, field: str) -> Sequence[str]:
    names = holder.get(field, []) if isinstance(holder, dict) else []
    return names if _is_list_of_names(names) else []


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _shape_faults(body: Mapping[str, Any], nodes: Mapping[str, Any], known: Collection[str]) -> Iterator[InvalidField]:
    """Yield the fields that do not exist, and the values of the wrong type."""
    yield from _unknown(body, known, "")
    yield from _choice_faults("on_failure", body.get("on_failure", "stop"), ON_FAILURE)
    yield from _list_faults("outputs", body)
    for key, node in nodes.items():
        yield from _node_faults(f"nodes.{_shown(key)}", node)


def _node_faults(place: str, node: object) -> Iterator[InvalidField]:
    if not isinstance(node, dict):
        yield InvalidField(place, "should be an object: a task, and what it depends on")
        return
    yield from _unknown(node, OF_A_NODE, f"{place}.")
    if not isinstance(node.get("type"), str):
        yield InvalidField(f"{place}.type", "should be the type of its task")
    yield from _choice_faults(f"{place}.trigger_rule", node.get("trigger_rule", "all_success"), RULES)
    for field in ("depends_on", "inputs"):
        yield from _list_faults(field, node, f"{place}.")
    parents = _names(node, "depends_on")
    yield from _condition_faults(f"{place}.when", node.get("when"), parents)
    mapped = node.get("map")
    if mapped is not None:
        over = mapped.get("over") if isinstance(mapped, dict) else None
        yield from _condition_faults(f"{place}.map.over", 0 if over is None else over, parents)
    yield from _subgraph_faults(place, node)


def _subgraph_faults(place: str, node: Mapping[str, Any]) -> Iterator[InvalidField]:
    """Yield the faults in the graph of a nested topology; the API checks the graphs of definitions."""
    target = node.get("target")
    if not isinstance(target, dict) or target.get("kind") != "topology" or target.get("definition") is not None:
        return
    for fault in _faults(node.get("payload"), _OF_A_GRAPH):
        yield InvalidField(f"{place}.payload.{fault.field}", fault.reason)


def _condition_faults(place: str, condition: object, parents: Sequence[str]) -> Iterator[InvalidField]:
    if condition is None:
        return
    if not isinstance(condition, str):
        yield InvalidField(place, "should be text with a JMESPath expression")
        return
    # Most topologies have no conditions, and do not need the parser.
    from duetime_common.conditions import ConditionInvalid, reject_condition  # noqa: PLC0415

    try:
        reject_condition(condition, parents)
    except ConditionInvalid as fault:
        yield InvalidField(place, str(fault))


def _unknown(fields: Mapping[str, Any], known: Collection[str], place: str) -> Iterator[InvalidField]:
    for name in fields:
        if name not in known:
            yield InvalidField(f"{place}{_shown(name)}", "is not a field")


def _shown(name: str) -> str:
    """Format a name for error messages; a long name is cut, and characters other than printable ASCII are escaped."""
    return name[:_SHOWN_LENGTH] if name.isascii() and name.isprintable() else ascii(name[:_SHOWN_LENGTH])


def _choice_faults(place: str, value: object, choices: frozenset[str]) -> Iterator[InvalidField]:
    if not isinstance(value, str) or value not in choices:
        yield InvalidField(place, f"should be one of {', '.join(sorted(choices))}")


def _list_faults(field: str, holder: Mapping[str, Any], place: str = "") -> Iterator[InvalidField]:
    if not _is_list_of_names(holder.get(field, [])):
        yield InvalidField(f"{place}{field}", "should be a list of names")
