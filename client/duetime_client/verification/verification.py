"""Running all checks of a verification side by side, and judging them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime_client.errors import Throttled, Unreachable
from duetime_client.verification import assertions
from duetime_client.verification.checks import checks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime_client.verification.assertions import Finding
    from duetime_client.verification.checks import Check
    from duetime_client.verification.plan import Plan
    from duetime_client.verification.session import Session

PAUSE_SECONDS = 1.0
"""Between two looks at what is still open."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one check is."""

    name: str
    done: int
    of: int


def run(
    session: Session, plan: Plan, sleep: Callable[[float], object], show: Callable[[Sequence[Progress]], None]
) -> list[Finding]:
    """Do all checks, and wait until every task has ended or is lost; what each promise came to.

    Raises:
        ClientError: the API refused what every deployment does, or cannot be reached.
    """
    all_checks = checks(plan)
    for check in all_checks:
        check.begin(session)
        show(progress(session, all_checks))
    give_up = max(each.due_ms for each in session.followed.values()) + round(plan.patience_seconds * 1000)
    while session.open() and session.now_ms() < give_up:
        sleep(PAUSE_SECONDS)
        _look(session, all_checks)
        show(progress(session, all_checks))
        last_due = max(each.due_ms for each in session.followed.values())
        give_up = max(give_up, last_due + round(plan.patience_seconds * 1000))
    for _ in session.read_all():
        show(progress(session, all_checks))
    return judge(session, plan, all_checks)


def _look(session: Session, all_checks: Sequence[Check]) -> None:
    """What fails to be read now is read at the next look."""
    try:
        for check in all_checks:
            check.look(session)
        session.look()
    except (Throttled, Unreachable):
        return


def judge(session: Session, plan: Plan, all_checks: Sequence[Check]) -> list[Finding]:
    """What all of it came to."""
    everything = session.executions()
    results = session.results()
    cost = [attempt.cost_dollars or 0.0 for attempts in session.attempts.values() for attempt in attempts]
    found = [finding for check in all_checks for finding in check.findings(session)]
    if not plan.late_tasks:
        found.append(assertions.unmeasured("on time, sent by the trigger", "left out (--quick)"))
    return [
        assertions.lost(everything),
        assertions.amiss(everything),
        assertions.doubled(everything),
        assertions.early(everything),
        *found,
        assertions.cold_starts(
            [bool(each.get("first_in_process")) for each in results], {str(each.get("process")) for each in results}
        ),
        assertions.dollars(sum(cost), len(cost), plan.dollars),
    ]


def progress(session: Session, all_checks: Sequence[Check]) -> list[Progress]:
    """How far each check is, by its tasks."""
    still = set(session.open())
    groups = {
        check.name: [each for each in session.followed.values() if each.group == check.name] for check in all_checks
    }
    return [
        Progress(name, sum(each.task_id not in still for each in tasks), len(tasks)) for name, tasks in groups.items()
    ]
