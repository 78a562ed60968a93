"""Takes over a restored table's records after comparing them with the records of the table that it replaces.

A restored record has the state that it had at the restore point. Since then, attempts may have run from the replaced
table, and some may still be running. So that these attempts can no longer write, the fence of every open record is
raised to a new epoch.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import Timer
from duetime.domain.tasks.action_history import NO_ACTIONS, Action, ActionRecord, ActorType, Attribution
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.attempt_run import claim_undone
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.dependency_outcomes import waits
from duetime.domain.tasks.states import LEASED, STARTABLE, State
from duetime.domain.tasks.task import fence_of_epoch
from duetime.domain.tasks.waits import waits_with
from duetime.domain.times import DAY, minute_of, to_iso
from duetime.domain.topologies.node_status import Reason
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.run_state import RunState

RESTORED = "restored: its attempt was cut off"
"""Wait reason of a task whose attempt is not in the restored table."""
HELD_TAG = "duetime/restored"
"""Tag of a task that is paused until the operator decides; its value is the state that the task had before."""
_LEAST_KEPT = 2 * DAY
"""Minimum time for which an outcome can be read after it is taken over from the replaced table."""


PLAN_LOST = TaskError(
    "PlanLost", "its topology, or the plan that created it, is lost: an earlier write was not replicated or restored"
)
"""The error of a node that will not be started by any run of its topology."""


class AfterRestore(StrEnum):
    """What happens to tasks that had run after the restore point.

    Attributes:
        SKIP: tasks that had ended get the same outcome again without an attempt; tasks that had only begun are paused.
        RERUN: the tasks run again.
        ASK: the tasks are paused.
    """

    SKIP = "skip"
    RERUN = "rerun"
    ASK = "ask"


class Divergence(StrEnum):
    """What happened to a task after the restore point, so that its last record differs from the restored record.

    Attributes:
        NONE: nothing is known to have happened.
        CHANGED: the record was written, but no attempt began.
        BEGUN: an attempt was running at the restore point, or began after it.
        ENDED: the task ended.
        REMOVED: the replaced table no longer has the task, because its user erased it or its record expired.
        CREATED: the task was created, so the restored table does not have it.
        REOPENED: the task had ended before the restore point and was retried after it.
        UNKNOWN: there is no table to compare with.
    """

    NONE = "none"
    CHANGED = "changed"
    BEGUN = "begun"
    ENDED = "ended"
    REMOVED = "removed"
    CREATED = "created"
    REOPENED = "reopened"
    UNKNOWN = "unknown"


_MAY_HAVE_RUN = frozenset({Divergence.BEGUN, Divergence.ENDED, Divergence.REMOVED})


@frozen
class Takeover:
    """The change that takes over a restored record.

    Attributes:
        task: the record in the new epoch.
        divergence: how the restored record differs from the record in the replaced table.
        timer: the timer for the record's check, to be written first; `None` if an earlier timer is sufficient.
        copies_contents: whether the replaced table has contents that the record refers to.
    """

    task: Task
    divergence: Divergence
    timer: Timer | None = None
    copies_contents: bool = False

    @property
    def effect(self) -> str:
        """What happens to the task, in one word: `ended`, `paused` or `runs`."""
        return "ended" if self.task.is_terminal else "paused" if self.task.state is State.PAUSED else "runs"


def divergence_of(restored: Task, replaced: Task | None, *, is_known: bool) -> Divergence:
    """What happened to an open task after the restore point.

    Args:
        restored: its record at the restore point.
        replaced: its last record; `None` if the record is gone.
        is_known: whether there is a table to compare with.
    """
    if replaced is not None and replaced.is_terminal and not restored.is_terminal:
        return Divergence.ENDED
    if restored.state in LEASED:
        return Divergence.BEGUN
    if not is_known:
        return Divergence.UNKNOWN
    if replaced is None:
        return Divergence.REMOVED
    if replaced.claims > restored.claims and not restored.is_terminal:
        return Divergence.BEGUN
    return Divergence.CHANGED if replaced.version > restored.version else Divergence.NONE


def take_over(
    restored: Task, replaced: Task | None, divergence: Divergence, after: AfterRestore, epoch: int, now: Millis
) -> Takeover | None:
    """The record of an open task in the new epoch; `None` if it is already taken over and no decision is pending.

    Args:
        restored: the record, without `finished_at`.
        replaced: its last record in the replaced table, if any.
        divergence: divergence as returned by `divergence_of`.
        after: what happens to tasks that had run.
        epoch: the new epoch.
        now: the time.
    """
    if restored.fence == fence_of_epoch(restored.fence, epoch):
        is_held = HELD_TAG in restored.tags and restored.state is State.PAUSED
        return _decided(restored, replaced, after, epoch, now) if is_held else None
    had_ended = divergence is Divergence.ENDED and replaced is not None
    if after is AfterRestore.SKIP and had_ended and replaced is not None:
        ended = _ended_as(restored, replaced, epoch, now)
        return Takeover(ended, divergence, timer_of(ended, now), copies_contents=True)
    task = freed(restored, epoch, now)
    # A topology is not held; it continues from its nodes, each of which is held separately.
    if after is not AfterRestore.RERUN and divergence in _MAY_HAVE_RUN and not task.is_topology:
        task = _held(task, now)
    return Takeover(task, divergence, _check_of(restored, task, now))


def _check_of(restored: Task, task: Task, now: Millis) -> Timer | None:
    """The timer of a record that was taken over.

    `None` if no timer is needed, or if the record is stored under the minute of its check. A restored table may lack
    the timer, because a backup does not keep the order of writes to different items.
    """
    if needs_no_check(task):
        return None
    if restored.state in LEASED or restored.is_terminal or waits(task):
        return timer_of(task, now)
    is_at_home = minute_of(task.next_at) == minute_of(task.id.home)
    return None if is_at_home else timer_of(task, max(task.next_at, now))


def take_over_occurrence(replaced: Task, after: AfterRestore, epoch: int, now: Millis) -> Takeover | None:
    """The record of a schedule's occurrence that was created after the restore point; `None` to let it run again.

    The id follows from the schedule and the time, so the schedule finds the record and does not create it again.
    """
    if after is AfterRestore.RERUN or not replaced.claims:
        return None
    fence = fence_of_epoch(replaced.fence, epoch)
    if after is AfterRestore.SKIP and replaced.finished_at is not None:
        task = replace(replaced, fence=fence, version=replaced.version + 1)
        return Takeover(task, Divergence.CREATED, copies_contents=True)
    begun = replace(
        replaced,
        state=State.SCHEDULED,
        fence=fence,
        attempt=0,
        attempt_history=(),
        lease_worker=None,
        lease_expires_at=None,
        unacknowledged=None,
        deferred_fence=None,
        job=None,
        requested_action=None,
        waiting_for=None,
        waits=(),
        rate_places={},
        progress=None,
        result=None,
        error=None,
        started_at=None,
        started_late=False,
        run_at=None,
        finished_at=None,
        expires_at=None,
        actions=NO_ACTIONS,
        cancellation=None,
    )
    return Takeover(_held(begun, now), Divergence.CREATED, copies_contents=True)


def freed(task: Task, epoch: int, now: Millis) -> Task:
    """The record with a fence in the new epoch; the lease of an attempt that was cut off is removed."""
    fence = fence_of_epoch(task.fence, epoch)
    raised = replace(task, fence=fence, version=task.version + 1, sent=False)
    if task.state not in LEASED:
        return replace(raised, lease_expires_at=None)
    if is_job(task.target) and task.awaiting_notification:
        # The attempt continues even if the table does not contain the job, because the job runs in AWS.
        return replace(raised, deferred_fence=fence)
    cut_off = replace(raised, lease_expires_at=now, deferred_fence=None, unacknowledged=None)
    if task.state is State.ROLLING_BACK or task.requested_action is not None:
        # The worker that takes over the lease repeats the rollback, or carries out the request.
        return cut_off
    return replace(
        cut_off,
        state=State.WAITING,
        attempt=claim_undone(task)["attempt"],
        lease_expires_at=None,
        generation=task.generation + 1,
        next_at=now,
        waiting_for=RESTORED,
        waits=waits_with(task, RESTORED, now),
        rate_places={},
    )


def is_left_over(node: Task, topology: Task | None, run_state: RunState | None) -> bool:
    """Whether a node is left over, because no run of its topology will start or end it.

    This is the case if its topology, or the plan that created it, was not replicated or restored, if another plan has
    replaced that plan, or if the topology's end was stored but the node's end was not.

    Args:
        node: a node.
        topology: its topology; `None` if missing.
        run_state: the progress of its topology, read after the node; `None` if missing.
    """
    if node.node_ref is None or node.is_terminal:
        return False
    if topology is None or run_state is None or not run_state.has_planned(node.id, node.node_ref):
        return True
    return topology.is_terminal and node.state is State.BLOCKED


def dismissed(node: Task, now: Millis) -> tuple[Task, Timer]:
    """A leftover node, now cancelled, and the timer that makes a worker run its follow-ups."""
    ref = node.node_ref and replace(node.node_ref, note=Reason.STOPPED.value)
    raised = replace(node, version=node.version + 1, generation=node.generation + 1, next_at=now, sent=False)
    ended = replace(raised, state=State.CANCELLED, node_ref=ref, error=PLAN_LOST, lease_expires_at=None)
    return ended, timer_of(ended, now)


def _held(task: Task, now: Millis) -> Task:
    """A copy of the task that is paused until the operator decides, or the task itself if it cannot be paused."""
    if task.state not in STARTABLE | {State.BLOCKED}:
        return task
    by = Attribution(ActorType.SYSTEM, reason="it had run after the point that the table was restored to")
    paused = ActionRecord(Action.PAUSED, now, by, task.version)
    tags = {**task.tags, HELD_TAG: task.state.value}
    return replace(task, state=State.PAUSED, tags=tags, actions=task.actions.plus(paused))


def _decided(task: Task, replaced: Task | None, after: AfterRestore, epoch: int, now: Millis) -> Takeover | None:
    """A held task after the operator has decided about all held tasks; `None` if the task stays paused."""
    has_ended = replaced is not None and replaced.is_terminal
    if after is AfterRestore.SKIP and replaced is not None and has_ended:
        ended = _ended_as(task, replaced, epoch, now)
        return Takeover(ended, Divergence.ENDED, timer_of(ended, now), copies_contents=True)
    if after is not AfterRestore.RERUN:
        return None
    resumed = ActionRecord(Action.RESUMED, now, Attribution(ActorType.SYSTEM), task.version + 1)
    free = replace(
        task,
        state=State(task.tags[HELD_TAG]),
        tags={key: value for key, value in task.tags.items() if key != HELD_TAG},
        version=task.version + 1,
        generation=task.generation + 1,
        next_at=max(task.next_at, now),
        actions=task.actions.plus(resumed),
    )
    divergence = Divergence.ENDED if has_ended else Divergence.BEGUN
    return Takeover(free, divergence, None if needs_no_check(free) else timer_of(free, free.next_at))


def _ended_as(task: Task, replaced: Task, epoch: int, now: Millis) -> Task:
    """The record with the outcome from the replaced table; its follow-ups must still run in the restored table."""
    return replace(
        replaced,
        fence=fence_of_epoch(max(task.claims, replaced.claims), epoch),
        version=max(task.version, replaced.version) + 1,
        generation=max(task.generation, replaced.generation),
        sent=False,
        has_dependents=task.has_dependents,
        lease_expires_at=None,
        finished_at=None,
        expires_at=max(replaced.expires_at or 0, now + _LEAST_KEPT),
    )


def timer_of(task: Task, at: Millis) -> Timer:
    """The timer at which a record that was taken over is checked."""
    place = task.priority, task.owner
    return Timer(task.id, task.generation, at, *place, pull_queue=task.pull_queue, fair_share=task.fair_share)


def needs_no_check(task: Task) -> bool:
    """Whether no check starts the task, because its user resumes the task, or because its topology starts the node."""
    return task.state is State.PAUSED or (task.state is State.BLOCKED and not waits(task))


def facts(task: Task, divergence: Divergence, effect: str) -> dict[str, str]:
    """Returns one line of the report."""
    found = {"id": task.id.text, "owner": task.owner, "type": task.type, "change": divergence.value, "now": effect}
    if task.name:
        found["name"] = task.name
    if task.schedule_ref is not None:
        found["schedule"] = task.schedule_ref.schedule
    return {**found, "state": task.state.value, "at": to_iso(task.outcome_at if task.is_terminal else task.next_at)}
