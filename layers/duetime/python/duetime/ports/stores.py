"""Where tasks, their contents, idempotency keys and cursors are kept.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.dispatch import Entry, Wake
    from duetime.domain.ids import TaskId
    from duetime.domain.keys import RememberedKey
    from duetime.domain.shards import Cursors
    from duetime.domain.task import Content, LedgerLine, Task
    from duetime.domain.times import Millis
    from duetime.domain.writes import Write, WriteResult


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which of an owner's tasks to list, and in which order.

    Attributes:
        after: the last id of the page before; the list goes on behind it.
        descending: latest due first.
        failed_only: only tasks that are `failed`.
        limit: ids at the most.
    """

    owner: str
    after: TaskId | None = None
    descending: bool = True
    failed_only: bool = False
    limit: int = 100


class TaskStore(Protocol):
    """The records of tasks and their wakes."""

    def create(self, task: Task) -> bool:
        """Write a new record, unless one of that id exists.

        Safe to resend: if the record exists with this task's own nonce, it was this call that wrote it.

        Returns:
            Whether the record is now this very task.
        """
        ...

    def read(self, task_id: TaskId) -> Task | None:
        """Read one record, consistently; `None` if there is none."""
        ...

    def read_many(self, task_ids: Sequence[TaskId]) -> dict[TaskId, Task]:
        """Read many records, eventually consistently, in any number; those that do not exist are left out."""
        ...

    def apply(self, write: Write) -> WriteResult:
        """Make one conditional write, in one request, with no read before or after it.

        Safe to resend: a refusal by a record that bears the write's own nonce is an application.
        """
        ...

    def add_wake(self, wake: Wake) -> None:
        """Write a wake into the minute of its look; writing it twice is writing it once."""
        ...

    def read_minute(self, minute: int, shard: int, *, consistent: bool) -> Iterator[Entry | Wake]:
        """All that the trigger needs of the records and wakes in one shard of one minute."""
        ...

    def list_ids(self, query: ListQuery) -> list[TaskId]:
        """Ids of an owner's tasks in order of their home times, eventually consistently."""
        ...


class ContentStore(Protocol):
    """Payloads and results too large for a record."""

    def keep(self, task_id: TaskId, name: str, data: bytes) -> Content:
        """Keep bytes where their compressed size says; what belongs in the record is only handed back.

        Args:
            task_id: the task they belong to.
            name: what they are called; becomes `Content.name`. Keeping the same name twice is keeping it once.
            data: the bytes.
        """
        ...

    def fetch(self, task_id: TaskId, content: Content) -> bytes:
        """The bytes of a content, wherever they lie."""
        ...

    def expire(self, task_id: TaskId, content: Content, at: Millis) -> None:
        """Let what lies outside the record be removed after `at`, together with the record."""
        ...

    def keep_line(self, task_id: TaskId, line: LedgerLine, expires_at: Millis) -> None:
        """Keep a ledger line that the record has no more room for; keeping it twice is keeping it once."""
        ...

    def lines_of(self, task_id: TaskId) -> list[LedgerLine]:
        """The ledger lines of a task that were kept, in no order; what has just been kept is among them."""
        ...


class KeyStore(Protocol):
    """Idempotency keys."""

    def remember(self, owner: str, key: str, wanted: RememberedKey, now: Millis) -> RememberedKey:
        """Keep what an owner's key stands for, unless the key is taken and not expired.

        Returns:
            What the key stands for now: `wanted`, or what was kept under it before.
        """
        ...


class CursorStore(Protocol):
    """How far each group of shards has been read, and by whom it is being read."""

    def take(self, group: int, holder: str, now: Millis, until: Millis, first: Cursors) -> Cursors | None:
        """Take a group for reading until the given instant, if nobody else holds it.

        Args:
            group: number of the group.
            holder: who takes it; unique to an invocation.
            now: the time by the taker's clock.
            until: when the hold ends by itself.
            first: the cursors of a group that has none yet.

        Returns:
            Its cursors, at a new epoch; `None` if somebody else holds it.
        """
        ...

    def advance(self, group: int, cursors: Cursors, until: Millis) -> bool:
        """Move a group's cursors forward and keep the hold until `until` (in the past: let it go).

        Returns:
            Whether they were moved: not if the epoch is no longer the group's.
        """
        ...
