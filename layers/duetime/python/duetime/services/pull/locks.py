"""What a leased task holds besides its lease: the locks that it needs, as pull workers come by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.tasks.task_options import LockScope

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Postponed, Skipped
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.attempts import StartGate
    from duetime.services.locks.locking import LockManager


@dataclass(frozen=True, slots=True)
class PullLocks:
    """Takes, renews and releases all that an attempt of a pull worker holds.

    Nothing is remembered in between, so what a task holds is what it needs.

    Attributes:
        start_gate: whether an operator, its handler or its schedule keeps a task from beginning.
    """

    lock_manager: LockManager
    start_gate: StartGate

    def take(self, task: Task, until: Millis) -> Postponed | Skipped | None:
        """Take all that a task needs, until its lease ends.

        Returns:
            Nothing if it has it all; else the task must be postponed or skipped as the answer says, and `give_back`
            must follow.
        """
        if held := self.start_gate.held(task):
            return held
        for claim in self.lock_manager.claims(task):
            if held := self.lock_manager.take(task, claim):
                return held
        self.renew(task, until)
        return None

    def renew(self, task: Task, until: Millis) -> bool:
        """Let all that a task holds last until then; says whether it still holds it all."""
        return all(self.lock_manager.renew(task, claim, until) for claim in self.lock_manager.claims(task))

    def give_back(self, task: Task, *, closes_elsewhere: bool = False) -> None:
        """Give back what a task holds, and hand it on.

        Args:
            task: the record as it was claimed.
            closes_elsewhere: whoever does what follows its outcome takes the locks of the whole task over.
        """
        scopes = {LockScope.RUN} if closes_elsewhere else set(LockScope)
        for claim in self.lock_manager.claims(task, scopes):
            self.lock_manager.give_back(task, claim)
