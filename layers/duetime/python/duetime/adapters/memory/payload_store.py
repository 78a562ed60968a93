"""Payloads and results outside the record, in memory."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from duetime.adapters.compression import deflated
from duetime.domain.errors import ContentExpired
from duetime.domain.tasks.content import Content, ContentPlace

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.payload_expiry import Expiry
    from duetime.domain.times import Millis


class MemoryContentStore:
    """`duetime.ports.tasks.ContentStore` in memory.

    Attributes:
        expiries: when which content may be removed, by task and name; nothing is ever removed.
        lines: the attempt records kept, by task and fence.
    """

    def __init__(self) -> None:
        self.expiries: dict[tuple[TaskId, str], Millis] = {}
        self.lines: dict[tuple[TaskId, int], AttemptRecord] = {}
        self._kept: dict[tuple[TaskId, str], bytes] = {}
        self._lock = Lock()

    def keep(self, task_id: TaskId, name: str, data: bytes, expiry: Expiry | None = None) -> Content:
        """Keep bytes where their compressed size says; what belongs in the record is only handed back."""
        place = ContentPlace.for_size(min(len(data), len(deflated(data))))
        if place is ContentPlace.RECORD:
            return Content(place, name, data)
        with self._lock:
            if (task_id, name) not in self._kept:
                self._kept[task_id, name] = data
                if expiry is not None:
                    self.expiries[task_id, name] = expiry.at
        return Content(place, name)

    def fetch(self, task_id: TaskId, content: Content) -> bytes:
        """The bytes of a content, wherever they lie.

        Raises:
            ContentExpired: they are not there.
        """
        if content.data is not None:
            return content.data
        with self._lock:
            if (task_id, content.name) not in self._kept:
                raise ContentExpired(task_id, content.name)
            return self._kept[task_id, content.name]

    def expire(self, task_id: TaskId, content: Content, expiry: Expiry) -> bool:
        """Let what lies outside the record be removed after an instant; says whether it is there."""
        with self._lock:
            is_there = not content.is_outside or (task_id, content.name) in self._names()
            if content.is_outside and is_there:
                self.expiries[task_id, content.name] = expiry.at
            return is_there

    def retain(self, task_id: TaskId, content: Content, expiry: Expiry | None = None) -> None:
        """Take the expiry of what lies outside the record away, if it is this one."""
        with self._lock:
            if expiry is None or self.expiries.get((task_id, content.name)) == expiry.at:
                self.expiries.pop((task_id, content.name), None)

    def expire_items(self, task_id: TaskId, expiry: Expiry) -> None:
        """Let all items beside a record be removed after an instant; those that expire later already stay so."""
        with self._lock:
            for owner, name in self._names():
                if owner == task_id and self.expiries.get((owner, name), 0) < expiry.at:
                    self.expiries[owner, name] = expiry.at

    def store_attempt(self, task_id: TaskId, line: AttemptRecord) -> None:
        """Keep an attempt record that the record has no more room for; keeping it twice is keeping it once."""
        with self._lock:
            self.lines[task_id, line.fence] = line

    def attempts_outside(self, task_id: TaskId) -> list[Content]:
        """The attempt records of a task that were kept, as the items that they are."""
        with self._lock:
            return [Content(ContentPlace.ITEM, _line(fence)) for owner, fence in self.lines if owner == task_id]

    def attempts_of(self, task_id: TaskId) -> list[AttemptRecord]:
        """The attempt records of a task that were kept, in no order; what has just been kept is among them."""
        with self._lock:
            return [line for (owner, _), line in self.lines.items() if owner == task_id]

    def _names(self) -> set[tuple[TaskId, str]]:
        return {*self._kept, *((owner, _line(fence)) for owner, fence in self.lines)}


def _line(fence: int) -> str:
    return f"line#{fence}"
