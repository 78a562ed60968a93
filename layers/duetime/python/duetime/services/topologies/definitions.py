"""Stores the versions of topology definitions, and creates runs of definitions."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.errors import (
    ContentExpired,
    DefinitionExists,
    DefinitionNotFound,
    DefinitionUsed,
    DefinitionVersionMismatch,
    FaultCode,
    FieldInvalid,
    Unavailable,
)
from duetime.domain.limits import MAX_DEFINITION_VERSIONS, MAX_PAGE
from duetime.domain.operating_parameters import DELETION_MARKER_LIFE
from duetime.domain.tasks.targets import TopologyTarget, definition_of, names_definitions
from duetime.domain.topologies.definitions import (
    DEFINITION,
    Definition,
    NestedDefinitions,
    VersionInfo,
    named_definitions,
)
from duetime.domain.topologies.maps import node_count
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.type_defaults import TaskSpec
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.topologies import DefinitionStore

_TRIES = 10


@frozen
class Precondition:
    """Condition for writing a definition.

    Attributes:
        version: required version; `None` for any version, or a new definition.
        absent: the definition must not exist.
    """

    version: int | None = None
    absent: bool = False

    def check(self, name: str, found: Definition | None) -> None:
        """Reject a write whose condition is not met.

        Raises:
            DefinitionExists: the definition exists, but must not exist.
            DefinitionVersionMismatch: the definition has a different version, or does not exist.
        """
        if self.absent and found is not None:
            raise DefinitionExists(name)
        if self.version is not None and (found is None or found.version != self.version):
            raise DefinitionVersionMismatch(name)


@frozen
class StoredDefinition:
    """A stored definition.

    Attributes:
        is_new: whether the write created the definition.
    """

    definition: Definition
    is_new: bool = False


@frozen
class TopologyDefinitions:
    """Manages an owner's topology definitions."""

    stores: Stores
    runtime: Runtime

    @property
    def _store(self) -> DefinitionStore:
        return self.stores.definitions

    def put(self, owner: str, name: str, content: bytes, by: str, condition: Precondition) -> StoredDefinition:
        """Store a new version, unless the content equals the latest version.

        Args:
            owner: owner of the definition.
            name: name of the definition.
            content: validated JSON.
            by: who stores the version, if not the owner.
            condition: condition for the write.

        Raises:
            DefinitionExists: the definition exists, but must not exist.
            DefinitionVersionMismatch: the definition is not at the required version.
            FieldInvalid: the definition is too large.
            Unavailable: too many concurrent writes.
        """
        for _ in range(_TRIES):
            before, incarnation = self._store.read(owner, name)
            condition.check(name, before)
            if before is not None and before.says(content):
                return StoredDefinition(before)
            number = incarnation.next.number
            after = Definition(name, VersionInfo(number, self.runtime.now(), by), content)
            if before is not None:
                self._store.keep_earlier(owner, before)
            if self._store.put(owner, after, incarnation, self.runtime.nonce()):
                if number - MAX_DEFINITION_VERSIONS > 0:
                    self._store.forget_earlier(owner, name, number - MAX_DEFINITION_VERSIONS)
                return StoredDefinition(after, is_new=before is None)
        raise _busy(name)

    def get(self, owner: str, name: str, version: int | None = None) -> Definition:
        """Read a given version, or the latest version.

        Raises:
            DefinitionNotFound: no definition has that name, or the definition does not have that version.
        """
        latest, incarnation = self._store.read(owner, name)
        if latest is None:
            raise DefinitionNotFound(name)
        if version in (None, latest.version):
            return latest
        # Versions before `created` belonged to a deleted definition with the same name.
        is_own = version is not None and incarnation.created <= version < latest.version
        found = self._store.read_earlier(owner, name, version) if is_own and version is not None else None
        if found is None:
            raise DefinitionNotFound(name, version)
        return found

    def versions(self, owner: str, name: str) -> Sequence[VersionInfo]:
        """The versions of a definition, latest first.

        Raises:
            DefinitionNotFound: no definition has that name.
        """
        latest, incarnation = self._store.read(owner, name)
        if latest is None:
            raise DefinitionNotFound(name)
        earlier = self._store.list_earlier(owner, name)
        return [latest.info, *(each for each in earlier if incarnation.created <= each.version < latest.version)]

    def list(self, owner: str, after: str, limit: int) -> Sequence[Definition]:
        """The latest versions of the definitions whose names follow `after`, by name and with eventual consistency."""
        return self._store.list_after(owner, after, limit)

    def delete(self, owner: str, name: str, version: int | None = None) -> Definition:
        """Delete a definition with all its versions, and return the latest version; runs have their own graphs.

        A repeat removes versions that an interrupted deletion has left.

        Raises:
            DefinitionNotFound: no definition has that name.
            DefinitionVersionMismatch: the definition is not at the required version.
            DefinitionUsed: a schedule uses the definition.
            Unavailable: too many concurrent writes.
        """
        before, incarnation = self._store.read(owner, name)
        if before is None:
            self._forget_up_to(owner, name, incarnation.number)
            raise DefinitionNotFound(name)
        for _ in range(_TRIES):
            Precondition(version).check(name, before)
            self._check_unused(owner, name)
            expires_at = self.runtime.now() + DELETION_MARKER_LIFE
            if self._store.remove(owner, before, incarnation, self.runtime.nonce(), expires_at):
                self._forget_up_to(owner, name, before.version)
                return before
            present, found = self._store.read(owner, name)
            if present is None or found.created != incarnation.created:
                # A concurrent request has deleted the definition; the name now belongs to another definition.
                return before
            before, incarnation = present, found
        raise _busy(name)

    def _forget_up_to(self, owner: str, name: str, last: int) -> None:
        """Remove the versions of a deleted definition; a later definition with the same name has higher versions."""
        for info in self._store.list_earlier(owner, name):
            if info.version <= last:
                self._store.forget_earlier(owner, name, info.version)

    def _check_unused(self, owner: str, name: str) -> None:
        after = ""
        while page := self.stores.schedules.list_after(owner, after, MAX_PAGE):
            for schedule in page:
                if name in self._names_in(schedule):
                    raise DefinitionUsed(name, schedule.name)
            after = page[-1].name

    def _names_in(self, schedule: StoredSchedule) -> Collection[str]:
        """The names of the definitions that a schedule's task or the nodes of its graph run."""
        target = schedule.spec.task.target
        if (ref := definition_of(target)) is not None:
            return {ref.name}
        if not isinstance(target, TopologyTarget):
            return ()
        try:
            payload = self.stores.contents.fetch(schedule.uid, schedule.payload)
        except ContentExpired:
            return ()
        return {*named_definitions(json.loads(payload))} if names_definitions(payload) else ()

    def resolved(self, owner: str, spec: TaskSpec) -> TaskSpec:
        """Add the graph of a version to a task that names a definition; other tasks are returned unchanged.

        Raises:
            FieldInvalid: the definition or version does not exist, or the parameters do not fit.
        """
        if (ref := definition_of(spec.target)) is None:
            return spec
        try:
            run = self._find(owner, ref.name, ref.version).run_of(spec, json.loads(ref.parameters))
            return replace(run, payload=self.with_graphs(owner, run.payload))
        except FieldInvalid as refusal:
            raise refusal.inside(DEFINITION) from None

    def node_count(self, owner: str, spec: TaskSpec) -> int:
        """The number of a new topology's nodes; 0 if the definition or version that it names does not exist."""
        if (ref := definition_of(spec.target)) is None:
            return node_count(spec.payload)
        with suppress(DefinitionNotFound):
            return len(self.get(owner, ref.name, ref.version).document["nodes"])
        return 0

    def with_graphs(self, owner: str, payload: bytes) -> bytes:
        """The graph in a payload, including the graphs of definitions that its nodes name.

        Raises:
            FieldInvalid: a definition or version does not exist, its parameters do not fit, or the graph is too large.
        """
        if not names_definitions(payload):
            return payload
        return NestedDefinitions(partial(self._find, owner)).replaced_in(payload)

    def _find(self, owner: str, name: str, version: int | None) -> Definition:
        try:
            return self.get(owner, name, version)
        except DefinitionNotFound as refusal:
            field = "name" if version is None else "version"
            raise FieldInvalid(field, str(refusal), FaultCode.NOT_ALLOWED) from None


def _busy(name: str) -> Unavailable:
    return Unavailable(f"the topology definition {name!r} has too many concurrent writes")
