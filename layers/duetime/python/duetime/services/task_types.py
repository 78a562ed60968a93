"""Types of tasks: what the deployment knows about them, and the defaults of their tasks."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import TypeNotFound, TypesFull, Unavailable
from duetime.domain.limits import MAX_TYPES_WITH_DEFAULTS
from duetime.domain.operating_parameters import TYPE_DEFAULTS_LIFE, TYPE_DEFAULTS_TRUST
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
    from duetime.domain.tasks.type_defaults import Options
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import TypeDefaultsStore
    from duetime.services.enqueue import Shards


_TRIES = 20


_MOST_OWNERS = 1_000
"""How many owners' defaults a process caches."""


_NONE = OwnerTypes()


_NO_HANDLER = HandlerDescription()


@frozen
class _Known:
    """The defaults of an owner as read.

    Attributes:
        asked_at: when they were last asked for, even if there was no answer.
    """

    types: OwnerTypes
    read_at: Millis
    asked_at: Millis


@frozen
class TypeDefaults:
    """Gives tasks the defaults of their types. Each owner's are read at most every `TYPE_DEFAULTS_LIFE`.

    If a read fails, the last defaults stay in force for `TYPE_DEFAULTS_TRUST`; after that, no task is created.

    Attributes:
        handlers: the handlers of the deployment, by type.
        shards: knows whether there are any defaults, so that none are read otherwise.
    """

    store: TypeDefaultsStore
    handlers: Mapping[str, HandlerDescription]
    shards: Shards
    runtime: Runtime
    _known: dict[str, _Known] = field(default_factory=dict, init=False)

    def completed(self, owner: str, spec: TaskSpec) -> TaskSpec:
        """A task with the defaults of its type: those of the owner take precedence over those of the handler.

        Raises:
            Unavailable: the store did not answer.
        """
        own = self.look(owner).by_type.get(spec.type)
        handler = self.handlers.get(spec.type, _NO_HANDLER)
        return with_defaults(spec, merged(handler.defaults, {} if own is None else own.options))

    def look(self, owner: str) -> OwnerTypes:
        """The defaults of an owner as of a moment ago.

        Raises:
            Unavailable: the store did not answer.
        """
        if not self.shards.may_have_type_defaults():
            return _NONE
        now, known = self.runtime.now(), self._known.get(owner)
        if known is not None and now - known.asked_at < TYPE_DEFAULTS_LIFE:
            return known.types
        if known is not None:
            # Set before the read: other threads continue with the known defaults.
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
        built_in: types that every deployment handles; they are not listed.
    """

    types: TypeDefaults
    rules: TargetRules
    built_in: Collection[str]
    runtime: Runtime

    def list(self, owner: str, after: str, limit: int) -> Sequence[TypeStatus]:
        """The types with a handler, with pull workers or with defaults of the owner, by name.

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
            TypeNotFound: it has no handler, no pull workers and no defaults of the owner, or is reserved for others.
        """
        found = self._status(name, self.types.store.read(owner, consistent=True))
        is_known = found.has_handler or found.handler or found.is_pulled or found.own
        if not is_known or not self.rules.type_owners.allow(owner, name):
            raise TypeNotFound(name)
        return found

    def put(self, owner: str, name: str, options: Options) -> TypeStatus:
        """Set the defaults of the owner's tasks of a type; they replace earlier ones as a whole.

        Raises:
            FieldInvalid: the settings do not allow them.
            TypesFull: too many types have defaults.
            Unavailable: too many concurrent writes, or the store did not answer.
        """
        self.rules.target_of(owner, with_defaults(TaskSpec(name), merged({}, options)))
        wanted = OwnDefaults(options, self.runtime.now(), owner)

        def change(types: OwnerTypes) -> OwnerTypes:
            if name not in types.by_type and len(types.by_type) >= MAX_TYPES_WITH_DEFAULTS:
                raise TypesFull(MAX_TYPES_WITH_DEFAULTS)
            return replace(types, by_type={**types.by_type, name: wanted})

        # First: an announcement without defaults is harmless, defaults without one are not seen.
        self.types.shards.announce_type_defaults()
        return self._status(name, self._change(owner, change)[1])

    def delete(self, owner: str, name: str) -> TypeStatus:
        """Delete the defaults that the owner gives a type, and return it as it was.

        Raises:
            TypeNotFound: it has none.
            Unavailable: too many concurrent writes, or the store did not answer.
        """

        def change(types: OwnerTypes) -> OwnerTypes:
            if name not in types.by_type:
                raise TypeNotFound(name)
            return replace(types, by_type={each: own for each, own in types.by_type.items() if each != name})

        return self._status(name, self._change(owner, change)[0])

    def _change(self, owner: str, change: Callable[[OwnerTypes], OwnerTypes]) -> tuple[OwnerTypes, OwnerTypes]:
        """Apply a change to the present defaults of an owner; returns those before and after it."""
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
