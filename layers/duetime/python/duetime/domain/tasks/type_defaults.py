"""Tasks to create, and the defaults of their types, which are used for options that a creation does not set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
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
    TaskOptions,
    Unique,
    Until,
    one_form,
)
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.dependencies import Dependencies
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task_options import Debounce, OrderKey
    from duetime.domain.times import Millis


_GRAPH_OF_ITS_OWN = TopologyTarget()
DEFAULTED = (
    "priority",
    "retry",
    "timeout_seconds",
    "notify_within_seconds",
    "rollback_on_failure",
    "lock",
    "locks",
    "rate",
    "notify_on",
    "expires_seconds",
    "fair_key",
    "fair_weight",
    "unique",
)
"""The options for which a type can have defaults, because they describe the work and not an individual task."""


@frozen
class TaskSpec(TaskOptions):
    """A client's request to create a task, decoded and checked against the limits.

    Attributes:
        type: the task's type, which determines the handler, or the kind of work for an endpoint or a pull worker.
        payload: JSON text in UTF-8; only its placeholders are replaced before it is passed to the target.
        upload: id of the upload that is the task's payload, instead of `payload`; `None` if there is none.
        due_at: when the task should run; `None` means now.
        delay: how long after its acceptance the task should run; cannot be combined with `due_at`.
        target: the target; `None` for the default of the type (`TargetRules.target_of`).
        allow_unknown_type: whether a type without a known handler is accepted.
        unique: makes the task the only task with a key; cannot be combined with `debounce`.
        debounce: lets later creations with the same key delay the task; cannot be combined with a due time.
        order: makes the task run after the earlier tasks with the same ordered key.
        parent_task_id: the task that started this task, as given in the request.
        group: id of the group that the task joins; `None` if the task joins no group.
        after: the tasks that must end before the task starts.
        explicit: options that the request explicitly set to their built-in values, so that the type's defaults do not
            replace them.
    """

    type: str
    payload: bytes = b"null"
    upload: str | None = None
    due_at: Millis | None = None
    delay: Millis | None = None
    target: Target | None = None
    allow_unknown_type: bool = False
    unique: Unique | None = None
    debounce: Debounce | None = None
    order: OrderKey | None = None
    parent_task_id: TaskId | None = None
    group: str | None = None
    after: Dependencies | None = None
    explicit: frozenset[str] = field(default_factory=frozenset)

    def of_graph(
        self, payload: bytes, notify_within_seconds: int, target: TopologyTarget = _GRAPH_OF_ITS_OWN
    ) -> TaskSpec:
        """The spec of a topology's task, whose payload is the graph and whose time limit is for the entire run."""
        return replace(self, payload=payload, target=target, notify_within_seconds=notify_within_seconds)


Options: TypeAlias = Mapping[str, Any]
"""Options in the JSON form of requests, already validated; the value null turns off a handler's default."""
_BUILT_IN = TaskSpec("")
_LOCKS = ("lock", "locks")
"""Pairs of options that are two forms of the same option."""
_ROLLS_BACK = (HandlerTarget, HttpTarget)


@frozen
class OwnDefaults:
    """Defaults that an owner gives to the owner's tasks of one type."""

    options: Options
    updated_at: Millis = 0
    updated_by: str = ""


@frozen
class OwnerTypes:
    """All defaults of an owner, by type.

    Attributes:
        version: version of the stored item; 0 if nothing is stored.
    """

    by_type: Mapping[str, OwnDefaults] = field(default_factory=dict)
    version: int = 0


@frozen
class HandlerDescription:
    """What a deployment knows about a type's handler.

    Attributes:
        phases: the phases that the handler offers.
        defaults: the options that the handler sets for its tasks.
        payload_schema: JSON Schema of the payload, as text; `None` if any JSON is accepted.
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
"""Functions that parse options whose values are not plain JSON."""


def merged(handler: Options, owner: Options) -> Options:
    """A type's defaults, which are its handler's defaults unless the owner's defaults replace them or turn them off."""
    if owner.get("lock") or owner.get("locks"):
        handler = {name: value for name, value in handler.items() if name not in _LOCKS}
    return {name: value for name, value in {**handler, **owner}.items() if value is not None}


def with_defaults(spec: TaskSpec, defaults: Options) -> TaskSpec:
    """A task to create, with its type's defaults.

    Options that the creation sets are kept, and are not merged with defaults.
    """
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
    """The options that a creation sets, and the options that would contradict them."""
    kept = {name for name in DEFAULTED if getattr(spec, name) != getattr(_BUILT_IN, name)} | spec.explicit
    if kept.intersection(_LOCKS):
        kept.update(_LOCKS)
    if spec.debounce is not None:
        kept.add("unique")
    if isinstance(spec.target, TopologyTarget):
        # A topology's graph determines this time limit.
        kept.add("notify_within_seconds")
    if spec.target is not None and not isinstance(spec.target, _ROLLS_BACK):
        kept.add("rollback_on_failure")
    return kept


@frozen
class TypeStatus:
    """An owner's view of a type.

    Attributes:
        handler: its handler; `None` if there is no handler, or the handlers are unknown.
        has_handler: whether there is a handler; `None` if unknown.
        is_pulled: whether pull workers lease its tasks.
        own: the defaults that the owner has set for the type.
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
        """The source of each default: `handler` or `owner`."""
        return {name: "owner" if name in self._own else "handler" for name in self.defaults}

    @property
    def _of_handler(self) -> Options:
        return {} if self.handler is None else self.handler.defaults

    @property
    def _own(self) -> Options:
        return {} if self.own is None else self.own.options
