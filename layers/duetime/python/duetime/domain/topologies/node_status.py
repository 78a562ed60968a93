"""Defines the status of a node, and the node's outcome as seen by its children."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.tasks.states import NOT_STARTED, State
from duetime.domain.topologies.trigger_rules import Counts, Outcome, Verdict, verdict
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph, Node


class Reason(StrEnum):
    """Why a node was cancelled, if not by a user."""

    SKIPPED = "skipped"
    """The node's rule can no longer be met although no ancestor has failed, or the node's condition was false."""
    UPSTREAM_FAILED = "upstream_failed"
    """The node's rule can no longer be met, because an ancestor has failed."""
    STOPPED = "stopped"
    """The topology was stopped before the node started."""


WHOLE = 100
"""Progress percentage of a succeeded node, whatever the node last reported."""


@frozen
class NodeStatus:
    """The status of a node, which is the relevant part of its task's record.

    Attributes:
        reason: why the node was cancelled, unless its user cancelled it.
        percent: its reported progress; 100 after success.
        started_at: when its first attempt started.
        ended_at: when its last attempt ended, before any follow-ups.
        finished_at: when its outcome had been stored and all follow-ups were done; children may have started earlier.
        rollback_failed: whether its rollback was attempted and has failed for good.
        has_result: whether the node has ever succeeded, regardless of what happened since then.
        expires_at: when its task may be removed; `None` while its topology may need it.
        is_missing: whether it has no task, because the task was not created yet or was removed with the run's records.
        is_stopping: whether a stop of its running attempt has been requested.
        is_pausing: whether a pause of its running attempt has been requested.
        is_topology: whether it is itself a topology.
        is_held_by_topology: whether its pause or pause request was caused by a pause of its topology, not by its user.
    """

    state: State = State.BLOCKED
    reason: Reason | None = None
    percent: int = 0
    started_at: Millis | None = None
    ended_at: Millis | None = None
    finished_at: Millis | None = None
    rollback_failed: bool = False
    has_result: bool = False
    expires_at: Millis | None = None
    is_missing: bool = False
    is_stopping: bool = False
    is_pausing: bool = False
    is_topology: bool = False
    is_held_by_topology: bool = False

    @property
    def outcome(self) -> Outcome | None:
        """The node's outcome as seen by its children; `None` if the node is open.

        A node counts as failed if its work is not in effect, because it failed, was rolled back, or was cancelled (by
        its user, by a stop, or after an ancestor's failure).
        """
        match self.state:
            case State.SUCCEEDED:
                return Outcome.SUCCEEDED
            case State.CANCELLED if self.reason is Reason.SKIPPED:
                return Outcome.SKIPPED
            case State.FAILED | State.ROLLED_BACK | State.CANCELLED:
                return Outcome.FAILED
            case _:
                return None

    @property
    def has_ended(self) -> bool:
        """Whether the node has an outcome and is not being rolled back."""
        return self.outcome is not None

    @property
    def is_open(self) -> bool:
        """Whether the node has a task that is open or being rolled back."""
        return not (self.has_ended or self.is_missing)

    @property
    def is_failure(self) -> bool:
        """Whether the node's work is not in effect, or is being rolled back."""
        return self.state is State.ROLLING_BACK or self.outcome is Outcome.FAILED

    @property
    def has_failed_itself(self) -> bool:
        """Whether the node's own work has failed, even if it has been rolled back since then."""
        return self.state in {State.FAILED, State.ROLLED_BACK} and not self.has_result

    @property
    def was_taken_back(self) -> bool:
        """Whether the node's user cancelled it."""
        return self.state is State.CANCELLED and self.reason is None

    @property
    def has_not_begun(self) -> bool:
        """Whether none of the node's attempts has started, and the node can still be cancelled."""
        return self.state in NOT_STARTED and self.started_at is None


Statuses: TypeAlias = "Mapping[str, NodeStatus]"
"""The status of each node of a graph, by name."""


def counts_for(node: Node, statuses: Statuses, among: Collection[str] | None = None) -> Counts:
    """Counts of a node's parents by outcome, according to their own states.

    Args:
        node: the node.
        statuses: statuses of its parents; parents that are not checked may be missing.
        among: the parents to check; all other parents count as open. `None` to check all parents.
    """
    seen = Counter(statuses[parent].outcome for parent in node.depends_on if among is None or parent in among)
    return Counts(len(node.depends_on), seen[Outcome.SUCCEEDED], seen[Outcome.FAILED], seen[Outcome.SKIPPED])


def decided(graph: Graph, statuses: Statuses) -> Mapping[str, Verdict]:
    """The blocked nodes that no longer need to wait, with the verdict on each.

    This function uses only the states, so recovery scans also find nodes with edges that a crash left uncounted.
    """
    blocked = (node for node in graph.nodes if statuses[node.key].state is State.BLOCKED)
    verdicts = {node.key: verdict(node.trigger_rule, counts_for(node, statuses)) for node in blocked}
    return {key: found for key, found in verdicts.items() if found is not Verdict.WAIT}
