"""Lists the checks of a verification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime_client.verification.pull_check import PulledTasks
from duetime_client.verification.schedule_check import RecurringTasks
from duetime_client.verification.task_checks import (
    CancelledTasks,
    DelayedTasks,
    HttpCall,
    IdempotentCreation,
    LockedTasks,
    RetriedTasks,
)
from duetime_client.verification.topology_check import DiamondTopology
from duetime_client.verification.verification_plan import LEAD_SECONDS, TRIGGER_LEAD_SECONDS

if TYPE_CHECKING:
    from duetime_client.verification.check import Check
    from duetime_client.verification.verification_plan import Plan


def all_checks(plan: Plan) -> list[Check]:
    """Return the plan's checks; the longest check is last, because its progress bar matters most."""
    late = DelayedTasks("sent by trigger", "on time, sent by the trigger", plan, plan.late_tasks, TRIGGER_LEAD_SECONDS)
    return [
        IdempotentCreation(),
        CancelledTasks(plan),
        RetriedTasks(),
        LockedTasks(plan),
        DiamondTopology(),
        PulledTasks(plan),
        HttpCall(plan),
        RecurringTasks(plan),
        DelayedTasks("delayed", "on time, sent by the API", plan, plan.tasks, LEAD_SECONDS),
        *([late] if plan.late_tasks else []),
    ]
