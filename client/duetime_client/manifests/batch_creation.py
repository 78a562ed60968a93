"""Creates the tasks of a file in batches, so that a second call with the same key creates only the missing tasks."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING, Any, cast

from duetime_client.errors import ApiError, ClientError, InvalidField
from duetime_common.limits import MAX_BATCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from duetime_client.client import Client
    from duetime_client.manifests.task_lines import TaskLine
    from duetime_client.task_request_fields import NewTask

AT_ONCE = 4
"""The maximum number of concurrent requests."""
_IN_BATCH = re.compile(r"^tasks(?:\[\d+\]|\.\d+)\.?")
"""The prefix of a field's path with the task's position in its batch; removed because the line number is clearer."""


@dataclass(frozen=True, slots=True)
class LineResult:
    """The result for a line: a task, an API error or the line's own fault; none of these if the line was not sent."""

    line: TaskLine
    task_id: str | None = None
    error: ClientError | None = None

    @property
    def reasons(self) -> Sequence[InvalidField]:
        """The reasons why the line was rejected, by field."""
        if self.line.fault:
            return [InvalidField("", self.line.fault)]
        if isinstance(self.error, ApiError) and self.error.problem.errors:
            return [replace(each, field=_IN_BATCH.sub("", each.field)) for each in self.error.problem.errors]
        return [] if self.error is None else [InvalidField("", str(self.error))]

    @property
    def is_tried(self) -> bool:
        """Whether the outcome of the line is known."""
        return self.task_id is not None or bool(self.reasons)


def create_lines(client: Client, lines: Iterable[TaskLine], key: str) -> Iterator[LineResult]:
    """Create the tasks, a few batches at a time; results are yielded in the order of the lines.

    A task's idempotency key consists of `key` and its position in the file. A repeated call creates tasks for corrected
    lines, skips lines whose tasks exist, and rejects lines that have changed since their tasks were created. After a
    batch that fails as a whole, no more batches are sent; a batch that is too large is split instead.
    """
    failed = Event()
    remaining = iter(lines)
    position = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while group := list(islice(remaining, MAX_BATCH * AT_ONCE)):
            starts = range(0, len(group), MAX_BATCH)
            batches = [(position + start, group[start : start + MAX_BATCH]) for start in starts]
            # A single batch does not need a thread.
            carried_out = pool.map if len(batches) > 1 else map
            for results in carried_out(lambda batch: _created(client, batch[0], batch[1], key, failed), batches):
                yield from results
            position += len(group)


def _created(client: Client, position: int, lines: Sequence[TaskLine], key: str, failed: Event) -> Sequence[LineResult]:
    """Create one batch and return its results; a batch without valid lines is not sent."""
    if failed.is_set() or all(line.fault for line in lines):
        return [LineResult(line) for line in lines]
    # An empty object replaces an invalid line, so other tasks keep their positions, which are part of their keys.
    tasks: list[Any] = [{} if line.fault else line.fields for line in lines]
    try:
        answers = client.tasks.create_batch(cast("list[NewTask]", tasks), idempotency_key=f"{key}.{position}")
    except ClientError as error:
        if _is_too_large(error) and len(lines) > 1:
            half = len(lines) // 2
            first = _created(client, position, lines[:half], key, failed)
            return [*first, *_created(client, position + half, lines[half:], key, failed)]
        if not _is_too_large(error):
            failed.set()
        return [LineResult(line, error=error) for line in lines]
    return [
        LineResult(line, error=answer) if isinstance(answer, ApiError) else LineResult(line, answer.id)
        for line, answer in zip(lines, answers, strict=True)
    ]


def _is_too_large(error: ClientError) -> bool:
    return isinstance(error, ApiError) and error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
