"""Checks a new task's target, type and (for a topology) nodes; also applies and sets the defaults of types."""

from __future__ import annotations

import json
from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol

from duetime.domain.errors import FaultCode, FieldInvalid, TypeNotFound, TypesFull, Unavailable
from duetime.domain.limits import MAX_TYPES_WITH_DEFAULTS
from duetime.domain.operating_parameters import TYPE_DEFAULTS_LIFE, TYPE_DEFAULTS_TRUST
from duetime.domain.tasks.targets import TopologyTarget, definition_of, names_definitions
from duetime.domain.tasks.type_defaults import (
    HandlerDescription,
    OwnDefaults,
    OwnerTypes,
    TaskSpec,
    TypeStatus,
    merged,
    with_defaults,
)
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from duetime.domain.tasks.allowed_targets import TargetRules
    from duetime.domain.tasks.creation import TaskUpdate
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.type_defaults import Options
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import TypeDefaultsStore
    from duetime.ports.topologies import NewGraphReader
    from duetime.services.enqueue import Shards

PAYLOAD = "payload"
_TRIES = 20
_MOST_OWNERS = 1_000
"""Number of owners whose defaults a process caches."""
_NONE = OwnerTypes()
_NO_HANDLER = HandlerDescription()


class DefinitionReader(Protocol):
    """Creates runs of topology definitions."""

    def resolved(self, owner: str, spec: TaskSpec) -> TaskSpec:
        """Add the graph of a version to a task that names a definition; other tasks are returned unchanged.

        Raises:
            FieldInvalid: the definition or version does not exist, or the parameters do not fit.
        """
        ...

    def with_graphs(self, owner: str, payload: bytes) -> bytes:
        """The graph in a payload, including the graphs of definitions that its nodes name.

        Raises:
            FieldInvalid: a definition or version does not exist, its parameters do not fit, or the graph is too large.
        """
        ...


def payload_name(target: Target | None) -> str:
    """Name of a new task's payload if it is stored outside the record.

    For a run of a definition, the name contains the version: if two processes create the same run while the definition
    changes, neither process may overwrite the other's graph, because the record will name one of the two graphs.
    """
    ref = definition_of(target)
    return PAYLOAD if ref is None else f"{PAYLOAD}.{ref.version}"


@frozen
class CreationRules:
    """Accepts or rejects new tasks, including the node tasks of a topology.

    Attributes:
        targets: targets that the settings allow.
        read_graph: parses a topology's payload.
        definitions: creates runs of topology definitions.
        types: gives tasks the defaults of their types.
    """

    targets: TargetRules
    read_graph: NewGraphReader
    definitions: Callable[[], DefinitionReader]
    types: TypeDefaults

    def resolved(self, owner: str, spec: TaskSpec, place: str = f"{PAYLOAD}.") -> TaskSpec:
        """Add to a task its type's defaults, and the graphs of definitions that the task or its nodes name.

        Args:
            owner: owner of the task and of the definitions.
            spec: the task.
            place: name of the place in the request that contains the task's graph, for use in errors.

        Raises:
            FieldInvalid: a definition or version does not exist, or the parameters do not fit it.
            Unavailable: the store did not answer.
        """
        return self._with_definitions(owner, self.types.completed(owner, spec), place)

    def _with_definitions(self, owner: str, spec: TaskSpec, place: str = f"{PAYLOAD}.") -> TaskSpec:
        if definition_of(spec.target) is not None:
            return self.definitions().resolved(owner, spec)
        if not isinstance(spec.target, TopologyTarget) or not names_definitions(spec.payload):
            return spec
        try:
            return replace(spec, payload=self.definitions().with_graphs(owner, spec.payload))
        except FieldInvalid as refusal:
            raise FieldInvalid(f"{place}{refusal.field}", refusal.reason, refusal.code) from None

    def resolved_update(self, task: Task, wanted: TaskUpdate) -> TaskUpdate:
        """Add the graph to a task change that names another definition, version or parameters.

        Raises:
            FieldInvalid: the definition does not exist, or the change replaces the graph but not the definition.
        """
        target = wanted.fields.get("target", task.target)
        if definition_of(target) is None:
            return self._with_graphs(task.owner, target, wanted)
        if wanted.payload is not None:
            if "target" not in wanted.fields:
                raise FieldInvalid(PAYLOAD, "is the graph of a definition: change `target`", FaultCode.CONFLICT)
            return wanted
        if target == task.target:
            return wanted
        spec = self._with_definitions(task.owner, TaskSpec(task.type, target=target))
        return replace(wanted, payload=spec.payload, fields={**wanted.fields, "target": spec.target or target})

    def _with_graphs(self, owner: str, target: Target | None, wanted: TaskUpdate) -> TaskUpdate:
        """A change to a graph, including the graphs of definitions that its nodes name."""
        if wanted.payload is None:
            return wanted
        spec = self._with_definitions(owner, TaskSpec("", wanted.payload, target=target))
        return replace(wanted, payload=spec.payload)

    def accept(self, owner: str, spec: TaskSpec, graph: Graph | None = None) -> Target:
        """The target of a new task.

        Args:
            owner: owner of the task.
            spec: the task.
            graph: graph of a topology, if the request gave it in separate fields instead of a payload.

        Raises:
            FieldInvalid: the target is not allowed, or the type has no handler; the same applies to each node.
        """
        target = self.targets.accept(owner, spec)
        if graph is not None:
            # If nodes name definitions, the graph in the request is not complete, so the completed payload is read.
            self.accept_nodes(owner, self.read_graph(spec.payload, ()) if names_definitions(spec.payload) else graph)
        elif isinstance(target, TopologyTarget):
            self.graph_of(owner, spec.payload, target)
        return target

    def graph_of(self, owner: str, payload: bytes, target: Target) -> Graph:
        """The graph in the new payload of an owner's task with this target.

        Raises:
            FieldInvalid: the payload is not a graph, or a node is invalid.
        """
        try:
            ref = definition_of(target)
            graph = self.read_graph(payload, () if ref is None else json.loads(ref.parameters))
            self.accept_nodes(owner, graph)
        except FieldInvalid as refusal:
            field = refusal.field if refusal.field == PAYLOAD else f"{PAYLOAD}.{refusal.field}"
            raise FieldInvalid(field, refusal.reason, refusal.code) from None
        return graph

    def accept_nodes(self, owner: str, graph: Graph) -> None:
        """Reject an owner's graph with an invalid node task.

        Raises:
            FieldInvalid: a node is invalid; the error names it.
        """
        for node in graph.nodes:
            try:
                self.targets.accept(owner, node.spec)
                if node.subgraph is not None:
                    self._accept_subgraph(owner, node.subgraph)
            except FieldInvalid as refusal:
                raise refusal.inside(f"nodes.{node.key}") from None

    def _accept_subgraph(self, owner: str, graph: Graph) -> None:
        try:
            self.accept_nodes(owner, graph)
        except FieldInvalid as refusal:
            raise refusal.inside(PAYLOAD) from None


@frozen
class _Known:
    """An owner's defaults as read.

    Attributes:
        asked_at: when the defaults were last requested from the store, even if the store did not answer.
    """

    types: OwnerTypes
    read_at: Millis
    asked_at: Millis


@frozen
class TypeDefaults:
    """Gives tasks the defaults of their types. Each owner's defaults are read at most once every `TYPE_DEFAULTS_LIFE`.

    If a read fails, the last known defaults stay in effect for `TYPE_DEFAULTS_TRUST`; after that, no task is created.

    Attributes:
        handlers: the handlers of the deployment, by type.
        shards: tells whether any defaults exist; if not, the store is not read.
    """

    store: TypeDefaultsStore
    handlers: Mapping[str, HandlerDescription]
    shards: Shards
    runtime: Runtime
    _known: dict[str, _Known] = field(default_factory=dict, init=False)

    def completed(self, owner: str, spec: TaskSpec) -> TaskSpec:
        """A task with the defaults of its type; the owner's defaults take precedence over the handler's defaults.

        Raises:
            Unavailable: the store did not answer.
        """
        own = self.look(owner).by_type.get(spec.type)
        handler = self.handlers.get(spec.type, _NO_HANDLER)
        return with_defaults(spec, merged(handler.defaults, {} if own is None else own.options))

    def look(self, owner: str) -> OwnerTypes:
        """The defaults of an owner, at most `TYPE_DEFAULTS_LIFE` old.

        Raises:
            Unavailable: the store did not answer.
        """
        if not self.shards.may_have_type_defaults():
            return _NONE
        now, known = self.runtime.now(), self._known.get(owner)
        if known is not None and now - known.asked_at < TYPE_DEFAULTS_LIFE:
            return known.types
        if known is not None:
            # The time is set before the read, so that other threads continue with the known defaults.
            self._known[owner] = replace(known, asked_at=now)
        try:
            found = self.store.read(owner, consistent=False)
        except Unavailable:
            if known is None or now - known.read_at >= TYPE_DEFAULTS_TRUST:
                self._known.pop(owner, None)
                raise
            return known.types
        self.note(owner, found)
        return found

    def note(self, owner: str, types: OwnerTypes) -> None:
        """Cache defaults that were just read or stored."""
        if len(self._known) >= _MOST_OWNERS:
            self._known.clear()
        now = self.runtime.now()
        self._known[owner] = _Known(types, now, now)


@frozen
class TypeAdmin:
    """Lists types, and sets the defaults that an owner gives them.

    Attributes:
        built_in: types that every deployment handles, which are not listed.
    """

    types: TypeDefaults
    rules: TargetRules
    built_in: Collection[str]
    runtime: Runtime

    def list(self, owner: str, after: str, limit: int) -> Sequence[TypeStatus]:
        """The types that have a handler, pull workers or defaults set by the owner, in order of name.

        Types that are reserved for other owners are not listed.
        """
        own = self.types.store.read(owner, consistent=True)
        handled = () if self.rules.handled is None else self.rules.handled
        known = {*self.types.handlers, *handled, *self.rules.pulled, *own.by_type} - {*self.built_in}
        names = self.rules.usable_types(owner, known)
        return [self._status(name, own) for name in sorted(names) if name > after][:limit]

    def get(self, owner: str, name: str) -> TypeStatus:
        """One type.

        Raises:
            TypeNotFound: the type has no handler, no pull workers and no defaults of the owner, or is reserved for
                other owners.
        """
        found = self._status(name, self.types.store.read(owner, consistent=True))
        is_known = found.has_handler or found.handler or found.is_pulled or found.own
        if not is_known or not self.rules.type_owners.allow(owner, name):
            raise TypeNotFound(name)
        return found

    def put(self, owner: str, name: str, options: Options) -> TypeStatus:
        """Set the defaults for the owner's tasks of a type, replacing all earlier defaults.

        Raises:
            FieldInvalid: the settings do not allow these defaults.
            TypesFull: too many types have defaults.
            Unavailable: too many concurrent writes, or the store did not answer.
        """
        self.rules.target_of(owner, with_defaults(TaskSpec(name), merged({}, options)))
        wanted = OwnDefaults(options, self.runtime.now(), owner)

        def change(types: OwnerTypes) -> OwnerTypes:
            if name not in types.by_type and len(types.by_type) >= MAX_TYPES_WITH_DEFAULTS:
                raise TypesFull(MAX_TYPES_WITH_DEFAULTS)
            return replace(types, by_type={**types.by_type, name: wanted})

        # The announcement comes first, because an announcement without defaults is harmless, but defaults without an
        # announcement are not seen.
        self.types.shards.announce_type_defaults()
        return self._status(name, self._change(owner, change)[1])

    def delete(self, owner: str, name: str) -> TypeStatus:
        """Delete the defaults that the owner has set for a type; returns the type with the deleted defaults.

        Raises:
            TypeNotFound: the type has no defaults set by the owner.
            Unavailable: too many concurrent writes, or the store did not answer.
        """

        def change(types: OwnerTypes) -> OwnerTypes:
            if name not in types.by_type:
                raise TypeNotFound(name)
            return replace(types, by_type={each: own for each, own in types.by_type.items() if each != name})

        return self._status(name, self._change(owner, change)[0])

    def _change(self, owner: str, change: Callable[[OwnerTypes], OwnerTypes]) -> tuple[OwnerTypes, OwnerTypes]:
        """Apply a change to an owner's current defaults; returns the defaults before and after the change."""
        for _ in range(_TRIES):
            before = self.types.store.read(owner, consistent=True)
            after = change(before)
            if self.types.store.save(owner, after, self.runtime.nonce()):
                self.types.note(owner, replace(after, version=before.version + 1))
                return before, after
        raise Unavailable("too many concurrent writes to the defaults of types; try again")

    def _status(self, name: str, own: OwnerTypes) -> TypeStatus:
        handled = self.rules.handled
        return TypeStatus(
            type=name,
            handler=self.types.handlers.get(name),
            has_handler=name in self.types.handlers or (None if handled is None else name in {*handled}),
            is_pulled=name in self.rules.pulled,
            own=own.by_type.get(name),
        )
