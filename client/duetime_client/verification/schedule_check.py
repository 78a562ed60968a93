"""Checks that each occurrence of a schedule runs once and on time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime_client.verification import findings as assertions
from duetime_client.verification.check import Check, at
from duetime_client.verification.session import millis
from duetime_client.verification.verification_plan import LEAD_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.verification.findings import Finding
    from duetime_client.verification.session import Session
    from duetime_client.verification.verification_plan import Plan


@dataclass
class RecurringTasks(Check):
    """A schedule with a few occurrences that are some seconds apart."""

    plan: Plan
    name: str = "recurring"
    _expected: list[int] = field(default_factory=list)
    _schedule: str = ""

    def start(self, session: Session) -> None:
        """Create the schedule."""
        period = self.plan.period_seconds * 1000
        first = -(-(session.now_ms() + round(LEAD_SECONDS * 1000)) // period) * period
        self._expected = [first + number * period for number in range(self.plan.occurrences)]
        self._schedule = f"verify-{session.run_id}"
        session.schedules.append(self._schedule)
        session.client.schedules.create(
            self._schedule,
            cron=f"*/{self.plan.period_seconds} * * * * *",
            start_at=at(first),
            end_at=at(self._expected[-1]),
            overlap="allow_all",
            task=session.probe(self.name),
        )

    def observe(self, session: Session) -> None:
        """Follow the tasks that the schedule has created."""
        known = sum(each.group == self.name for each in session.followed.values())
        if known < len(self._expected) and self._schedule:
            period = self.plan.period_seconds * 1000
            listed = session.client.schedules.list_occurrences(
                self._schedule,
                scheduled_after=at(self._expected[0] - period),
                scheduled_before=at(self._expected[-1] + period),
            )
            for occurrence in listed:
                if occurrence.task_id:
                    session.follow(occurrence.task_id, millis(occurrence.scheduled_at), self.name)

    def findings(self, session: Session) -> Sequence[Finding]:
        """Report whether each occurrence ran, and how late."""
        executions = session.executions(self.name)
        on_time = assertions.on_time("occurrences are on time", executions, self.plan.limits)
        return [assertions.recurring(self._expected, executions), on_time]
