"""Payloads and results outside the record, in memory."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from duetime.adapters.compression import deflated
from duetime.adapters.contents import ContentLost
from duetime.domain.task import Content, ContentPlace

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.task import LedgerLine
    from duetime.domain.times import Millis


class MemoryContentStore:
    """`duetime.ports.stores.ContentStore` in memory.

    Attributes:
        expiries: when which content may be removed, by task and name; nothing is ever removed.
        lines: the ledger lines kept, by task and fence.
    """

    def __init__(self) -> None:
        self.expiries: dict[tuple[TaskId, str], Millis] = {}
        self.lines: dict[tuple[TaskId, int], LedgerLine] = {}
        self._kept: dict[tuple[TaskId, str], bytes] = {}
        self._lock = Lock()

    def keep(self, task_id: TaskId, name: str, data: bytes) -> Content:
        """Keep bytes where their compressed size says; what belongs in the record is only handed back."""
        place = ContentPlace.for_size(min(len(data), len(deflated(data))))
        if place is ContentPlace.RECORD:
            return Content(place, name, data)
        with self._lock:
            self._kept[task_id, name] = data
            self.expiries.pop((task_id, name), None)
        return Content(place, name)

    def fetch(self, task_id: TaskId, content: Content) -> bytes:
        """The bytes of a content, wherever they lie.

        Raises:
            ContentLost: they are not there.
        """
        if content.data is not None:
            return content.data
        with self._lock:
            if (task_id, content.name) not in self._kept:
                raise ContentLost(task_id, content.name)
            return self._kept[task_id, content.name]

    def expire(self, task_id: TaskId, content: Content, at: Millis) -> None:
        """Let what lies outside the record be removed after `at`, together with the record."""
        with self._lock:
            if content.is_outside and (task_id, content.name) in self._kept:
                self.expiries[task_id, content.name] = at

    def keep_line(self, task_id: TaskId, line: LedgerLine, expires_at: Millis) -> None:
        """Keep a ledger line that the record has no more room for; keeping it twice is keeping it once."""
        with self._lock:
            self.lines[task_id, line.fence] = line
            self.expiries[task_id, f"line#{line.fence}"] = expires_at

    def lines_of(self, task_id: TaskId) -> list[LedgerLine]:
        """The ledger lines of a task that were kept, in no order; what has just been kept is among them."""
        with self._lock:
            return [line for (owner, _), line in self.lines.items() if owner == task_id]
