"""Request errors, each named after its cause. The API turns each error into a problem with the same code."""

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
    from duetime.domain.type_settings import RetentionPolicy


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
        field: path of the field in the request.
        reason: human-readable reason.
        code: machine-readable code.
    """

    def __init__(self, field: str, reason: str, code: FaultCode = FaultCode.INVALID) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
        self.code = code

    def inside(self, place: str) -> FieldInvalid:
        """Returns the same error for a field that is nested in another field."""
        return FieldInvalid(f"{place}.{self.field}", self.reason, self.code)


class TaskNotFound(RequestError):
    """The task does not exist, or belongs to another owner."""

    def __init__(self, task_id: TaskId) -> None:
        super().__init__(f"there is no task {task_id}")
        self.task_id = task_id


class TaskArchived(TaskNotFound):
    """The task no longer exists, or never existed. If it ended before the retention time, it is in the archive."""

    def __init__(self, task_id: TaskId, retention: Millis, archived: RetentionPolicy) -> None:
        super().__init__(task_id)
        query = f"duetime archive query --where \"id = '{task_id}'\" --from {to_iso(task_id.home)[:10]}"
        tasks, exceptions = "tasks", ""
        if not archived.default:
            tasks = f"tasks of the types {', '.join(archived.patterns(kept=True))}"
        elif never := archived.patterns(kept=False):
            exceptions = f", except those of the types {', '.join(never)}"
        ended = f"that ended more than {retention // DAY} days ago"
        self.args = (f"there is no task {task_id}; {tasks} {ended} are archived{exceptions}: {query}",)


class TypeNotFound(RequestError):
    """The type has no handler, no pull workers and no defaults set by the caller."""

    def __init__(self, task_type: str) -> None:
        super().__init__(f"the type {task_type!r} has no handler, no pull workers and no defaults of yours")
        self.type = task_type


class TypesFull(RequestError):
    """The owner has reached the maximum number of types with defaults."""

    def __init__(self, most: int) -> None:
        super().__init__(f"{most} types have defaults already; delete those of one first")


class SubscriptionsFull(RequestError):
    """A connection, or its owner, has reached the maximum number of subscriptions."""

    def __init__(self, whose: str, limit: int) -> None:
        super().__init__(f"the {whose} has {limit} subscriptions already; end one first")


class TaskDeleted(RequestError):
    """The task that the first request with this key created was deleted; repeating the request does not recreate it."""

    def __init__(self, task_id: TaskId) -> None:
        super().__init__(
            f"the task {task_id}, which was created with this idempotency key, was deleted; use another key"
        )
        self.task_id = task_id


class StateConflict(RequestError):
    """The task's state does not allow the requested action."""

    def __init__(self, task: Task, wanted: str) -> None:
        super().__init__(f"the task is {task.state} and cannot be {wanted}")
        self.task = task


class VersionMismatch(RequestError):
    """The task has changed since the version that the request names."""

    def __init__(self, task: Task) -> None:
        super().__init__(f"the task is at version {task.version}")
        self.task = task


class FenceMismatch(RequestError):
    """The request's fence is not the fence of a running attempt, or the attempt has exceeded its time limit."""

    def __init__(self, task: Task, why: str = "the attempt has ended or belongs to another worker") -> None:
        super().__init__(f"the task is {task.state} at fence {task.fence}; {why}")
        self.task = task


class LockLost(RequestError):
    """A running attempt has lost a lock that it needs: the lock was released by force."""

    def __init__(self, task: Task) -> None:
        super().__init__("the attempt has lost a lock that it needs; it should stop")
        self.task = task


class RateNotFound(RequestError):
    """The rate does not exist, because no task has used it recently, and its owner has neither paused nor pinned it."""

    def __init__(self, key: str) -> None:
        super().__init__(f"there is no rate {key!r}")
        self.key = key


class UniqueKeyNotFound(RequestError):
    """No task of the owner holds the unique key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no task holds the unique key {key!r}")
        self.key = key


class OrderedKeyNotFound(RequestError):
    """No task of the owner has used the ordered key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no task has used the ordered key {key!r}")
        self.key = key


class LockNotFound(RequestError):
    """The lock does not exist, because no task has used it recently."""

    def __init__(self, key: str) -> None:
        super().__init__(f"there is no lock {key!r}")
        self.key = key


class AttemptOverdue(RequestError):
    """A running attempt has exceeded its time limit, so its lease is no longer renewed."""

    def __init__(self, task: Task) -> None:
        super().__init__(f"the attempt has exceeded its {task.timeout_seconds} s; its lease is not renewed")
        self.task = task


class LeaseNotFound(RequestError):
    """The lease does not exist, because this deployment has not granted it, or its task was removed."""

    def __init__(self) -> None:
        super().__init__("there is no such lease")


class TypeNotPulled(RequestError):
    """The caller is not allowed to pull a type; the error does not reveal whether other callers may pull it."""

    def __init__(self, task_type: str) -> None:
        super().__init__(f"the settings do not allow this caller to pull the type {task_type!r}")
        self.task_type = task_type


class LeaseOnlyCreates(RequestError):
    """A handler that is in a separate package, or runs another owner's leased task, can only create tasks."""

    def __init__(self) -> None:
        super().__init__("a handler in a package of its own, or of another owner's task, can only create tasks")


class NotifiedOtherwise(RequestError):
    """The attempt has already ended with another outcome."""

    def __init__(self, task: Task) -> None:
        super().__init__(f"the attempt ended differently before: the task is {task.state}")
        self.task = task


class OperatorRequired(RequestError):
    """The request affects all owners, so only operators may send it."""

    def __init__(self) -> None:
        super().__init__("only an operator of this deployment may do this: it affects other owners too")


class RoleRequired(RequestError):
    """The caller has no role that allows the operation."""

    def __init__(self, role: str) -> None:
        super().__init__(f"the caller needs the role {role!r} for this operation")
        self.role = role


class OwnerForbidden(RequestError):
    """The caller may not act for the owner that the request names."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"the caller may not act for the owner {owner!r}")
        self.owner = owner


class ApiKeyNotFound(RequestError):
    """An API key with this id does not exist."""

    def __init__(self, id_: str) -> None:
        super().__init__(f"there is no API key {id_}")
        self.id = id_


class ApiKeysOff(RequestError):
    """The deployment accepts no API keys."""

    def __init__(self) -> None:
        super().__init__("this deployment accepts no API keys: its setting `api_keys` is off")


class LinkNotFound(RequestError):
    """A link with this token or id does not exist, was deleted, or ended some time ago."""

    def __init__(self) -> None:
        super().__init__("there is no such link")


class LinkEnded(RequestError):
    """The link was used, has expired, or belongs to an earlier attempt or run of its task.

    Attributes:
        reason: human-readable reason.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the link has ended: {reason}")
        self.reason = reason


class LinksFull(RequestError):
    """The task has the maximum number of links."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the task has {most} links already; delete one")


class QuotaExceeded(RequestError):
    """The owner has used up one of its quotas.

    Attributes:
        quota: name of the quota.
        retry_after: when the request may be repeated, in milliseconds from now.
    """

    def __init__(self, quota: str, limit: int, retry_after: Millis) -> None:
        super().__init__(f"the quota {quota} of {limit} is used up; repeat the request later")
        self.quota = quota
        self.limit = limit
        self.retry_after = retry_after


class IntakeOff(RequestError):
    """The deployment creates no tasks from events."""

    def __init__(self) -> None:
        super().__init__("this deployment has no intake of events: its setting `intake_owner` is not set")


class IntakeRuleNotFound(RequestError):
    """An intake rule with this name does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no intake rule {name!r}")


class IntakeRulesFull(RequestError):
    """There are too many intake rules, or the rules are too large in total."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"a deployment has at most {limit}; delete an intake rule first")


class QuotasOff(RequestError):
    """Quotas are turned off in the settings."""

    def __init__(self) -> None:
        super().__init__("this deployment has no quotas: its setting `quotas` is not set")


class QuotasNotFound(RequestError):
    """The owner does not have its own quotas."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"{owner} has no quotas of its own")


class QuotasFull(RequestError):
    """The maximum number of owners with their own quotas is reached."""

    def __init__(self, most: int) -> None:
        super().__init__(f"{most} owners have quotas of their own already; delete those of one first")


class SummaryOff(RequestError):
    """Counting tasks is turned off in the settings."""

    def __init__(self) -> None:
        super().__init__("this deployment does not count tasks: its setting `summary_spread` is 0")


class QueryNotOffered(RequestError):
    """The task's target does not declare support for the query."""

    def __init__(self, query: Query) -> None:
        super().__init__(
            f"the task's target does not support {query.value!r}; an HTTP target lists what it supports in `queries`"
        )
        self.query = query


class TargetUnreachable(RequestError):
    """The task's endpoint may not be called, cannot be reached, or returns a response that cannot be passed on."""


class TargetSilent(RequestError):
    """The task's endpoint did not respond in time."""


class KeyReused(RequestError):
    """The idempotency key was already used with a different body."""

    def __init__(self) -> None:
        super().__init__("this idempotency key was used before, with another body")


class UniqueKeyHeld(RequestError):
    """Another task holds the unique key of a task that is to be created, or reopened after its end.

    Attributes:
        holder: the task that holds the key.
        field: the request field with the key; empty if the request has no such field.
    """

    def __init__(self, holder: Task, key: str, why: str = "", *, field: str = "") -> None:
        super().__init__(f"the task {holder.id}, which is {holder.state}, holds the unique key {key!r}{why}")
        self.holder = holder
        self.field = field


class ContentExpired(RequestError):
    """A payload, result or checkpoint that is stored outside its record was removed before the record."""

    def __init__(self, task_id: TaskId, name: str) -> None:
        super().__init__(f"the {name.partition('.')[0]} of {task_id} was stored outside its record and has expired")
        self.task_id = task_id
        self.name = name


class Unavailable(Exception):
    """A service that duetime depends on throttles or fails; the request may be retried."""


class RegionNotActive(RequestError):
    """Another Region is active, so this Region accepts only reads."""

    def __init__(self, active: str, *, is_open: bool) -> None:
        does = "is active: send the request there" if is_open else "is taking over: send the request there in a moment"
        super().__init__(f"the Region {active} {does}; this one only answers reads")


class MinutesUnread(Exception):
    """A tick could not read or process everything that was due; the next tick continues where this tick stopped."""

    def __init__(self, group: int, failures: int, first: str) -> None:
        super().__init__(f"group {group}: {failures} readings of minutes failed; the first one: {first}")


class ClockWrong(Exception):
    """This process's clock differs too much from the database's clock to be used."""

    def __init__(self, ahead: int) -> None:
        super().__init__(f"this process's clock is {ahead / 1000:+.0f} s off")


class RecordUnreadable(Exception):
    """This code cannot read a stored item because the item is damaged or was written by a different version."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"the item {key} cannot be read: {reason}")
        self.key = key


class SwitchNotFound(RequestError):
    """The switch is not set."""

    def __init__(self, key: SwitchKey) -> None:
        super().__init__(f"there is no switch for {key}")
        self.key = key


class SwitchesFull(RequestError):
    """The maximum number of switches is reached."""

    def __init__(self, most: int) -> None:
        super().__init__(f"there are {most} such switches already; delete one first")


class ScheduleNotFound(RequestError):
    """The schedule does not exist, or belongs to another owner."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no schedule {name!r}")
        self.name = name


class ScheduleExists(RequestError):
    """A schedule with this name already exists."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the schedule {name!r} already exists")
        self.name = name


class ScheduleStateConflict(RequestError):
    """The schedule's state does not allow the requested action."""

    def __init__(self, name: str, state: str, wanted: str) -> None:
        super().__init__(f"the schedule {name!r} is {state} and cannot be {wanted}")
        self.name = name
        self.state = state


class ScheduleVersionMismatch(RequestError):
    """The schedule has changed since the version that the request names."""

    def __init__(self, name: str, version: int) -> None:
        super().__init__(f"the schedule {name!r} is at version {version}")
        self.name = name
        self.version = version


class BackfillNotFound(RequestError):
    """The schedule never had this backfill, or no longer stores it."""

    def __init__(self, name: str, backfill_id: str) -> None:
        super().__init__(f"the schedule {name!r} has no backfill {backfill_id!r}")
        self.name = name
        self.backfill_id = backfill_id


class CalendarNotFound(RequestError):
    """The calendar does not exist, or belongs to another owner."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no calendar {name!r}")
        self.name = name


class CalendarExists(RequestError):
    """A calendar with this name already exists, and the request must not replace it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the calendar {name!r} already exists")
        self.name = name


class CalendarVersionMismatch(RequestError):
    """The calendar has changed since the version that the request names."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the calendar {name!r} is not at this version")
        self.name = name


class CalendarUsed(RequestError):
    """The calendar cannot be deleted while a schedule uses it."""

    def __init__(self, name: str, schedule: str) -> None:
        super().__init__(f"the schedule {schedule!r} names the calendar {name!r}")
        self.name = name
        self.schedule = schedule


class DefinitionNotFound(RequestError):
    """The definition does not exist, belongs to another owner, or does not have this version."""

    def __init__(self, name: str, version: int | None = None) -> None:
        which = f"topology definition {name!r}" if version is None else f"version {version} of the definition {name!r}"
        super().__init__(f"there is no {which}")


class DefinitionExists(RequestError):
    """A definition with this name already exists, and the request must not replace it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the topology definition {name!r} already exists")


class DefinitionVersionMismatch(RequestError):
    """The definition has changed since the version that the request names."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the topology definition {name!r} is not at this version")


class DefinitionUsed(RequestError):
    """The definition cannot be deleted while a schedule runs it."""

    def __init__(self, name: str, schedule: str) -> None:
        super().__init__(f"the schedule {schedule!r} runs the topology definition {name!r}")


class BulkNotFound(RequestError):
    """The bulk operation does not exist, belongs to another owner, or ended before the retention time."""

    def __init__(self, operation_id: TaskId) -> None:
        super().__init__(f"there is no bulk operation {operation_id}")
        self.operation_id = operation_id


class BulkEnded(RequestError):
    """The bulk operation has already ended and was not cancelled."""

    def __init__(self, operation_id: TaskId) -> None:
        super().__init__(f"the bulk operation {operation_id} has succeeded and cannot be cancelled")
        self.operation_id = operation_id


class BulkOfTopology(RequestError):
    """The bulk operation was started by a request to a topology, so it cannot be cancelled."""

    def __init__(self, operation_id: TaskId) -> None:
        super().__init__(
            f"the operation {operation_id} belongs to a topology: pause, resume or cancel the topology instead"
        )
        self.operation_id = operation_id


class GroupNotFound(RequestError):
    """The group does not exist, or belongs to another owner."""

    def __init__(self, group_id: str) -> None:
        super().__init__(f"there is no group {group_id!r}")


class GroupClosed(RequestError):
    """The group is closed, so no task can join, and the group cannot be closed again with different options."""

    def __init__(self, group_id: str, reason: str = "no task can join it") -> None:
        super().__init__(f"the group {group_id!r} is closed: {reason}")
