"""In-memory stores whose calls can be made to fail, or to be somebody's last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.memory.payload_store import MemoryContentStore
from duetime.adapters.memory.queues import MemoryQueues
from duetime.adapters.memory.tasks import MemoryTaskStore
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.conditional_writes import Write, WriteResult
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.content import Content
    from duetime.domain.tasks.payload_expiry import Expiry
    from duetime.domain.tasks.task import Task
    from duetime.ports.queues import Outgoing
    from duetime.ports.tasks import MinutePage


class FaultyTaskStore(MemoryTaskStore):
    """Tasks in memory; `before_write` may raise, or crash the process, before a conditional write is made.

    Attributes:
        creatable: whether new records can be written.
        readable: whether minutes can be read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.creatable = True
        self.readable = True
        self.before_write: Callable[[Write], None] = lambda _write: None

    def create(self, task: Task) -> bool:
        """Write a new record, unless that is not possible just now."""
        if not self.creatable:
            raise Unavailable("away")
        return super().create(task)

    def read_page(self, minute: int, shard: int, after: str, *, consistent: bool) -> MinutePage:
        """Read a page of a shard of a minute, unless that is not possible just now."""
        if not self.readable:
            raise Unavailable("throttled")
        return super().read_page(minute, shard, after, consistent=consistent)

    def apply(self, write: Write) -> WriteResult:
        """Make one conditional write, unless a fault comes first."""
        self.before_write(write)
        return super().apply(write)


class FaultyContentStore(MemoryContentStore):
    """Contents in memory; `before_expiry` may raise, or crash the process, before a content is let expire."""

    def __init__(self) -> None:
        super().__init__()
        self.before_expiry: Callable[[], None] = lambda: None

    def expire(self, task_id: TaskId, content: Content, expiry: Expiry) -> bool:
        """Let a content be removed, unless a fault comes first."""
        self.before_expiry()
        return super().expire(task_id, content, expiry)

    def expire_items(self, task_id: TaskId, expiry: Expiry) -> None:
        """Let all items of a task be removed, unless a fault comes first."""
        self.before_expiry()
        super().expire_items(task_id, expiry)


class FaultyQueues(MemoryQueues):
    """Queues in memory; while `refuses` says so, no message is acknowledged."""

    refuses: Callable[[], bool] = staticmethod(lambda: False)

    def send(self, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        """Send messages, unless the queue refuses."""
        return list(outgoing) if self.refuses() else super().send(outgoing)
