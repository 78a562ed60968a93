"""Defaults of task types: options that a task has unless its creation gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from duetime.domain.tasks.targets import HandlerTarget, HttpTarget, TopologyTarget
from duetime.domain.tasks.task_options import (
    LockMode,
    LockScope,
    LockSpec,
    NotifyOn,
    OnConflict,
    Priority,
    Rate,
    RetryPolicy,
    Unique,
    Until,
    one_form,
)
from duetime.domain.tasks.task_spec import DEFAULTED, TaskSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis

Options: TypeAlias = Mapping[str, Any]
"""Options in the JSON form of requests, which were checked before; null switches a default of the handler off."""
_BUILT_IN = TaskSpec("")
_LOCKS = ("lock", "locks")
"""Two forms of one option."""
_ROLLS_BACK = (HandlerTarget, HttpTarget)


@dataclass(frozen=True, slots=True)
class OwnDefaults:
    """Defaults that an owner gives to the owner's tasks of one type."""

    options: Options
    updated_at: Millis = 0
    updated_by: str = ""


@dataclass(frozen=True, slots=True)
class OwnerTypes:
    """All defaults of an owner, by type.

    Attributes:
        version: of the stored item; 0 if nothing is stored.
    """

    by_type: Mapping[str, OwnDefaults] = field(default_factory=dict)
    version: int = 0


@dataclass(frozen=True, slots=True)
class HandlerDescription:
    """What a deployment knows about the handler of a type.

    Attributes:
        phases: the phases that it offers.
        defaults: the options that it gives its tasks.
        payload_schema: JSON Schema of the payload, as text; `None` for any JSON.
    """

    phases: tuple[str, ...] = ()
    defaults: Options = field(default_factory=dict)
    payload_schema: str | None = None


def _lock(form: Mapping[str, Any]) -> LockSpec:
    scope, mode = LockScope(form.get("scope", LockScope.TASK)), LockMode(form.get("mode", LockMode.EXCLUSIVE))
    return LockSpec(**{**form, "scope": scope, "mode": mode})


def _unique(form: Mapping[str, Any]) -> Unique:
    until, on_conflict = form.get("until", Until.ENDED), form.get("on_conflict", OnConflict.KEEP)
    return Unique(form["key"], Until(until), OnConflict(on_conflict))


_READ: Mapping[str, Callable[[Any], object]] = {
    "priority": Priority,
    "retry": lambda form: RetryPolicy(**form),
    "lock": _lock,
    "locks": lambda forms: tuple(_lock(form) for form in forms),
    "rate": lambda form: Rate(**form),
    "notify_on": lambda form: NotifyOn(**form),
    "unique": _unique,
}
"""Options whose values are not plain."""


def merged(handler: Options, owner: Options) -> Options:
    """The defaults of a type: those of its handler, replaced or switched off by those of the owner."""
    if owner.get("lock") or owner.get("locks"):
        handler = {name: value for name, value in handler.items() if name not in _LOCKS}
    return {name: value for name, value in {**handler, **owner}.items() if value is not None}


def with_defaults(spec: TaskSpec, defaults: Options) -> TaskSpec:
    """A creation's task with the defaults of its type; each option that the creation gives is kept as a whole."""
    if not defaults:
        return spec
    kept = _kept(spec)
    given = {name: _value(name, each) for name, each in defaults.items() if name not in kept}
    if "locks" in given:
        given["lock"], given["locks"] = one_form(given.get("lock"), given["locks"])
    return replace(spec, **given)


def _value(name: str, form: Any) -> Any:  # noqa: ANN401 - the value of any option
    return _READ[name](form) if name in _READ else form


def _kept(spec: TaskSpec) -> set[str]:
    """The options that a creation gives itself, and those that would contradict its others."""
    kept = {name for name in DEFAULTED if getattr(spec, name) != getattr(_BUILT_IN, name)} | spec.explicit
    if kept.intersection(_LOCKS):
        kept.update(_LOCKS)
    if spec.debounce is not None:
        kept.add("unique")
    if isinstance(spec.target, TopologyTarget):
        # Its graph determines it.
        kept.add("notify_within_seconds")
    if spec.target is not None and not isinstance(spec.target, _ROLLS_BACK):
        kept.add("rollback_on_failure")
    return kept


@dataclass(frozen=True, slots=True)
class TypeStatus:
    """What an owner can know about a type.

    Attributes:
        handler: its handler; `None` if there is none, or if the handlers are not known.
        has_handler: whether there is a handler; `None` if that is not known.
        is_pulled: whether pull workers lease its tasks.
        own: the defaults that the owner gives its tasks.
    """

    type: str
    handler: HandlerDescription | None
    has_handler: bool | None
    is_pulled: bool
    own: OwnDefaults | None

    @property
    def defaults(self) -> Options:
        """The defaults that apply to its tasks."""
        return merged(self._of_handler, self._own)

    @property
    def sources(self) -> Mapping[str, str]:
        """Where each of the defaults comes from: `handler` or `owner`."""
        return {name: "owner" if name in self._own else "handler" for name in self.defaults}

    @property
    def _of_handler(self) -> Options:
        return {} if self.handler is None else self.handler.defaults

    @property
    def _own(self) -> Options:
        return {} if self.own is None else self.own.options
