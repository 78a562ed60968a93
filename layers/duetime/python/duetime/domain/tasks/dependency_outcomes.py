"""Decides how a task's dependencies have ended, and whether they let the task start.

Rules, outcomes and verdicts are the same as in topologies (`duetime.domain.topologies.trigger_rules`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.times import to_iso
from duetime.domain.topologies.trigger_rules import Counts, Outcome, TriggerRule, Verdict, verdict
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.dependencies import Dependencies, Dependency
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

UPSTREAM_FAILED = "upstream_failed"
"""Error type of a task that can never start because a dependency has failed."""
SKIPPED = "skipped"
"""Error type of a task that can never start although no dependency has failed."""


@frozen
class OccurrenceRun:
    """The state of an occurrence.

    Attributes:
        task: the task that runs the occurrence; `None` if there is none.
        expected_at: when a task that does not exist yet is due; `None` if no task is expected.
        reason: why there is no task and no task is expected.
    """

    task: Task | None = None
    expected_at: Millis | None = None
    reason: str = ""


@frozen
class Found:
    """The current state of a dependency.

    Attributes:
        task: its task; `None` if it has no task.
        outcome: how it has ended; `None` while it is open.
        expected_at: when the task of an occurrence without a task is due; `None` for all other dependencies.
        reason: why there is no task and no task is expected.
    """

    dependency: Dependency
    task: Task | None
    outcome: Outcome | None
    expected_at: Millis | None = None
    reason: str = ""

    @property
    def name(self) -> str:
        """Human-readable name of the dependency, which is the task's id or the occurrence."""
        occurrence = self.dependency.occurrence
        if occurrence is None or self.task is not None:
            return f"the task {self.dependency.task_id}"
        return f"the occurrence of {occurrence.schedule} at {to_iso(occurrence.nominal)}"


def outcome_of(task: Task) -> Outcome | None:
    """A task's outcome as seen by the tasks that wait for it; `None` while the task is open.

    A task whose work is not in effect, because it failed, was rolled back or was cancelled, counts as failed. A run
    that its schedule skipped, and a task that can never start although no dependency has failed, count as skipped.
    """
    if task.state is State.SUCCEEDED:
        return Outcome.SUCCEEDED
    if task.state not in TERMINAL:
        return None
    if task.state is State.CANCELLED and (task.was_dropped or _was_skipped(task)):
        return Outcome.SKIPPED
    return Outcome.FAILED


def _was_skipped(task: Task) -> bool:
    if task.node_ref is not None:
        return task.node_ref.note == SKIPPED
    return task.error is not None and task.error.type == SKIPPED


def waits(task: Task) -> bool:
    """Whether a task is blocked by its dependencies; nodes are blocked by their topology instead."""
    return task.state is State.BLOCKED and task.after is not None


def verdict_of(dependencies: Dependencies, found: Sequence[Found]) -> Verdict:
    """The verdict on whether the dependencies let the task start now, later, or never."""
    if dependencies.is_met:
        return Verdict.READY
    seen = Counter(each.outcome for each in found)
    counts = Counts(len(found), seen[Outcome.SUCCEEDED], seen[Outcome.FAILED], seen[Outcome.SKIPPED])
    return verdict(dependencies.rule, counts)


def reason_of(dependencies: Dependencies, verdict: Verdict, found: Sequence[Found]) -> str:
    """Describes why a task can never start; the description names the first dependency that is a cause."""
    wanted = Outcome.FAILED if verdict is Verdict.UPSTREAM_FAILED else Outcome.SKIPPED
    cause = next((each for each in found if each.outcome is wanted), None)
    if cause is None or dependencies.rule is TriggerRule.ONE_FAILED:
        return f"{dependencies.rule}: none of the tasks has failed"
    if wanted is Outcome.SKIPPED:
        return f"{dependencies.rule}: {cause.name} {cause.reason or 'was skipped'}"
    ended = "no longer exists" if cause.task is None else f"is {cause.task.state.replace('_', ' ')}"
    return f"{dependencies.rule}: {cause.name} {ended}"


def remembered(dependencies: Dependencies, found: Sequence[Found], expire_before: Millis) -> Dependencies:
    """The dependencies to store, with the tasks found for occurrences, and with outcomes whose records expire early.

    Args:
        dependencies: dependencies as stored.
        found: their current states, in the same order.
        expire_before: outcomes are stored if their records may be removed before this time.
    """

    def one(each: Found) -> Dependency:
        task, dependency = each.task, each.dependency
        if task is None:
            return dependency
        is_ending = task.expires_at is not None and task.expires_at < expire_before
        outcome = each.outcome if is_ending and each.outcome is not None else dependency.outcome
        return replace(dependency, task_id=task.id, outcome=outcome)

    return replace(dependencies, on=tuple(one(each) for each in found))
