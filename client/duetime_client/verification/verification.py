"""Runs all checks of a verification concurrently and collects their findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime_client.errors import RateLimited, Unreachable
from duetime_client.verification import findings
from duetime_client.verification.checks import all_checks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime_client.verification.check import Check
    from duetime_client.verification.findings import Finding
    from duetime_client.verification.session import Session
    from duetime_client.verification.verification_plan import Plan

PAUSE_SECONDS = 1.0
"""Seconds between two reads of the open tasks."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of one check."""

    name: str
    done: int
    of: int


def run(
    session: Session, plan: Plan, sleep: Callable[[float], object], show: Callable[[Sequence[Progress]], None]
) -> list[Finding]:
    """Run all checks, and wait until every task has ended or is lost.

    Raises:
        ClientError: the API rejected a request that every deployment supports, or cannot be reached.
    """
    checks = all_checks(plan)
    for check in checks:
        check.start(session)
        show(progress(session, checks))
    last_wait = max(each.due_ms for each in session.followed.values()) + round(plan.patience_seconds * 1000)
    while session.open() and session.now_ms() < last_wait:
        sleep(PAUSE_SECONDS)
        _observe(session, checks)
        show(progress(session, checks))
        last_due = max(each.due_ms for each in session.followed.values())
        last_wait = max(last_wait, last_due + round(plan.patience_seconds * 1000))
    for _ in session.read_all():
        show(progress(session, checks))
    return judge(session, plan, checks)


def _observe(session: Session, checks: Sequence[Check]) -> None:
    """Read the open tasks; if the API limits requests or cannot be reached, the next call reads them."""
    try:
        for check in checks:
            check.observe(session)
        session.read_due()
    except (RateLimited, Unreachable):
        return


def judge(session: Session, plan: Plan, checks: Sequence[Check]) -> list[Finding]:
    """The findings of each check, and the findings about all tasks together."""
    everything = session.executions()
    results = session.results()
    cost = [attempt.cost_dollars or 0.0 for attempts in session.attempts.values() for attempt in attempts]
    found = [finding for check in checks for finding in check.findings(session)]
    if not plan.late_tasks:
        found.append(findings.unmeasured("on time, sent by the trigger", "left out by --quick"))
    return [
        findings.lost(everything),
        findings.wrong_outcomes(everything),
        findings.repeated(everything),
        findings.early(everything),
        *found,
        findings.cold_starts(
            [bool(each.get("first_in_process")) for each in results], {str(each.get("process")) for each in results}
        ),
        findings.dollars(sum(cost), len(cost), plan.dollars),
    ]


def progress(session: Session, checks: Sequence[Check]) -> list[Progress]:
    """The progress of each check: how many of its tasks have ended."""
    unended = set(session.open())
    groups = {check.name: [each for each in session.followed.values() if each.group == check.name] for check in checks}
    return [
        Progress(name, sum(each.task_id not in unended for each in tasks), len(tasks)) for name, tasks in groups.items()
    ]
