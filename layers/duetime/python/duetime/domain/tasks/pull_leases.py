"""Leases of pull workers: who may have them, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import TypeNotPulled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.times import Millis

ANYONE = "*"
"""Stands for every caller of the API."""


@dataclass(frozen=True, slots=True)
class Pullers:
    """Who may pull which types: the callers by type, each named as an owner is."""

    by_type: Mapping[str, frozenset[str]]

    def allow(self, caller: str, task_type: str) -> bool:
        """Whether a caller may pull a type."""
        return not self.by_type.get(task_type, frozenset()).isdisjoint({caller, ANYONE})

    def check(self, caller: str, types: Iterable[str]) -> None:
        """Let a caller pull these types.

        Raises:
            TypeNotPulled: it may not pull one of them, or nobody may.
        """
        for task_type in types:
            if not self.allow(caller, task_type):
                raise TypeNotPulled(task_type)


@dataclass(frozen=True, slots=True)
class LeaseKey:
    """One lease, as its worker names it: an attempt, and the delivery that led to it.

    It grants nothing by itself: its caller must be allowed to pull the type, and the fence decides the rest.

    Attributes:
        pull_queue: the pulled type.
        length: how long the lease is, in milliseconds; a heartbeat renews it by as much.
        receipt: of the message, by which its visibility is changed and it is deleted.
    """

    task_id: TaskId
    fence: int
    pull_queue: str
    length: Millis
    receipt: str


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """What a pull worker asks for.

    Attributes:
        types: of the tasks it can do.
        max_tasks: tasks at the most, 1 to 10.
        wait: how long to wait for the first one, in milliseconds.
        length: of each lease, in milliseconds.
        worker: its name, for the attempt history.
        acknowledge_within: how long each lease lasts before the worker is heard of, in milliseconds; at most `length`.
    """

    types: tuple[str, ...]
    max_tasks: int
    wait: Millis
    length: Millis
    worker: str
    acknowledge_within: Millis | None = None

    @property
    def first(self) -> Millis:
        """How long a lease lasts until its worker renews it, in milliseconds."""
        return self.length if self.acknowledge_within is None else self.acknowledge_within
