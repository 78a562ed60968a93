"""Topology definitions: graphs that have a name, versions and parameters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_DEADLINE_SECONDS, MAX_GRAPH_BYTES
from duetime.domain.tasks.targets import DefinitionRef, TopologyTarget
from duetime.domain.topologies.graph import GRAPH_FIELDS
from duetime.domain.topologies.node_placeholders import compact_json
from duetime.domain.topologies.parameters import parameters_of, values_of, with_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duetime.domain.tasks.task_spec import TaskSpec
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """What is known of a version without its content.

    Attributes:
        version: grows with every change; deletions count, so that no number is used again.
        created_at: when this version was created.
        created_by: who created it, if that was not its owner.
    """

    version: int
    created_at: Millis
    created_by: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """One version of a definition.

    Attributes:
        content: what its user wrote, as compact JSON: the fields of a graph, `parameters` and `description`.
    """

    name: str
    info: VersionInfo
    content: bytes

    @property
    def version(self) -> int:
        """Its number."""
        return self.info.version

    @property
    def document(self) -> dict[str, Any]:
        """What its user wrote, parsed."""
        return json.loads(self.content)  # type: ignore[no-any-return]

    def says(self, content: bytes) -> bool:
        """Whether another content means the same: the order of its fields does not count."""
        return self.content == content or _canonical(self.content) == _canonical(content)

    def run_of(self, spec: TaskSpec, given: Mapping[str, Any]) -> TaskSpec:
        """The task of a run of this version.

        Args:
            spec: how the run shall be, without its graph.
            given: its parameters.

        Raises:
            FieldInvalid: the parameters do not fit, or make the graph too large.
        """
        graph, values = self.graph_with(given)
        payload = compact_json(graph)
        if len(payload) > MAX_GRAPH_BYTES:
            reason = f"make a graph of {len(payload)} bytes; {MAX_GRAPH_BYTES} are allowed"
            raise FieldInvalid("parameters", reason, FaultCode.TOO_LONG)
        lasts_seconds = min(spec.notify_within_seconds, graph.get("timeout_seconds") or MAX_DEADLINE_SECONDS)
        target = TopologyTarget(DefinitionRef(self.name, self.version, compact_json(values).decode()))
        return spec.of_graph(payload, lasts_seconds, target)

    def graph_with(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The graph of a run, as JSON, and the values of all of its parameters.

        Raises:
            FieldInvalid: the parameters do not fit.
        """
        document = self.document
        values = values_of(parameters_of(document), given)
        graph = {name: document[name] for name in GRAPH_FIELDS if name in document}
        return {**graph, "nodes": with_values(document["nodes"], values)}, values


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between two versions.

    Attributes:
        path: where, in steps of names and indexes.
        before: the JSON in the first version, in a list; an empty list if it has nothing there.
        after: the same in the second one.
    """

    path: tuple[str | int, ...]
    before: tuple[Any, ...]
    after: tuple[Any, ...]


def differences(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[Difference]:  # noqa: ANN401 - any JSON
    """What differs between two JSON values, field by field; lists are compared as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            place = (*path, name)
            if name not in before:
                yield Difference(place, (), (after[name],))
            elif name not in after:
                yield Difference(place, (before[name],), ())
            else:
                yield from differences(before[name], after[name], place)
    elif json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True):
        yield Difference(path, (before,), (after,))


def _canonical(content: bytes) -> str:
    return json.dumps(json.loads(content), sort_keys=True)
