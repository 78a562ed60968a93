"""Offline validation of topologies, with the API's error messages."""

from __future__ import annotations

import re
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from duetime_client.errors import ClientError, InvalidField
from duetime_client.task_request_fields import NewTask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_NODES = 10_000
MAX_DEPENDENCIES = 50_000
RULES = frozenset({"all_success", "all_done", "one_success", "one_failed", "none_failed", "always"})
ON_FAILURE = frozenset({"stop", "continue", "rollback"})
_OF_A_TASK = frozenset(NewTask.__annotations__)
OF_A_NODE = (_OF_A_TASK - {"due_at", "unique", "debounce"}) | {
    "depends_on",
    "trigger_rule",
    "inputs",
    "when",
    "map",
    "expected_seconds",
}
_OF_A_GRAPH = frozenset({"nodes", "on_failure", "timeout_seconds", "outputs"})
OF_A_TOPOLOGY = frozenset(
    {
        "nodes",
        "on_failure",
        "timeout_seconds",
        "outputs",
        "type",
        "due_at",
        "delay_seconds",
        "priority",
        "callback_url",
        "notify_on",
        "expires_seconds",
        "unique",
        "debounce",
        "name",
        "tags",
    }
)
_MOST_FAULTS = 20
_SHOWN_AT_EACH_END = 5
_KEY_LENGTH = 128
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")


class TopologyInvalid(ClientError, ValueError):
    """A topology that is not valid; `errors` names the fields."""

    def __init__(self, errors: Iterable[InvalidField]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(f"{error.field}: {error.reason}" for error in self.errors))


def validate_topology(body: object) -> None:
    """Validate the graph of a topology; the API validates the fields of its tasks.

    Raises:
        TopologyInvalid: names up to twenty errors; a cycle only if there are no others.
    """
    if faults := [fault for fault, _ in zip(_faults(body, OF_A_TOPOLOGY), range(_MOST_FAULTS), strict=False)]:
        raise TopologyInvalid(faults)


def _faults(body: object, known: frozenset[str]) -> Iterator[InvalidField]:
    nodes = body.get("nodes") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(nodes, dict):
        yield InvalidField("nodes", "should be an object: each node by its name")
        return
    if not 1 <= len(nodes) <= MAX_NODES:
        yield InvalidField("nodes", f"should be 1 to {MAX_NODES}, not {len(nodes)}")
    yield from _unknown(body, known, "")
    yield from _choice_faults("on_failure", body.get("on_failure", "stop"), ON_FAILURE)
    yield from _name_faults("outputs", body.get("outputs", []), nodes, "which is not a node")
    clean = True
    for key, node in nodes.items():
        for fault in _node_faults(key, node, nodes):
            clean = False
            yield fault
    if clean:
        yield from _graph_faults({key: node.get("depends_on", []) for key, node in nodes.items()})


def _node_faults(key: str, node: object, nodes: Mapping[str, Any]) -> Iterator[InvalidField]:
    if _KEY.fullmatch(key) is None:
        reason = "has a character that no name has, or is empty or too long"
        yield InvalidField("nodes", f"the name {key[:_KEY_LENGTH]!a} {reason}")
        return
    place = f"nodes.{key}"
    if not isinstance(node, dict):
        yield InvalidField(place, "should be an object: a task, and what it depends on")
        return
    yield from _unknown(node, OF_A_NODE, f"{place}.")
    if not isinstance(node.get("type"), str):
        yield InvalidField(f"{place}.type", "should be the type of its task")
    yield from _choice_faults(f"{place}.trigger_rule", node.get("trigger_rule", "all_success"), RULES)
    parents = node.get("depends_on", [])
    yield from _name_faults(f"{place}.depends_on", parents, nodes, "which is not a node")
    if isinstance(parents, list) and key in parents:
        yield InvalidField(f"{place}.depends_on", "names the node itself")
    yield from _name_faults(f"{place}.inputs", node.get("inputs", []), parents, "which is not among its depends_on")
    yield from _condition_faults(f"{place}.when", node.get("when"))
    mapped = node.get("map")
    if mapped is not None:
        over = mapped.get("over") if isinstance(mapped, dict) else None
        yield from _condition_faults(f"{place}.map.over", 0 if over is None else over)
    yield from _subgraph_faults(place, node)


def _subgraph_faults(place: str, node: Mapping[str, Any]) -> Iterator[InvalidField]:
    """Faults in the graph of a nested topology; the API checks graphs of definitions."""
    target = node.get("target")
    if not isinstance(target, dict) or target.get("kind") != "topology" or target.get("definition") is not None:
        return
    for fault in _faults(node.get("payload"), _OF_A_GRAPH):
        yield InvalidField(f"{place}.payload.{fault.field}", fault.reason)


def _condition_faults(place: str, condition: object) -> Iterator[InvalidField]:
    """Syntax errors of a condition; the API checks what it refers to."""
    if condition is None:
        return
    if not isinstance(condition, str):
        yield InvalidField(place, "should be a text: a JMESPath expression")
        return
    import jmespath  # noqa: PLC0415 - most topologies have no conditions

    try:
        jmespath.compile(condition)
    except jmespath.exceptions.JMESPathError as error:
        yield InvalidField(place, f"is not a JMESPath expression: {' '.join(str(error).split())}")
    except RecursionError:
        yield InvalidField(place, "has too many expressions within each other")


def _unknown(fields: Mapping[str, Any], known: frozenset[str], place: str) -> Iterator[InvalidField]:
    for name in fields:
        if name not in known:
            yield InvalidField(f"{place}{_named(name)}", "is not a field")


def _named(name: str) -> str:
    """A name for error messages: cut if long, escaped if not printable ASCII."""
    return name[:_KEY_LENGTH] if name.isascii() and name.isprintable() else ascii(name[:_KEY_LENGTH])


def _choice_faults(place: str, value: object, choices: frozenset[str]) -> Iterator[InvalidField]:
    if not isinstance(value, str) or value not in choices:
        yield InvalidField(place, f"should be one of {', '.join(sorted(choices))}")


def _name_faults(place: str, names: object, known: Any, otherwise: str) -> Iterator[InvalidField]:  # noqa: ANN401 - JSON
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        yield InvalidField(place, "should be a list of names")
        return
    if not isinstance(known, list | dict):  # said elsewhere
        return
    for name, times in Counter(names).items():
        if name not in known:
            yield InvalidField(place, f"names {name[:_KEY_LENGTH]!a}, {otherwise}")
        if times > 1:
            yield InvalidField(place, f"names {name[:_KEY_LENGTH]!a} {times} times")


def _graph_faults(parents: Mapping[str, list[str]]) -> Iterator[InvalidField]:
    if (count := sum(map(len, parents.values()))) > MAX_DEPENDENCIES:
        yield InvalidField("nodes", f"have {count} dependencies; {MAX_DEPENDENCIES} are allowed")
        return
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        yield InvalidField("nodes", f"depend on each other in a cycle: {_shown(error.args[1])}")


def _shown(path: list[str]) -> str:
    hidden = len(path) - 2 * _SHOWN_AT_EACH_END
    if hidden > 1:
        path = [*path[:_SHOWN_AT_EACH_END], f"({hidden} more)", *path[-_SHOWN_AT_EACH_END:]]
    return " -> ".join(path)
