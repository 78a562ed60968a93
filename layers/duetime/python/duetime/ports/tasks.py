"""Ports for the stores of tasks, their timers and contents, and idempotency keys.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from duetime.domain.limits import INLINE_CONTENT_BYTES
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.conditional_writes import Write, WriteResult
    from duetime.domain.dispatch.enqueue_plan import BulkTimer, Entry, LateTimer, ScheduleTimer, Timer
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.creation import KeyHolder, KeyRedirect, KeyTaking, KeyWrite, RememberedKey
    from duetime.domain.tasks.dependencies import OccurrenceRef
    from duetime.domain.tasks.dependency_outcomes import OccurrenceRun
    from duetime.domain.tasks.task import Content, Expiry, Task, UploadedBytes
    from duetime.domain.tasks.task_lists import ListHead, ListName, ListWrites
    from duetime.domain.times import Millis
    from duetime.domain.uploads import SignedUpload, Upload

    MinuteItem: TypeAlias = Entry | Timer | ScheduleTimer | BulkTimer | LateTimer


@frozen
class ListQuery:
    """Selects and orders an owner's tasks for a list.

    Attributes:
        after: last id of the previous page.
        descending: whether the latest due tasks come first.
        failed_only: whether to list only `failed` tasks.
        children_of: the task that started the children, to list only its children.
        in_group: the group whose members are listed; empty to list tasks regardless of groups.
        limit: maximum number of ids.
        since: earliest time of the ids that `TaskReader.list` lists; a descending list ends at this time.
        with_nodes: whether to also list topology nodes.
        by_end: whether `TaskReader.list` lists only ended tasks, ordered by when they ended.
        part: a part of the list, as returned by `TaskStore.parts_of`; empty for the entire list.
    """

    owner: str
    after: TaskId | None = None
    descending: bool = True
    failed_only: bool = False
    children_of: TaskId | None = None
    in_group: str = ""
    limit: int = 100
    since: Millis = 0
    with_nodes: bool = True
    by_end: bool = False
    part: str = ""


@frozen
class MinutePage:
    """A page of the items in one shard of a minute.

    Attributes:
        items: readable items with their sort keys, in order.
        last: sort key after which the next page begins; `None` on the last page.
    """

    items: Sequence[tuple[str, MinuteItem]]
    last: str | None


@frozen
class Insertions:
    """The known results of inserting records with few requests.

    It is unknown whether any other record has been written.

    Attributes:
        written: records known to be written by this call.
        existing: records whose ids already existed. If a request was sent twice, this call itself may have written some
            of these records.
    """

    written: Sequence[Task]
    existing: Sequence[Task]


class TaskStore(Protocol):
    """The records of tasks, and their timers."""

    def create(self, task: Task, taking: KeyTaking | None = None) -> bool:
        """Write a new record, unless its id exists.

        If the task has a unique key, the key's item is written in the same transaction. The call is safe to resend,
        because a record with this task's own nonce must have been written by this call.

        Returns:
            Whether the stored record is the given task.
        """
        ...

    def insert(self, tasks: Sequence[Task]) -> Insertions:
        """Write new records with few requests, except records whose ids already exist.

        This method never raises `Unavailable`.
        """
        ...

    def read(self, task_id: TaskId) -> Task | None:
        """Read one record with strong consistency; `None` if it does not exist."""
        ...

    def read_many(self, task_ids: Sequence[TaskId], *, consistent: bool = False) -> dict[TaskId, Task]:
        """Read many records, eventually consistent by default; missing records are left out."""
        ...

    def apply(self, write: Write, key_write: KeyWrite | None = None) -> WriteResult:
        """Make one conditional write in one request, without an additional read.

        The call is safe to resend, because a rejection by a record with the write's own nonce means that the write was
        applied. A write that includes a key's item is also rejected if another process has written that item first; in
        this case, the record is read.
        """
        ...

    def add_timer(self, timer: Timer) -> None:
        """Write a timer into the minute of its check; writing it again changes nothing.

        An existing timer with different data is not replaced, because it may belong to a change that was accepted,
        while the change that writes this timer may still be rejected.
        """
        ...

    def add_schedule_timer(self, timer: ScheduleTimer) -> None:
        """Write a schedule's timer into the minute of its check; writing it again changes nothing."""
        ...

    def add_bulk_timer(self, timer: BulkTimer) -> None:
        """Write the timer of a bulk operation into its minute; writing it again changes nothing."""
        ...

    def add_late_timer(self, timer: LateTimer) -> None:
        """Write the timer that checks whether a task is late; writing it again changes nothing."""
        ...

    def is_notified(self, timer: LateTimer) -> bool:
        """Whether the notice of a late timer was sent or the timer was removed, read with strong consistency."""
        ...

    def mark_notified(self, timer: LateTimer) -> None:
        """Mark a late timer's notice as sent, so that later readings ignore the timer.

        A removed timer is not restored.
        """
        ...

    def read_page(self, minute: int, shard: int, after: str, *, consistent: bool) -> MinutePage:
        """The next records and timers in one shard of one minute, with the attributes that the trigger needs.

        Args:
            minute: the minute.
            shard: the shard.
            after: a sort key; empty for the first page.
            consistent: whether to read consistently.
        """
        ...

    def list_ids(self, query: ListQuery) -> list[TaskId]:
        """Ids of an owner's tasks in order of their home times, read with eventual consistency."""
        ...

    def parts_of(self, query: ListQuery) -> Sequence[ListQuery]:
        """The parts of a list.

        `list_ids` reads one page of a part with one request, so parts can be read in parallel.
        """
        ...

    def count_listed(self, owner: str, limit: int) -> int:
        """Count an owner's tasks, or nodes if there are more, in a partition, up to a limit (eventual consistency)."""
        ...


class TaskListStore(Protocol):
    """The lists of owners' tasks by state, type, name, tag and more."""

    def head(self, owner: str) -> ListHead | None:
        """The progress of an owner's lists, read with eventual consistency; `None` if the owner has no lists."""
        ...

    def save_head(self, head: ListHead, nonce: str) -> bool:
        """Store the progress, unless it was changed since it was read. The call is safe to resend.

        Returns:
            Whether the progress is stored.
        """
        ...

    def write(self, writes: ListWrites) -> None:
        """Add and remove postings and entries; repeating the call changes nothing.

        Raises:
            Unavailable: some postings or entries are not written.
        """
        ...

    def postings(
        self, name: ListName, after: TaskId | None, limit: int, *, descending: bool
    ) -> list[tuple[TaskId, TaskId]]:
        """The next postings of a list as (place, task id) pairs, ordered by place, read with eventual consistency.

        Args:
            name: the list.
            after: the place after which to begin; `None` for the start.
            limit: maximum number of postings.
            descending: whether the latest postings come first.

        Returns: The pairs; fewer pairs than the limit are returned only at the end of the list.
        """
        ...

    def entries(self, name: ListName, after: TaskId | None, limit: int, *, descending: bool) -> list[TaskId]:
        """The next entries of a list, in order of ids, read with eventual consistency."""
        ...


class ContentStore(Protocol):
    """The store of payloads and results that are too large for a record."""

    def keep(
        self,
        task_id: TaskId,
        name: str,
        data: bytes,
        expiry: Expiry | None = None,
        inline: int = INLINE_CONTENT_BYTES,
    ) -> Content:
        """Store bytes outside the record if their compressed size requires this; otherwise, only return them.

        Args:
            task_id: the task that the bytes belong to.
            name: name of the content, which becomes `Content.name`. A name is stored again only with the same bytes; an
                existing item then keeps its expiry.
            data: the bytes.
            expiry: when bytes outside the record may be removed; `None` for no expiry.
            inline: maximum compressed size in the record.
        """
        ...

    def fetch(self, task_id: TaskId, content: Content) -> bytes:
        """Read the bytes of the content, wherever they are stored.

        Raises:
            ContentExpired: the bytes have expired.
        """
        ...

    def fetch_or_link(self, task_id: TaskId, content: Content) -> bytes:
        """The bytes of the content, as in `fetch`; for an uploaded payload, a temporary URL for the bytes.

        Raises:
            ContentExpired: the bytes have expired.
        """
        ...

    def expire(self, task_id: TaskId, content: Content, expiry: Expiry) -> bool:
        """Set the expiry of content outside the record, and return whether the content exists."""
        ...

    def retain(self, task_id: TaskId, content: Content, expiry: Expiry | None = None) -> None:
        """Remove the expiry of content outside the record.

        If `expiry` is given, an item's expiry is removed only if it equals `expiry`.
        """
        ...

    def expire_items(self, task_id: TaskId, expiry: Expiry) -> None:
        """Set the expiry of all items outside a record, unless they already have a later expiry."""
        ...

    def erase(self, task_id: TaskId, contents: Sequence[Content]) -> None:
        """Remove these contents and all other items outside a record; some of them may already be removed."""
        ...

    def store_attempt(self, task_id: TaskId, line: AttemptRecord) -> None:
        """Store an attempt record that no longer fits into the task's record; repeating the call changes nothing."""
        ...

    def attempts_outside(self, task_id: TaskId) -> list[Content]:
        """The stored attempt records of a task, as contents."""
        ...

    def attempts_of(self, task_id: TaskId) -> list[AttemptRecord]:
        """The stored attempt records of a task, in any order, including records that were just stored."""
        ...


class UploadStore(Protocol):
    """Payloads that clients have uploaded, which are kept until a task is created with them."""

    def sign(self, upload: Upload, content: UploadedBytes, now: Millis) -> SignedUpload:
        """Sign the request that writes an upload; the signature is valid only for this size and type."""
        ...

    def attach(self, upload: Upload, task_id: TaskId, expiry: Expiry) -> Content | None:
        """Copy an upload to the contents of a task; `None` if there is no such upload."""
        ...

    def remove(self, upload: Upload) -> None:
        """Remove an upload, if it exists."""
        ...


class OccurrenceFinder(Protocol):
    """Finds the tasks of occurrences that other tasks wait for."""

    def find(self, owner: str, ref: OccurrenceRef) -> OccurrenceRun:
        """Find the task of an occurrence with strong consistency.

        Raises:
            Unavailable: a store did not answer.
        """
        ...


class DependentStore(Protocol):
    """The store of which tasks wait for the end of other tasks."""

    def add(self, task_id: TaskId, dependent: TaskId, expires_at: Millis) -> None:
        """Store that `dependent` waits for a task; storing this again extends the entry's life.

        Raises:
            Unavailable: the store did not answer.
        """
        ...

    def page(self, task_id: TaskId, after: TaskId | None, limit: int) -> Sequence[TaskId]:
        """The next tasks that wait for a task, by id, read with strong consistency.

        Args:
            task_id: the task.
            after: the last task of the previous page; `None` for the first page.
            limit: maximum number of tasks.

        Raises:
            Unavailable: the store did not answer.
        """
        ...


class KeyStore(Protocol):
    """Idempotency keys."""

    def remember(self, owner: str, key: str, wanted: RememberedKey, now: Millis) -> RememberedKey:
        """Store the value of an owner's key, unless the key is taken and has not expired.

        Returns: The value that the key now has, which is `wanted` or an earlier value.
        """
        ...

    def redirect(self, redirect: KeyRedirect) -> None:
        """Make a key refer to another task than planned, unless this has already been done."""
        ...

    def find(self, owner: str, key: str, now: Millis) -> RememberedKey | None:
        """The value of an owner's key, read with strong consistency; `None` if the key is not taken, or has expired."""
        ...


class UniqueKeyStore(Protocol):
    """Stores which task last took a unique key; `TaskStore.create` and `TaskStore.apply` take keys."""

    def find(self, owner: str, key: str) -> KeyHolder | None:
        """The task that last took a key (strong consistency); `None` if no task took it or its item was removed."""
        ...

    def let_expire(self, owner: str, key: str, task_id: TaskId, fence: int, expires_at: Millis) -> None:
        """Set the TTL of a key's item, if the item still names the given task, which has ended.

        Args:
            owner: owner of the key.
            key: the key.
            task_id: id of the task.
            fence: fence at which the task ended; if the task took the key again with a later fence, nothing changes.
            expires_at: when the item may be removed.
        """
        ...
