"""The stores of tasks, their timers and contents, and idempotency keys.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.conditional_writes import Write, WriteResult
    from duetime.domain.dispatch.enqueue_plan import BulkTimer, Entry, LateTimer, ScheduleTimer, Timer
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.content import Content, Expiry
    from duetime.domain.tasks.idempotency_keys import KeyRedirect, RememberedKey
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.unique_key_holders import KeyHolder, KeyTaking, KeyWrite
    from duetime.domain.times import Millis

    MinuteItem: TypeAlias = Entry | Timer | ScheduleTimer | BulkTimer | LateTimer


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which of an owner's tasks to list, and in which order.

    Attributes:
        after: the last id of the page before; the list goes on behind it.
        descending: latest due first.
        failed_only: only tasks that are `failed`.
        limit: ids at the most.
        since: tasks whose ids are of an earlier time are not read: a list that descends ends there.
    """

    owner: str
    after: TaskId | None = None
    descending: bool = True
    failed_only: bool = False
    limit: int = 100
    since: Millis = 0


@dataclass(frozen=True, slots=True)
class MinutePage:
    """A part of one shard of a minute.

    Attributes:
        items: what can be read of it, each with its sort key, in their order.
        last: the sort key after which the next page begins; `None` if this is the last one.
    """

    items: Sequence[tuple[str, MinuteItem]]
    last: str | None


@dataclass(frozen=True, slots=True)
class Insertions:
    """What is known of new records that were to be written with few requests; any other may have been written, or not.

    Attributes:
        written: known to be written by this call.
        existing: those of whose ids a record existed. It may be this call's own, if a request was sent twice.
    """

    written: Sequence[Task]
    existing: Sequence[Task]


class TaskStore(Protocol):
    """The records of tasks and their timers."""

    def create(self, task: Task, taking: KeyTaking | None = None) -> bool:
        """Write a new record, unless one of that id exists; with a unique key only together with the key's item.

        Safe to resend: if the record exists with this task's own nonce, it was this call that wrote it.

        Returns:
            Whether the record is now this very task.
        """
        ...

    def insert(self, tasks: Sequence[Task]) -> Insertions:
        """Write new records, each unless one of that id exists, with few requests; it is never `Unavailable`."""
        ...

    def read(self, task_id: TaskId) -> Task | None:
        """Read one record, consistently; `None` if there is none."""
        ...

    def read_many(self, task_ids: Sequence[TaskId], *, consistent: bool = False) -> dict[TaskId, Task]:
        """Read many records, eventually consistently unless asked otherwise; those that do not exist are left out."""
        ...

    def apply(self, write: Write, key_write: KeyWrite | None = None) -> WriteResult:
        """Make one conditional write, in one request, with no read before or after it.

        Safe to resend: a rejection by a record that bears the write's own nonce is an application. Together with a
        write to the item of a key it is rejected also if somebody else wrote that first, and is read afterwards.
        """
        ...

    def add_timer(self, timer: Timer) -> None:
        """Write a timer into the minute of its check; writing it twice is writing it once.

        It replaces no timer that says anything else: that may be of a change that is accepted while this one is not.
        """
        ...

    def add_schedule_timer(self, timer: ScheduleTimer) -> None:
        """Write a schedule's timer into the minute of its check; writing it twice is writing it once."""
        ...

    def add_bulk_timer(self, timer: BulkTimer) -> None:
        """Write the timer of a bulk operation into its minute; writing it twice is writing it once."""
        ...

    def add_late_timer(self, timer: LateTimer) -> None:
        """Write the timer that checks whether a task is late; writing it twice is writing it once."""
        ...

    def is_told(self, timer: LateTimer) -> bool:
        """Whether a late timer is marked as told, or gone; read consistently."""
        ...

    def mark_told(self, timer: LateTimer) -> None:
        """Mark a late timer as told: no later reading of its minute acts on it. One that is gone stays gone."""
        ...

    def read_page(self, minute: int, shard: int, after: str, *, consistent: bool) -> MinutePage:
        """What the trigger needs of the next records and timers in one shard of one minute.

        Args:
            minute: the minute.
            shard: the shard.
            after: a sort key; the empty text for the first page.
            consistent: whether everything that was written before must be seen.
        """
        ...

    def list_ids(self, query: ListQuery) -> list[TaskId]:
        """Ids of an owner's tasks in order of their home times, eventually consistently."""
        ...


class ContentStore(Protocol):
    """Payloads and results too large for a record."""

    def keep(self, task_id: TaskId, name: str, data: bytes, expiry: Expiry | None = None) -> Content:
        """Keep bytes where their compressed size says; what belongs in the record is only handed back.

        Args:
            task_id: the task they belong to.
            name: what they are called; becomes `Content.name`. Keeping the same name twice is keeping it once: of
                what is there already, in an item, the expiry stays as it is.
            data: the bytes.
            expiry: when they may be removed if they lie outside; `None` for never.
        """
        ...

    def fetch(self, task_id: TaskId, content: Content) -> bytes:
        """The bytes of a content, wherever they lie.

        Raises:
            ContentExpired: they are not there.
        """
        ...

    def expire(self, task_id: TaskId, content: Content, expiry: Expiry) -> bool:
        """Let what lies outside the record be removed after an instant; says whether it is there."""
        ...

    def retain(self, task_id: TaskId, content: Content, expiry: Expiry | None = None) -> None:
        """Take the expiry of what lies outside the record away; in an item, only if it is this one, if one is named."""
        ...

    def expire_items(self, task_id: TaskId, expiry: Expiry) -> None:
        """Let all items beside a record be removed after an instant; those that expire later already stay so."""
        ...

    def erase(self, task_id: TaskId, contents: Sequence[Content]) -> None:
        """Remove what lies outside a record: these contents, and all items beside it; any may be gone already."""
        ...

    def store_attempt(self, task_id: TaskId, line: AttemptRecord) -> None:
        """Keep an attempt record that the record has no more room for; keeping it twice is keeping it once."""
        ...

    def attempts_outside(self, task_id: TaskId) -> list[Content]:
        """The attempt records of a task that were kept, as the items that they are."""
        ...

    def attempts_of(self, task_id: TaskId) -> list[AttemptRecord]:
        """The attempt records of a task that were kept, in no order; what has just been kept is among them."""
        ...


class KeyStore(Protocol):
    """Idempotency keys."""

    def remember(self, owner: str, key: str, wanted: RememberedKey, now: Millis) -> RememberedKey:
        """Keep what an owner's key stands for, unless the key is taken and not expired.

        Returns:
            What the key stands for now: `wanted`, or what was kept under it before.
        """
        ...

    def redirect(self, redirect: KeyRedirect) -> None:
        """Have a key stand for another task than the one that was to be made, unless it stands for something else."""
        ...

    def find(self, owner: str, key: str, now: Millis) -> RememberedKey | None:
        """What an owner's key stands for, read consistently; `None` if it is not taken, or has expired."""
        ...


class UniqueKeyStore(Protocol):
    """Which task took a unique key last; keys are taken by `TaskStore.create` and `TaskStore.apply`."""

    def find(self, owner: str, key: str) -> KeyHolder | None:
        """Which task took a key last, read consistently; `None` if none has, or the item was removed since."""
        ...

    def let_expire(self, owner: str, key: str, task_id: TaskId, fence: int, expires_at: Millis) -> None:
        """Give the item of a key a time to live, if it still names a task that has ended.

        Args:
            owner: whose key it is.
            key: the key.
            task_id: the task.
            fence: at which it has ended: if it took the key again for later fences, nothing is changed.
            expires_at: when the item may be removed.
        """
        ...
