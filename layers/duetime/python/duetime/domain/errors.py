"""Errors of requests, named for what happened. The API turns each into a problem with the same code."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.times import DAY, to_iso

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.switches import SwitchKey
    from duetime.domain.tasks.targets import Query
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


class RequestError(Exception):
    """A request that was rejected without changing anything."""


class FaultCode(StrEnum):
    """Machine-readable code of a fault; codes may be added."""

    REQUIRED = "required"
    UNKNOWN_FIELD = "unknown_field"
    READ_ONLY = "read_only"
    CANNOT_CHANGE = "cannot_change"
    WRONG_TYPE = "wrong_type"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    OUT_OF_RANGE = "out_of_range"
    PATTERN = "pattern"
    NOT_ALLOWED = "not_allowed"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    UNREADABLE = "unreadable"
    UNSUPPORTED = "unsupported"
    INVALID = "invalid"


class FieldInvalid(RequestError):
    """A field of the request is invalid.

    Attributes:
        field: its path in the request.
        reason: human-readable.
        code: machine-readable.
    """

    def __init__(self, field: str, reason: str, code: FaultCode = FaultCode.INVALID) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
        self.code = code

    def inside(self, place: str) -> FieldInvalid:
        """The same error for a field nested in another one."""
        return FieldInvalid(f"{place}.{self.field}", self.reason, self.code)


class TaskNotFound(RequestError):
    """There is no such task, or it belongs to another owner."""

    def __init__(self, task_id: TaskId) -> None:
        super().__init__(f"there is no task {task_id}")
        self.task_id = task_id


class TaskArchived(TaskNotFound):
    """There is no such task any more, or there never was: if it ended before its retention, the archive has it."""

    def __init__(self, task_id: TaskId, retention: Millis) -> None:
        super().__init__(task_id)
        query = f"duetime archive query --where \"id = '{task_id}'\" --from {to_iso(task_id.home)[:10]}"
        days = retention // DAY
        self.args = (f"there is no task {task_id}; tasks that ended more than {days} days ago are archived: {query}",)


class SubscriptionsFull(RequestError):
    """A connection, or its owner, has as many subscriptions as may be."""

    def __init__(self, whose: str, limit: int) -> None:
        super().__init__(f"the {whose} has {limit} subscriptions already; end one first")


class TaskDeleted(RequestError):
    """The task that a repeated request made was deleted since: it is not made again."""

    def __init__(self, task_id: TaskId) -> None:
        super().__init__(f"the task {task_id}, which this idempotency key made, was deleted; use another key")
        self.task_id = task_id


class StateConflict(RequestError):
    """The task's state does not allow what was requested."""

    def __init__(self, task: Task, wanted: str) -> None:
        super().__init__(f"the task is {task.state} and cannot be {wanted}")
        self.task = task


class VersionMismatch(RequestError):
    """The task has changed since the version that the request was made for."""

    def __init__(self, task: Task) -> None:
        super().__init__(f"the task is at version {task.version}")
        self.task = task


class FenceMismatch(RequestError):
    """The fence of a request is not that of a running attempt, or the attempt's time is over."""

    def __init__(self, task: Task, why: str = "the attempt is over, or it is another's") -> None:
        super().__init__(f"the task is {task.state} at fence {task.fence}; {why}")
        self.task = task


class LockLost(RequestError):
    """A running attempt no longer holds a lock that it needs: it was taken away by force."""

    def __init__(self, task: Task) -> None:
        super().__init__("a lock that the attempt needs was taken away; it should stop")
        self.task = task


class LockNotFound(RequestError):
    """There is no such lock: no task has taken it lately."""

    def __init__(self, key: str) -> None:
        super().__init__(f"there is no lock {key!r}")
        self.key = key


class AttemptOverdue(RequestError):
    """A running attempt has taken longer than it may: its lease is not renewed any more."""

    def __init__(self, task: Task) -> None:
        super().__init__(f"the attempt has exceeded its {task.timeout_seconds} s; its lease is not renewed")
        self.task = task


class LeaseNotFound(RequestError):
    """There is no such lease: this deployment has not handed it out, or its task is gone."""

    def __init__(self) -> None:
        super().__init__("there is no such lease")


class TypeNotPulled(RequestError):
    """The settings do not let the caller pull a type; nobody learns whether they let others."""

    def __init__(self, task_type: str) -> None:
        super().__init__(f"the settings do not declare {task_type!r} as a type that this caller may pull")
        self.task_type = task_type


class NotifiedOtherwise(RequestError):
    """The attempt has ended already, and differently."""

    def __init__(self, task: Task) -> None:
        super().__init__(f"the attempt ended differently before: the task is {task.state}")
        self.task = task


class OperatorRequired(RequestError):
    """What was asked concerns all owners, and only operators may ask it."""

    def __init__(self) -> None:
        super().__init__("only an operator of this deployment may do this: it concerns other owners too")


class SummaryOff(RequestError):
    """The settings have no tasks counted."""

    def __init__(self) -> None:
        super().__init__("this deployment does not count tasks: its setting `summary_spread` is 0")


class QueryNotOffered(RequestError):
    """The task's target does not say that it answers what was requested."""

    def __init__(self, query: Query) -> None:
        super().__init__(f"the task's target does not offer {query.value!r}; an HTTP target says so in its `queries`")
        self.query = query


class TargetUnreachable(RequestError):
    """The task's endpoint may not be called, cannot be reached, or gives no answer that can be passed on."""


class TargetSilent(RequestError):
    """The task's endpoint did not answer in time."""


class KeyReused(RequestError):
    """The idempotency key was used before, with another body."""

    def __init__(self) -> None:
        super().__init__("this idempotency key was used before, with another body")


class UniqueKeyHeld(RequestError):
    """Another task holds the unique key of a task that was to be created, or opened again after its end.

    Attributes:
        holder: the task that holds it.
        field: of the request that has the key; empty if it has none.
    """

    def __init__(self, holder: Task, key: str, why: str = "", *, field: str = "") -> None:
        super().__init__(f"the task {holder.id}, which is {holder.state}, holds the unique key {key!r}{why}")
        self.holder = holder
        self.field = field


class ContentExpired(RequestError):
    """A payload, result or checkpoint that lies outside its record was removed before the record."""

    def __init__(self, task_id: TaskId, name: str) -> None:
        super().__init__(f"the {name.partition('.')[0]} of {task_id} was kept outside its record and has expired")
        self.task_id = task_id
        self.name = name


class Unavailable(Exception):
    """A service that duetime stands on throttles or fails; the request may be repeated."""


class MinutesUnread(Exception):
    """A tick could not read or serve all that it should have; the next one goes on there."""

    def __init__(self, group: int, failures: int, first: str) -> None:
        super().__init__(f"group {group}: {failures} readings of minutes failed; the first one: {first}")


class ClockWrong(Exception):
    """This process's clock differs so much from the database's that nothing should be decided by it."""

    def __init__(self, ahead: int) -> None:
        super().__init__(f"this process's clock is {ahead / 1000:+.0f} s off")


class RecordUnreadable(Exception):
    """A stored item cannot be read by this code: it was damaged, or written by another version."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"the item {key} cannot be read: {reason}")
        self.key = key


class SwitchNotFound(RequestError):
    """There is no such switch: nothing is stopped or capped by it."""

    def __init__(self, key: SwitchKey) -> None:
        super().__init__(f"there is no switch for {key}")
        self.key = key


class SwitchesFull(RequestError):
    """There are as many switches as there may be."""

    def __init__(self, most: int) -> None:
        super().__init__(f"there are {most} switches already; remove one first")
