"""Defects in the takeover by another Region, and in restoring a table."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

_LOST_PLANS = "tests/simulation/test_two_regions.py -k replicated"
_OF_BACKUP = "tests/simulation/test_restoring.py -k backup"

MUTANTS = (
    Mutant(
        "a takeover does not raise the epoch",
        "domain/regions.py",
        "fence = fence_of_epoch(task.fence, region.epoch)\n    is_leased",
        "fence = task.fence + 1\n    is_leased",
        also=(("free = freed(task, region.epoch, now)", "free = freed(task, 0, now)"),),
    ),
    Mutant(
        "new tasks in the second Region begin in the epoch of the first Region",
        "services/regions.py",
        "return max(self.least_epoch, self._epoch)",
        "return self.least_epoch",
    ),
    Mutant(
        "a standby Region processes tasks",
        "services/regions.py",
        "is_active = self.own == self.first if found is None else found.is_open and found.name == self.own",
        "is_active = found is None or (found.is_open and found.name == self.own)",
    ),
    Mutant(
        "the second Region processes tasks before it has taken over the records",
        "services/regions.py",
        "found.is_open and found.name == self.own",
        "found.name == self.own",
    ),
    Mutant(
        "the old Region continues to work after the takeover",
        "services/regions.py",
        "if self._is_known(now, REGION_LIFE):",
        "if self._is_known(now, 10**12):",
    ),
    Mutant(
        "a takeover sets timers only for tasks whose attempts it cut off",
        "services/region_takeover.py",
        "if done.timer is not None:",
        "if done.timer is not None and done.was_cut_off:",
    ),
    Mutant(
        "the steps that follow the end of a task are not repeated",
        "domain/regions.py",
        "if task.finished_at is not None:\n",
        "if task.finished_at is not None:\n        return None\n    if False:\n",
    ),
    Mutant(
        "schedules get no timer",
        "services/region_takeover.py",
        "if stored.is_expandable:",
        "if False:",
    ),
    Mutant(
        "the cursors are taken over unchanged",
        "domain/regions.py",
        "minute_of(now - delay - REGION_OVERLAP) - 1",
        "minute_of(now + REGION_OVERLAP)",
    ),
    Mutant(
        "a second takeover ends the attempts of the Region that is active",
        "domain/regions.py",
        "if is_taken_over(task, region) or (keeps_leases and runs):",
        "if is_taken_over(task, region):",
    ),
    Mutant(
        "a planned switch-over does not wait for running tasks",
        "services/region_takeover.py",
        "self._wait_until_quiet(say)\n            lag",
        "lag",
    ),
    Mutant(
        "attempts in the old Region cannot report their end during a switch-over",
        "services/regions.py",
        "if is_report and active is not None",
        "if False and is_report and active is not None",
    ),
    Mutant(
        "a takeover treats the lease of a topology as a running attempt",
        "domain/regions.py",
        "return task.state in LEASED and not task.is_topology and",
        "return task.state in LEASED and",
    ),
    Mutant(
        "nodes of a plan that was not replicated stay open",
        "services/region_takeover.py",
        'report.tasks["cancelled"] += plans.dismiss()',
        'report.tasks["cancelled"] += 0',
        test=_LOST_PLANS,
    ),
    Mutant(
        "nodes that were not replicated are not created",
        "services/lost_plans.py",
        "opened=run.opened and not is_new",
        "opened=run.opened",
        test=_LOST_PLANS,
    ),
    Mutant(
        "nodes of a plan that was not replicated run unless they are blocked",
        "services/lost_plans.py",
        "task.state not in NOT_STARTED or",
        "task.state is not State.BLOCKED or",
        also=(("import NOT_STARTED\n", "import NOT_STARTED, State\n"),),
        test=_LOST_PLANS,
    ),
    Mutant(
        "nodes of a plan that is not in the backup stay open",
        "services/restore.py",
        "report.cancelled += plans.dismiss()",
        "report.cancelled += 0",
        test=_OF_BACKUP,
    ),
    Mutant(
        "a restore does not write a task's timer, although the backup may lack the timer",
        "domain/restore.py",
        "return None if is_at_home else",
        "return None if True else",
        test=_OF_BACKUP,
    ),
    Mutant(
        "a restore does not write the timers of schedules",
        "services/restore.py",
        "if stored.is_expandable:",
        "if False:",
        test=_OF_BACKUP,
    ),
)
