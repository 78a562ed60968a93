"""Defines the permissions and keys for pull workers' leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import TypeNotPulled
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.domain.callers import OwnerPatterns
    from duetime.domain.ids import TaskId
    from duetime.domain.switches import SwitchScope
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@frozen
class Pullers:
    """Permissions to pull tasks, as patterns of the allowed callers by type. Callers have the same names as owners."""

    by_type: Mapping[str, OwnerPatterns]

    def allow(self, caller: str, task_type: str) -> bool:
        """Whether a caller may pull a type."""
        callers = self.by_type.get(task_type)
        return callers is not None and callers.include(caller)

    def check(self, caller: str, types: Iterable[str]) -> None:
        """Checks that a caller may pull these types.

        Raises:
            TypeNotPulled: the caller may not pull one of the types, or nobody may pull it.
        """
        for task_type in types:
            if not self.allow(caller, task_type):
                raise TypeNotPulled(task_type)


@frozen
class LeaseKey:
    """The key that a worker sends for its lease.

    The key identifies an attempt and the message delivery that led to the attempt. The key alone is not sufficient,
    because the caller must also be allowed to pull the type.

    Attributes:
        fence: fence of the attempt.
        nonce: nonce of the claim, known only to the worker that got the lease.
        pull_queue: the pulled type.
        length: duration of the lease, in milliseconds; each heartbeat renews the lease for this time.
        receipt: receipt handle of the message, to change its visibility and delete it.
        limited_by: the switches that limit the task's concurrency; the task occupies a place under each of these
            limits.
    """

    task_id: TaskId
    fence: int
    nonce: str
    pull_queue: str
    length: Millis
    receipt: str
    limited_by: tuple[SwitchScope, ...] = ()

    def is_of(self, task: Task) -> bool:
        """Whether the nonce is correct; if a later claim has changed the fence, every nonce is accepted."""
        return task.fence != self.fence or task.lease_nonce == self.nonce


@frozen
class LeaseRequest:
    """A pull worker's request for leases.

    Attributes:
        types: requested types of tasks.
        max_tasks: maximum number of tasks, 1 to 10.
        wait: how long to wait for the first task, in milliseconds.
        length: length of each lease, in milliseconds.
        worker: the worker's name, for the attempt history.
        acknowledge_within: how long each lease initially lasts, until the worker responds, in milliseconds; at most
            `length`.
    """

    types: tuple[str, ...]
    max_tasks: int
    wait: Millis
    length: Millis
    worker: str
    acknowledge_within: Millis | None = None

    @property
    def first(self) -> Millis:
        """Duration of a lease until its worker renews it, in milliseconds."""
        return self.length if self.acknowledge_within is None else self.acknowledge_within
