"""Checks a pulled type by leasing its tasks on this machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime_client.verification import findings as assertions
from duetime_client.verification.check import Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.verification.findings import Finding
    from duetime_client.verification.session import Session
    from duetime_client.verification.verification_plan import Plan

_PULL_LEASE_SECONDS = 30


@dataclass
class PulledTasks(Check):
    """Tasks of a pulled type that this machine leases."""

    plan: Plan
    name: str = "pulled"
    _leased: Counter[str] = field(default_factory=Counter)

    def start(self, session: Session) -> None:
        """Create the tasks."""
        if self.plan.pulled_type:
            tasks = [session.probe(self.name) for _ in range(self.plan.pulled)]
            session.create(self.name, [{**task, "type": self.plan.pulled_type} for task in tasks])

    def observe(self, session: Session) -> None:
        """Lease and complete the tasks of this verification; release any other leased task."""
        if not self.plan.pulled_type:
            return
        leases = session.client.leases.acquire(
            [self.plan.pulled_type],
            max_tasks=self.plan.pulled,
            lease_seconds=_PULL_LEASE_SECONDS,
            worker="duetime verify",
        )
        for leased in leases:
            if leased.task.id in session.followed:
                self._leased[leased.task.id] += 1
                session.client.leases.complete(leased.id)
            else:
                session.client.leases.release(leased.id)

    def findings(self, session: Session) -> Sequence[Finding]:
        """Report whether each task was leased once."""
        if not self.plan.pulled_type:
            return [assertions.unmeasured("a pulled task is leased once", "needs a pulled type (--pulled)")]
        return [assertions.pulled([each.task_id for each in session.executions(self.name)], self._leased)]
