"""Decides which of two Regions with one replicated table is active, and how it takes over the other Region's records.

Replication is asynchronous, and items arrive in any order, so a takeover must work even if some of the latest writes
are missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import RECOVERY_SCAN_DELAYS, REGION_OVERLAP
from duetime.domain.restore import freed, needs_no_check, timer_of
from duetime.domain.tasks.states import LEASED
from duetime.domain.tasks.task import fence_of_epoch
from duetime.domain.times import minute_of
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.dispatch.cursors import Cursors
    from duetime.domain.dispatch.enqueue_plan import Timer
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@frozen
class ActiveRegion:
    """The Region that is allowed to process tasks, as recorded in the replicated table.

    Attributes:
        name: name of the Region.
        epoch: epoch of the Region's fences; each takeover raises the epoch.
        since: when the takeover began.
        is_open: whether the Region processes tasks; neither Region does so until the takeover has ended.
    """

    name: str
    epoch: int
    since: Millis
    is_open: bool


def next_region(target: str, known: list[ActiveRegion], least_epoch: int, now: Millis) -> ActiveRegion:
    """The record that makes a Region the active Region; the existing record if the same takeover was started before.

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
    """The change that takes over a record.

    Attributes:
        task: the record in the new epoch.
        timer: the timer for the record's check, to be written first; `None` if no check is needed.
        was_cut_off: whether a running attempt was cut off; a topology's run is not cut off, but continues outside the
            Region's workers.
    """

    task: Task
    timer: Timer | None
    was_cut_off: bool


def is_taken_over(task: Task, region: ActiveRegion) -> bool:
    """Whether a record is in the epoch of the active Region."""
    return task.fence == fence_of_epoch(task.fence, region.epoch)


def taken_over(task: Task, region: ActiveRegion, now: Millis, *, keeps_leases: bool) -> TakenOver | None:
    """The record of a task in the epoch of the active Region; `None` if there is nothing to take over.

    Each open task that a check may start gets a timer, because its own timer may not have been replicated. The
    follow-ups of a task that had just ended are run again, because they may not have been replicated either; they are
    idempotent.

    Args:
        task: an open task, or one that has ended since shortly before the takeover.
        region: the active Region.
        now: the time.
        keeps_leases: whether the Region is already processing tasks, so that its attempts with an old fence continue.
    """
    fence = fence_of_epoch(task.fence, region.epoch)
    is_leased = task.state in LEASED
    runs = has_attempt(task, now)
    if is_taken_over(task, region) or (keeps_leases and runs):
        return None
    if task.finished_at is not None:
        again = replace(task, fence=fence, version=task.version + 1, finished_at=None, sent=False)
        return TakenOver(again, timer_of(again, now), was_cut_off=False)
    free = freed(task, region.epoch, now)
    if needs_no_check(free):
        return TakenOver(free, None, was_cut_off=False)
    at = now if is_leased or task.is_terminal else max(free.next_at, now)
    return TakenOver(free, timer_of(free, at), was_cut_off=runs)


def has_attempt(task: Task, now: Millis) -> bool:
    """Whether a takeover would cut off a running attempt; a topology's run continues outside the Region's workers."""
    return task.state in LEASED and not task.is_topology and (task.lease_expires_at or 0) > now


def cursors_behind(cursors: Cursors, now: Millis) -> Cursors:
    """The other Region's cursors for a takeover, moved back to minutes with unreplicated timers.

    Args:
        cursors: cursors of the other Region.
        now: the time.
    """
    return cursors.limited([minute_of(now - delay - REGION_OVERLAP) - 1 for delay in (0, *RECOVERY_SCAN_DELAYS)])
