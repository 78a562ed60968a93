"""Switches: what is stopped, and how much of it may run at once, without a deployment. Decisions as values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.locks import LockClaim, LockName
from duetime.domain.tasks.task_options import LockScope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Rate
    from duetime.domain.times import Millis

SYSTEM = ""
"""Owner of the locks that keep caps, and of the rates of switches: no caller can be called so."""


class SwitchScope(StrEnum):
    """What a switch applies to.

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


@dataclass(frozen=True, slots=True, order=True)
class SwitchKey:
    """Which switch.

    Attributes:
        name: of the type or the owner; of the one switch for all tasks it is `all`.
    """

    scope: SwitchScope
    name: str

    @property
    def resource(self) -> str:
        """Key of the lock or the rate by which its limits are kept; no lock or rate of a task has a slash."""
        return f"{self.scope}/{self.name}"

    def __str__(self) -> str:
        """In words that a user understands."""
        return "everything" if self.scope is SwitchScope.ALL else f"{self.scope} {self.name}"


ALL_TASKS = SwitchKey(SwitchScope.ALL, "all")
"""The switch for all tasks of all owners."""


@dataclass(frozen=True, slots=True)
class Switch:
    """What an operator has decided about some tasks.

    Attributes:
        stopped: none of them begins.
        max_concurrent: most of them that run at once; `None` for no limit.
        reason: why, for those who wonder.
        updated_at: when it was set.
        updated_by: who set it.
        rate: how often attempts at them may start; `None` for no limit.
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
        """Whether it changes nothing."""
        return not self.stopped and self.max_concurrent is None and self.rate is None


@dataclass(frozen=True, slots=True)
class Switches:
    """All switches of a deployment.

    Attributes:
        version: grows with every change; 0 while nothing is stored.
    """

    by_key: Mapping[SwitchKey, Switch] = field(default_factory=dict)
    version: int = 0

    def of(self, task: Task) -> tuple[Switch, ...]:
        """The switches that concern a task, the widest first."""
        keys = (
            ALL_TASKS,
            SwitchKey(SwitchScope.TYPE, task.type),
            SwitchKey(SwitchScope.OWNER, task.owner),
        )
        return tuple(self.by_key[key] for key in keys if key in self.by_key)

    def verdict(self, task: Task) -> str | None:
        """Why a task may not begin, in words; `None` if it may."""
        stopped = next((switch for switch in self.of(task) if switch.stopped), None)
        if stopped is None:
            return None
        return f"{stopped.key} is stopped" + (f": {stopped.reason}" if stopped.reason else "")

    def caps(self, task: Task) -> tuple[LockClaim, ...]:
        """What a task needs to begin because its type or its owner is capped: a lock of so many holders each."""
        return tuple(
            LockClaim(LockName(SYSTEM, switch.key.resource), switch.max_concurrent, LockScope.TASK)
            for switch in self.of(task)
            if switch.max_concurrent is not None
        )

    def rates(self, task: Task) -> tuple[Rate, ...]:
        """The rates that a task has because its type or its owner has one; their keys are those of no task's own."""
        return tuple(switch.rate for switch in self.of(task) if switch.rate is not None)

    def with_switch(self, switch: Switch) -> Switches:
        """With a switch set; one that changes nothing is taken away."""
        others = {key: other for key, other in self.by_key.items() if key != switch.key}
        return replace(self, by_key=others if switch.is_idle else {**others, switch.key: switch})

    def without(self, key: SwitchKey) -> Switches:
        """Without one switch."""
        return self.with_switch(Switch(key))
