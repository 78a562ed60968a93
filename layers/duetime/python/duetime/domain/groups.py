"""Groups consist of an owner's related tasks, and can have a task or call that runs after the last of these tasks ends.

Tasks may join a group until its owner closes it. Each member has a separate item that records whether and how the task
has ended. Therefore, an end is counted only once even if it is recorded repeatedly, and members need no shared counter.
A closed group is complete once no member is open.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import GROUP_CHECK_FIRST, GROUP_CHECK_LONGEST, GROUP_MEMBER_LOST
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.topologies.trigger_rules import Counts, TriggerRule, Verdict, verdict
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


class GroupState(StrEnum):
    """The state of a group.

    Attributes:
        OPEN: tasks may join.
        CLOSED: no more tasks may join, and some members have not ended.
        COMPLETED: the group is closed, and all members have ended.
    """

    OPEN = "open"
    CLOSED = "closed"
    COMPLETED = "completed"


RULES = tuple(rule for rule in TriggerRule if rule is not TriggerRule.ALWAYS)
"""Rules for a group's completion task, evaluated once all members have ended."""


@frozen(kw_only=True)
class Group:
    """A group as stored, without its members.

    Attributes:
        uid: distinguishes the group from an earlier group with the same id.
        expires_at: when the item may be removed; `None` while the group is closed and not complete.
        completion: id of the task that runs once the group is complete; `None` if no task is declared.
        rule: how the members must have ended for the completion task to run.
        request_hash: hash of the request that closed the group, which identifies a repeated request.
        counts: number of members by state when the group was completed.
        version: number of writes; 0 before the first write.
    """

    owner: str
    id: str
    uid: str
    created_at: Millis
    expires_at: Millis | None
    closed_at: Millis | None = None
    completed_at: Millis | None = None
    completion: TaskId | None = None
    rule: TriggerRule = TriggerRule.ALL_DONE
    request_hash: str = ""
    counts: Mapping[State, int] = field(default_factory=dict)
    version: int = 0

    @property
    def state(self) -> GroupState:
        """The group's state."""
        if self.completed_at is not None:
            return GroupState.COMPLETED
        return GroupState.OPEN if self.closed_at is None else GroupState.CLOSED

    @property
    def is_open(self) -> bool:
        """Whether tasks may join."""
        return self.closed_at is None

    @property
    def is_rule_met(self) -> bool:
        """Whether the completion task runs, given how all members have ended; always true for an empty group."""
        return verdict(self.rule, outcome_counts(self.counts)) is Verdict.READY

    def has_expired(self, now: Millis) -> bool:
        """Whether the group has expired; the item may still exist."""
        return self.expires_at is not None and self.expires_at <= now

    def next_check(self, now: Millis) -> Millis:
        """When to check the group's completion again, in case a member's end was not recorded.

        The interval grows with the time since the group was closed.
        """
        age = now - (now if self.closed_at is None else self.closed_at)
        return now + min(max(GROUP_CHECK_FIRST, age // 2), GROUP_CHECK_LONGEST)


def outcome_counts(counts: Mapping[State, int]) -> Counts:
    """Counts of ended members in the form that a rule expects.

    Rolled-back members count as failed, and cancelled members as skipped.
    """
    succeeded, skipped = counts.get(State.SUCCEEDED, 0), counts.get(State.CANCELLED, 0)
    total = sum(counts.values())
    return Counts(total=total, succeeded=succeeded, skipped=skipped, failed=total - succeeded - skipped)


@frozen
class Member:
    """The item of a member.

    Attributes:
        outcome: final state of the task; `None` while the task is open.
        version: last version of the task's record that this item reflects; 0 for none.
        noted_at: when the task joined or the item was last updated.
    """

    task_id: TaskId
    outcome: State | None
    version: int
    noted_at: Millis

    def is_outdated(self, task: Task | None, now: Millis) -> bool:
        """Whether an open member's item differs from its record, because a process crashed between the two writes.

        Args:
            task: the record; `None` if it does not exist.
            now: the time.
        """
        is_settled = self.noted_at + GROUP_MEMBER_LOST <= now
        if task is None:
            # The process that creates the task wrote the item, and may be about to write the record.
            return is_settled
        # An item with a later version was written by a process that is about to reopen the task.
        return task.is_terminal and (task.version >= self.version or is_settled)


@frozen
class GroupStatus:
    """A group with the numbers of its members.

    Attributes:
        counts: number of members by state; `OPEN_COUNT` for open members whose states were not read.
    """

    group: Group
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """Number of members."""
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        """Number of members that have ended."""
        return sum(self.counts.get(state.value, 0) for state in TERMINAL)


OPEN_COUNT = "open"
"""In counts by state, the key for open members if there are too many open members to read their states."""
