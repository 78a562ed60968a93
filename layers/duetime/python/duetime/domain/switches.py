"""Switches, which stop tasks or limit their concurrency without a deployment. Decisions are returned as values."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.locks import LockClaim, LockName
from duetime.domain.tasks.task_options import LockScope
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Rate
    from duetime.domain.times import Millis

SYSTEM = ""
"""Owner of the locks and rates that enforce switches' limits; no caller can have this name."""


class SwitchScope(StrEnum):
    """The scope of a switch.

    Attributes:
        ALL: all tasks of all owners.
        TYPE: all tasks of one type, of all owners.
        OWNER: all tasks of one owner.
    """

    ALL = "all"
    """All tasks of all owners."""
    TYPE = "type"
    """All tasks of one type, of all owners."""
    OWNER = "owner"
    """All tasks of one owner."""


@frozen(order=True)
class SwitchKey:
    """Name of a switch.

    Attributes:
        name: name of the type or the owner; `all` for the switch for all tasks.
    """

    scope: SwitchScope
    name: str

    @staticmethod
    def for_task(scope: SwitchScope, task: Task) -> SwitchKey:
        """The key of the switch that applies to a task in a scope."""
        names = {SwitchScope.ALL: ALL_TASKS.name, SwitchScope.TYPE: task.type, SwitchScope.OWNER: task.owner}
        return SwitchKey(scope, names[scope])

    @property
    def resource(self) -> str:
        """Key of the lock or rate that enforces the switch's limits; only these keys contain a slash."""
        return f"{self.scope}/{self.name}"

    def __str__(self) -> str:
        """Describes the switch's scope for users."""
        return "everything" if self.scope is SwitchScope.ALL else f"{self.scope} {self.name}"


ALL_TASKS = SwitchKey(SwitchScope.ALL, "all")
"""The switch for all tasks of all owners."""


@frozen
class Switch:
    """A setting that stops or limits some tasks.

    Attributes:
        stopped: whether none of these tasks may start.
        max_concurrent: maximum number of concurrently running tasks; `None` for no limit.
        reason: human-readable reason.
        updated_at: when the switch was set.
        updated_by: who set the switch.
        rate: limit on the starts of these tasks' attempts; `None` for no limit.
    """

    key: SwitchKey
    stopped: bool = False
    max_concurrent: int | None = None
    reason: str = ""
    updated_at: Millis = 0
    updated_by: str = ""
    rate: Rate | None = None

    @property
    def is_idle(self) -> bool:
        """Whether the switch has no effect."""
        return not self.stopped and self.max_concurrent is None and self.rate is None


class SwitchSetter(StrEnum):
    """Who sets a switch. Owners and operators have separate stores, so that owners cannot fill the operators' store."""

    OPERATORS = "operators"
    OWNERS = "owners"


@frozen
class Switches:
    """The switches of one kind of setter, or the switches in force.

    Attributes:
        version: incremented by every change; 0 if nothing is stored.
    """

    by_key: Mapping[SwitchKey, Switch] = field(default_factory=dict)
    version: int = 0
    setter: SwitchSetter = SwitchSetter.OPERATORS

    def of(self, task: Task) -> tuple[Switch, ...]:
        """The switches that apply to a task, widest scope first."""
        keys = [SwitchKey.for_task(scope, task) for scope in SwitchScope]
        return tuple(self.by_key[key] for key in keys if key in self.by_key)

    def verdict(self, task: Task) -> str | None:
        """Human-readable reason why a task may not start; `None` if it may start."""
        stopped = next((switch for switch in self.of(task) if switch.stopped), None)
        if stopped is None:
            return None
        return f"{stopped.key} is stopped" + (f": {stopped.reason}" if stopped.reason else "")

    def caps(self, task: Task) -> tuple[LockClaim, ...]:
        """The locks that a task needs because switches limit its concurrency."""
        return tuple(
            limit_of(switch.key.scope, task, switch.max_concurrent)
            for switch in self.of(task)
            if switch.max_concurrent is not None
        )

    def rates(self, task: Task) -> tuple[Rate, ...]:
        """The rates that switches set for a task; their keys differ from all tasks' keys."""
        return tuple(switch.rate for switch in self.of(task) if switch.rate is not None)

    def with_switch(self, switch: Switch) -> Switches:
        """A copy with a switch set; a switch without effect is removed."""
        others = {key: other for key, other in self.by_key.items() if key != switch.key}
        return replace(self, by_key=others if switch.is_idle else {**others, switch.key: switch})

    def without(self, key: SwitchKey) -> Switches:
        """A copy without a switch."""
        return self.with_switch(Switch(key))


def limit_of(scope: SwitchScope, task: Task, limit: int = 1) -> LockClaim:
    """The lock that enforces the concurrency limit of a switch that applies to a task."""
    return LockClaim(LockName(SYSTEM, SwitchKey.for_task(scope, task).resource), limit, LockScope.TASK)


def scope_of_limit(name: LockName) -> SwitchScope | None:
    """The scope of the switch whose limit a lock enforces; `None` for tasks' own locks."""
    return SwitchScope(name.key.partition("/")[0]) if name.owner == SYSTEM else None


@frozen
class StoredSwitches:
    """All switches of a deployment."""

    operators: Switches = field(default_factory=Switches)
    owners: Switches = field(default_factory=lambda: Switches(setter=SwitchSetter.OWNERS))

    @property
    def in_force(self) -> Switches:
        """All switches; an operator's switch replaces an owner's switch for the same tasks."""
        return Switches({**self.owners.by_key, **self.operators.by_key})

    def of(self, setter: SwitchSetter) -> Switches:
        """The switches of one kind of setter."""
        return self.owners if setter is SwitchSetter.OWNERS else self.operators
