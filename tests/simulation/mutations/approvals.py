"""Defects in approvals: repeated decisions, and approvals that are retried."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "a retried approval does not get its own time for a decision",
        "domain/tasks/waits.py",
        "since = max(task.due_at, task.created_at, task.reopened_at or 0)",
        "since = max(task.due_at, task.created_at)",
        pairs="^approval-failed (retry worker|worker retry)$",
    ),
    Mutant(
        "a decision with a different payload is treated as the same decision",
        "services/tasks/approvals.py",
        "return _canonical(stored) == _canonical(decision.payload)",
        "return bool(stored or decision.payload)",
        pairs="^approval approve approve-otherwise$",
    ),
    Mutant(
        "a rejection with a different reason is treated as the same rejection",
        "services/tasks/approvals.py",
        "return task.error == rejection(by.reason)",
        "return task.error is not None or rejection(by.reason) is None",
        pairs="^approval reject reject-otherwise$",
    ),
    Mutant(
        "the result of an approved node expires before its topology",
        "services/tasks/approvals.py",
        "            contents.retain(task.id, kept, expiry)\n        return result",
        "            pass\n        return result",
        pairs="^approval-node approve-otherwise finish$",
    ),
    Mutant(
        "an approval is decided before it is due",
        "domain/tasks/approvals.py",
        "is_due = (task.state is State.SCHEDULED or was_asked) and task.due_at <= now",
        "is_due = (task.state is State.SCHEDULED or was_asked) and (task.due_at <= now or task.due_at > now)",
        pairs="^approval-early approve get$",
    ),
    Mutant(
        "an approval that was moved to a later time is decided before that time",
        "domain/tasks/approvals.py",
        "is_waiting = was_asked and task.is_postponed",
        "is_waiting = was_asked",
        pairs="^approval approve patch-soon$",
    ),
    Mutant(
        "a repeated decision does not keep its node's result",
        "services/tasks/approvals.py",
        "                    retain_result(self.stores.tasks, self.stores.contents, task)\n",
        "                    retain_result and None\n",
        pairs="^approval-node approve-otherwise approve-otherwise$",
    ),
    Mutant(
        "a decision is refused while a worker checks the approval",
        "services/tasks/approvals.py",
        "            if is_being_checked(task):\n",
        "            if is_being_checked(task) and now < 0:\n",
        pairs="^approval-queued worker approve$",
    ),
)
