"""A node's status, and the outcome that its children count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.tasks.states import NOT_STARTED, State
from duetime.domain.topologies.trigger_rules import Counts, Outcome, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph, Node


class Reason(StrEnum):
    """Why a node was cancelled, if not by its user."""

    SKIPPED = "skipped"
    """Its rule can no longer hold, and nothing above it has failed; or its condition was false."""
    UPSTREAM_FAILED = "upstream_failed"
    """Its rule can no longer hold, because of a failure above it."""
    STOPPED = "stopped"
    """The topology was stopped before the node started."""


WHOLE = 100
"""Percent of what has succeeded, whatever it said last."""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """Where a node stands: what of its task's record matters here.

    Attributes:
        reason: why it was cancelled, if not by its user.
        percent: how far it says it has come; all of it, once it has succeeded.
        started_at: when its first attempt started.
        ended_at: when its last attempt ended, before anything of what follows began.
        finished_at: when its outcome was stored and followed up: its children may have started before.
        rollback_failed: its rollback was tried, and has failed for good.
        has_result: it succeeded once, whatever happened to it since.
        expires_at: when its task may be removed: nothing while its topology may need it.
        is_missing: it has no task: none was made yet, or it was removed with its run's records.
        is_stopping: a stop of its running attempt has been requested.
        is_pausing: a pause of its running attempt has been requested.
        is_topology: it is a topology itself.
        is_held_by_topology: it is held, or asked to pause, because its topology was paused, and not by its user.
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
        """What it counts as at its children; `None` while it has not ended.

        A node counts as failed when its work does not stand: it failed, it was rolled back, or it was cancelled by
        its user, by a stop, or by a failure above it.
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
        """Whether there is an outcome that no rollback is taking back."""
        return self.outcome is not None

    @property
    def is_open(self) -> bool:
        """Whether it has a task that has not ended, or is being rolled back."""
        return not (self.has_ended or self.is_missing)

    @property
    def is_failure(self) -> bool:
        """Whether its work does not stand, or is being taken back."""
        return self.state is State.ROLLING_BACK or self.outcome is Outcome.FAILED

    @property
    def has_failed_itself(self) -> bool:
        """Whether its own work has failed, and was perhaps undone since."""
        return self.state in {State.FAILED, State.ROLLED_BACK} and not self.has_result

    @property
    def was_taken_back(self) -> bool:
        """Whether its user cancelled it."""
        return self.state is State.CANCELLED and self.reason is None

    @property
    def has_not_begun(self) -> bool:
        """Whether no attempt at it has started, and it may still be taken back."""
        return self.state in NOT_STARTED and self.started_at is None


Statuses: TypeAlias = "Mapping[str, NodeStatus]"
"""Where each node of a graph stands, by its name."""


def counts_for(node: Node, statuses: Statuses, among: Collection[str] | None = None) -> Counts:
    """How a node's parents have ended, seen from their own states.

    Args:
        node: the node.
        statuses: where its parents stand; those that are not checked may be missing.
        among: the parents that are checked; the others count as not ended. All, if it is left out.
    """
    seen = Counter(statuses[parent].outcome for parent in node.depends_on if among is None or parent in among)
    return Counts(len(node.depends_on), seen[Outcome.SUCCEEDED], seen[Outcome.FAILED], seen[Outcome.SKIPPED])


def decided(graph: Graph, statuses: Statuses) -> Mapping[str, Verdict]:
    """The blocked nodes that need not wait any more, and what is to be done with each.

    It is read from the states alone, so it finds what a crash left uncounted: this is what a recovery scan asks.
    """
    blocked = (node for node in graph.nodes if statuses[node.key].state is State.BLOCKED)
    verdicts = {node.key: verdict(node.trigger_rule, counts_for(node, statuses)) for node in blocked}
    return {key: found for key, found in verdicts.items() if found is not Verdict.WAIT}
