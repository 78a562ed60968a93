"""Two Regions over one replicated table: which one is active, and how it takes over the records of the other.

Replication is asynchronous, and items arrive in any order: a takeover must cope with any part of the last writes
missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import Timer
from duetime.domain.operating_parameters import RECOVERY_SCAN_DELAYS, REGION_OVERLAP
from duetime.domain.restore import freed
from duetime.domain.tasks.states import LEASED, State
from duetime.domain.tasks.task import fence_of_epoch
from duetime.domain.times import minute_of
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.dispatch.cursors import Cursors
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@frozen
class ActiveRegion:
    """The Region that may work, as recorded in the replicated table.

    Attributes:
        name: of the Region.
        epoch: of its fences; each takeover raises it.
        since: when the takeover began.
        is_open: whether it works; until its takeover has ended, no Region does.
    """

    name: str
    epoch: int
    since: Millis
    is_open: bool


def next_region(target: str, known: list[ActiveRegion], least_epoch: int, now: Millis) -> ActiveRegion:
    """The record with which a Region takes over; the one of an earlier run of the same takeover if there is one.

    Args:
        target: the Region that takes over.
        known: the records that were found, in any Region.
        least_epoch: the setting `epoch`.
        now: the time.
    """
    latest = max(known, key=lambda each: (each.epoch, each.is_open), default=None)
    if latest is not None and latest.name == target and latest.epoch:
        return latest
    epoch = max(least_epoch, 0 if latest is None else latest.epoch) + 1
    return ActiveRegion(target, epoch, now, is_open=False)


@frozen
class TakenOver:
    """The change by which a record is taken over.

    Attributes:
        task: the record in the new epoch.
        timer: its check, to be written first; `None` if nothing has to check it.
        was_cut_off: whether an attempt was running; the run of a topology only continues elsewhere.
    """

    task: Task
    timer: Timer | None
    was_cut_off: bool


def is_taken_over(task: Task, region: ActiveRegion) -> bool:
    """Whether a record is in the epoch of the active Region."""
    return task.fence == fence_of_epoch(task.fence, region.epoch)


def taken_over(task: Task, region: ActiveRegion, now: Millis, *, keeps_leases: bool) -> TakenOver | None:
    """The record of a task in the epoch of the active Region; `None` if there is nothing to take over.

    Each open task gets a timer, because its own may not have been replicated. A task that had just ended is completed
    once more: the follow-up of its end may not have been replicated either, and is idempotent.

    Args:
        task: an open task, or one that has ended since shortly before the takeover.
        region: the active Region.
        now: the time.
        keeps_leases: whether the Region works already; an attempt that it has begun under an old fence goes on.
    """
    fence = fence_of_epoch(task.fence, region.epoch)
    is_leased = task.state in LEASED
    runs = has_attempt(task, now)
    if is_taken_over(task, region) or (keeps_leases and runs):
        return None
    if task.finished_at is not None:
        again = replace(task, fence=fence, version=task.version + 1, finished_at=None, sent=False)
        return TakenOver(again, _timer(again, now), was_cut_off=False)
    free = freed(task, region.epoch, now)
    if free.state in {State.PAUSED, State.BLOCKED}:
        return TakenOver(free, None, was_cut_off=False)
    at = now if is_leased or task.is_terminal else max(free.next_at, now)
    return TakenOver(free, _timer(free, at), was_cut_off=runs)


def has_attempt(task: Task, now: Millis) -> bool:
    """Whether an attempt is running that a takeover would cut off; the run of a topology only continues elsewhere."""
    return task.state in LEASED and not task.is_topology and (task.lease_expires_at or 0) > now


def _timer(task: Task, at: Millis) -> Timer:
    return Timer(task.id, task.generation, at, task.priority, task.owner, pull_queue=task.pull_queue)


def cursors_behind(cursors: Cursors, now: Millis) -> Cursors:
    """Cursors of the Region that takes over: those of the other one, and behind every minute with unreplicated timers.

    Args:
        cursors: of the other Region.
        now: the time.
    """
    return cursors.limited([minute_of(now - delay - REGION_OVERLAP) - 1 for delay in (0, *RECOVERY_SCAN_DELAYS)])
