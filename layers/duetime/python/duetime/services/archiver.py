"""Copies the records that TTL removes from the table to the archive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.archive_objects import objects_of
from duetime.domain.errors import ContentExpired
from duetime.domain.tasks.task import ContentPlace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.archive_objects import ArchiveObject, RemovedBatch
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Content, Task
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.change_consumers import ArchiveEncoder, ArchiveStore
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import ContentStore


class TaskArchiver:
    """Writes removed tasks to the archive, each with the contents stored outside its record.

    Args:
        store: the archive.
        encoder: encodes the archive's lines.
        contents: payloads, results and attempts stored outside the records; they expire some days after the records.
        runtime: reads contents in parallel, and counts archived tasks.
        policy: how long the archive keeps tasks.
    """

    def __init__(
        self,
        store: ArchiveStore,
        encoder: ArchiveEncoder,
        contents: ContentStore,
        runtime: Runtime,
        policy: RetentionPolicy,
    ) -> None:
        self._policy = policy
        self._store = store
        self._encoder = encoder
        self._contents = contents
        self._runtime = runtime

    def archive(self, batch: RemovedBatch) -> None:
        """Write a batch.

        Raises:
            Unavailable: a store failed; the batch must be delivered again.
        """
        for record in batch.unreadable:
            self._store.put(record.key, [record.text])
        for each in objects_of(batch.tasks, self._policy):
            self._write(each)
        self._runtime.telemetry.count("removed_records_unreadable", len(batch.unreadable))

    def _write(self, wanted: ArchiveObject) -> None:
        self._store.put(wanted.key, self._runtime.executor.map(self._line, wanted.tasks))
        self._runtime.telemetry.count("tasks_archived", len(wanted.tasks))

    def _line(self, task: Task) -> str:
        result = None if task.result is None else self._found(task.id, task.result)
        complete = replace(task, payload=self._found(task.id, task.payload), result=result)
        older = self._older_attempts(task)
        try:
            return self._encoder.line(complete, older)
        except ValueError as error:
            telemetry = self._runtime.telemetry
            telemetry.count("removed_records_unreadable")
            telemetry.note("a task is archived without its contents", task_id=task.id.text, error=repr(error))
            return self._encoder.line(_without_contents(task), older)

    def _found(self, task_id: TaskId, content: Content) -> Content:
        """Return content with its bytes, or without bytes if the content has expired or is in S3 due to its size."""
        if content.place is not ContentPlace.ITEM or content.data is not None:
            return content
        try:
            return replace(content, data=self._contents.fetch(task_id, content))
        except ContentExpired:
            return content

    def _older_attempts(self, task: Task) -> Sequence[AttemptRecord]:
        return self._contents.attempts_of(task.id) if task.may_have_attempts_outside else ()


def _without_contents(task: Task) -> Task:
    """A copy of a task without the bytes of its payload and result, as if both had expired."""
    result = None if task.result is None else replace(task.result, data=None)
    return replace(task, payload=replace(task.payload, data=None), result=result)
