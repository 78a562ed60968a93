"""Topology definitions: keeping their versions, and making runs of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid, Unavailable
from duetime.domain.limits import MAX_DEFINITION_VERSIONS, MAX_PAGE
from duetime.domain.operating_parameters import DELETION_MARKER_LIFE
from duetime.domain.tasks.targets import definition_of, names_definitions
from duetime.domain.topologies.definitions import DEFINITION, Definition, NestedDefinitions, VersionInfo
from duetime.domain.topologies.errors import (
    DefinitionExists,
    DefinitionNotFound,
    DefinitionUsed,
    DefinitionVersionMismatch,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.task_spec import TaskSpec
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.topologies import DefinitionStore

_TRIES = 10


@dataclass(frozen=True, slots=True)
class Precondition:
    """What must be so for a definition to be written.

    Attributes:
        version: at which it must be; `None` for any, or none.
        absent: there must be none.
    """

    version: int | None = None
    absent: bool = False

    def check(self, name: str, found: Definition | None) -> None:
        """Reject a write of what is not as it must be.

        Raises:
            DefinitionExists: there is one, and there must be none.
            DefinitionVersionMismatch: it is at another version, or there is none.
        """
        if self.absent and found is not None:
            raise DefinitionExists(name)
        if self.version is not None and (found is None or found.version != self.version):
            raise DefinitionVersionMismatch(name)


@dataclass(frozen=True, slots=True)
class StoredDefinition:
    """A definition as it is stored.

    Attributes:
        is_new: there was none of its name before.
    """

    definition: Definition
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class TopologyDefinitions:
    """Keeps an owner's topology definitions."""

    stores: Stores
    runtime: Runtime

    @property
    def _store(self) -> DefinitionStore:
        return self.stores.definitions

    def put(self, owner: str, name: str, content: bytes, by: str, condition: Precondition) -> StoredDefinition:
        """Store a version; what says the same as the latest one makes no other.

        Args:
            owner: of the definition.
            name: of the definition.
            content: as JSON, checked.
            by: who puts it, if that is not the owner.
            condition: what must be so.

        Raises:
            DefinitionExists: there is one, and there must be none.
            DefinitionVersionMismatch: it is at another version than it must be.
            FieldInvalid: it is too large.
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
        """Read a version, or the latest one.

        Raises:
            DefinitionNotFound: there is none of that name, or it does not have that version.
        """
        latest, incarnation = self._store.read(owner, name)
        if latest is None:
            raise DefinitionNotFound(name)
        if version in (None, latest.version):
            return latest
        # What is older belonged to another definition of the name, which was deleted.
        is_own = version is not None and incarnation.created <= version < latest.version
        found = self._store.read_earlier(owner, name, version) if is_own and version is not None else None
        if found is None:
            raise DefinitionNotFound(name, version)
        return found

    def versions(self, owner: str, name: str) -> Sequence[VersionInfo]:
        """The versions of a definition, latest first.

        Raises:
            DefinitionNotFound: there is none of that name.
        """
        latest, incarnation = self._store.read(owner, name)
        if latest is None:
            raise DefinitionNotFound(name)
        earlier = self._store.list_earlier(owner, name)
        return [latest.info, *(each for each in earlier if incarnation.created <= each.version < latest.version)]

    def list(self, owner: str, after: str, limit: int) -> Sequence[Definition]:
        """The latest versions by name, eventually consistently; the list goes on behind `after`."""
        return self._store.list_after(owner, after, limit)

    def delete(self, owner: str, name: str, version: int | None = None) -> Definition:
        """Remove a definition with all its versions; its runs have graphs of their own. Returns it as it was.

        A repeat removes what one that was cut off has left.

        Raises:
            DefinitionNotFound: there is none of that name.
            DefinitionVersionMismatch: it is at another version than it must be.
            DefinitionUsed: a schedule runs it.
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
                # Somebody else has removed it; what has its name now is another one.
                return before
            before, incarnation = present, found
        raise _busy(name)

    def _forget_up_to(self, owner: str, name: str, last: int) -> None:
        """Remove the earlier versions of a definition that is gone; what has got its name since has later ones."""
        for info in self._store.list_earlier(owner, name):
            if info.version <= last:
                self._store.forget_earlier(owner, name, info.version)

    def _check_unused(self, owner: str, name: str) -> None:
        after = ""
        while page := self.stores.schedules.list_after(owner, after, MAX_PAGE):
            for schedule in page:
                ref = definition_of(schedule.spec.task.target)
                if ref is not None and ref.name == name:
                    raise DefinitionUsed(name, schedule.name)
            after = page[-1].name

    def resolved(self, owner: str, spec: TaskSpec) -> TaskSpec:
        """A task that names a definition as the task of a run, with the graph of a version; any other as it is.

        Raises:
            FieldInvalid: there is no such definition or version, or the parameters do not fit.
        """
        if (ref := definition_of(spec.target)) is None:
            return spec
        try:
            run = self._find(owner, ref.name, ref.version).run_of(spec, json.loads(ref.parameters))
            return replace(run, payload=self.with_graphs(owner, run.payload))
        except FieldInvalid as refusal:
            raise refusal.inside(DEFINITION) from None

    def with_graphs(self, owner: str, payload: bytes) -> bytes:
        """The graph in a payload, with those of the definitions that its nodes name.

        Raises:
            FieldInvalid: there is no such definition or version, or the parameters do not fit; or it is too large.
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
    return Unavailable(f"the topology definition {name!r} was written by others again and again")
