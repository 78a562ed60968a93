"""Makes calls to a target for several attempts at once. The module is imported for the first such call."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from duetime.domain.tasks.attempt_results import NotSent, Stopped
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.times import SECOND, Millis

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.ports.targets import BatchGroups, Work

M = TypeVar("M")


def share_call(
    groups: BatchGroups,
    work: Work,
    member: M,
    call: Callable[[Sequence[tuple[Work, M]], float], Sequence[TargetEnding]],
    *,
    key: Hashable,
    max_size: int,
    max_wait_seconds: float,
) -> TargetEnding:
    """Wait for other attempts with the same key, and make one call for all of them.

    A task's last attempt runs alone, unless the task has only one attempt, so that a task does not finally fail because
    of another task.

    Args:
        groups: groups the attempts in a batch of messages.
        work: the work of this attempt.
        member: the data that the call needs from this attempt.
        call: called with the attempts that may still start, and the seconds until the first of their deadlines;
            returns their endings, in order. This function must not raise an exception.
        key: attempts with the same key and timeout share a call.
        max_size: maximum number of attempts in a call.
        max_wait_seconds: longest wait for other attempts, which is limited to half of the time left.

    Returns:
        The ending of this attempt.
    """
    task = work.task
    is_alone = 1 < task.retry.max_attempts <= task.attempt
    shared = key, task.timeout_seconds
    return groups.join(
        (shared, task.id) if is_alone else shared,
        (work, member),
        lambda members, now: _endings(members, call, now),
        max_size=1 if is_alone else max_size,
        max_wait=round(min(max_wait_seconds, work.seconds / 2) * SECOND),
    )


def _endings(
    members: Sequence[tuple[Work, M]],
    call: Callable[[Sequence[tuple[Work, M]], float], Sequence[TargetEnding]],
    now: Millis,
) -> Sequence[TargetEnding]:
    """The ending of each attempt. The call does not include attempts that may no longer start."""
    endings = {number: ending for number, (work, _) in enumerate(members) if (ending := _refused_start(work))}
    called = [number for number in range(len(members)) if number not in endings]
    if called:
        seconds = (min(members[number][0].deadline for number in called) - now) / SECOND
        endings |= dict(zip(called, call([members[number] for number in called], seconds), strict=True))
    return [endings[number] for number in range(len(members))]


def _refused_start(work: Work) -> TargetEnding | None:
    """The ending of an attempt that lost its lease or was cancelled while it waited; `None` if it can start."""
    if not work.is_leased():
        return NotSent("a lease with time left")
    return Stopped() if work.requested_action() is RequestedAction.CANCEL else None
