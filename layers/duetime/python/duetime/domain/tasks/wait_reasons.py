"""Machine-readable codes for why a task's last check did not start an attempt. A record contains the reason as text.

The code is derived from the text, so old records have a code as well.
"""

from __future__ import annotations

from enum import StrEnum

APPROVAL_AWAITED = "an approval"
"""Wait reason of a task with the target `approval`."""

EVENT_AWAITED = "the event "
"""Prefix of the wait reason of a task with the target `wait_for_event`; the prefix is followed by the event's name and
key."""

GROUP_AWAITED = "group "
"""Prefix of the wait reason of a group's following task; the prefix is followed by the group's id."""

QUOTA_AWAITED = "quota "
"""Prefix of the wait reason of a task whose owner's quota delays it; the prefix is followed by the quota's name."""


class WaitReason(StrEnum):
    """What a task waits for, other than its due time.

    Attributes:
        LOCK: its lock.
        CONCURRENCY_LIMIT: the limit on running tasks of its type or owner.
        ORDER: an earlier task of its ordered key.
        RATE: its rate limit, which is used up.
        SWITCH: a switch that has stopped its type, its owner or all tasks.
        CIRCUIT: the circuit of its host, which is open because the host keeps failing.
        OVERLAP: an earlier run of its schedule.
        HANDLERS: the handlers cannot be imported.
        WORKER: a free worker.
        TARGET: its target, which accepts no more calls for now.
        APPROVAL: a person who approves or rejects it.
        EVENT: a signal for the event that it waits for.
        GROUP: the members of the group after which the task runs.
        TOPOLOGY: the state machine of its topology, or nodes of an earlier run.
        OTHER: another reason, given in the text.
    """

    LOCK = "lock"
    CONCURRENCY_LIMIT = "concurrency_limit"
    ORDER = "order"
    RATE = "rate"
    SWITCH = "switch"
    CIRCUIT = "circuit"
    OVERLAP = "overlap"
    HANDLERS = "handlers"
    WORKER = "worker"
    TARGET = "target"
    APPROVAL = "approval"
    EVENT = "event"
    GROUP = "group"
    TOPOLOGY = "topology"
    OTHER = "other"


_BEGINNINGS = (
    ("lock ", WaitReason.LOCK),
    ("a lock that it lost", WaitReason.LOCK),
    (QUOTA_AWAITED, WaitReason.CONCURRENCY_LIMIT),
    ("order ", WaitReason.ORDER),
    ("rate ", WaitReason.RATE),
    (GROUP_AWAITED, WaitReason.GROUP),
    ("the switches could not be read", WaitReason.SWITCH),
    ("the circuit of ", WaitReason.CIRCUIT),
    ("the run of ", WaitReason.OVERLAP),
    ("HandlersUnavailable: ", WaitReason.HANDLERS),
    ("pull workers of ", WaitReason.WORKER),
    (APPROVAL_AWAITED, WaitReason.APPROVAL),
    (EVENT_AWAITED, WaitReason.EVENT),
    ("a worker: ", WaitReason.WORKER),
    ("a function with time left", WaitReason.WORKER),
    ("a lease with time left", WaitReason.WORKER),
    ("restored: ", WaitReason.OTHER),
    ("the state machine could not be started", WaitReason.TOPOLOGY),
    ("its state machine's execution was lost", WaitReason.TOPOLOGY),
    ("nodes of its last run have not ended", WaitReason.TOPOLOGY),
)
"""Prefixes of the reasons in `Postponed`, including old prefixes that stored records still contain."""


def wait_reason(text: str) -> WaitReason:
    """The code for the text of a reason; `OTHER` if the text is unknown."""
    if _is_of_a_switch(text):
        return WaitReason.SWITCH
    found = next((reason for beginning, reason in _BEGINNINGS if text.startswith(beginning)), None)
    if found is WaitReason.LOCK and "/" in text:
        # Tasks' lock keys contain no slash; only the keys of locks that enforce a switch's limit contain a slash.
        return WaitReason.CONCURRENCY_LIMIT
    if found is not None:
        return found
    word, colon, _ = text.partition(": ")
    return WaitReason.TARGET if colon and word.isidentifier() else WaitReason.OTHER


def _is_of_a_switch(text: str) -> bool:
    """Whether the reason says that a switch has stopped the task, as in `type report is stopped: an incident`.

    The stored reason may be cut within a long name, before the words `is stopped`.
    """
    return text.startswith(("type ", "owner ", "everything is stopped"))
