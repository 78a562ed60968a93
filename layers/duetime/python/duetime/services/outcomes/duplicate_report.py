"""Whether a repeated report of an end equals the stored outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.attempt_results import Ending, Failed, Stopped, Succeeded, Yielded

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Content, Task
    from duetime.ports.tasks import ContentStore


def says_the_same(contents: ContentStore, task: Task, ending: Ending) -> bool:
    """Whether the last attempt in a task's attempt history ended in the same way."""
    outcome = task.attempt_history[-1].outcome if task.attempt_history else None
    match ending:
        case Succeeded(result):
            return outcome is AttemptOutcome.SUCCEEDED and _bytes(contents, task, task.result) == result
        case Failed(error):
            return outcome in {AttemptOutcome.RETRIED, AttemptOutcome.FAILED} and task.error == error
        case Yielded(checkpoint):
            kept = _bytes(contents, task, task.checkpoint)
            # A cancellation requested before the pause was recorded has prevailed.
            is_paused = outcome is AttemptOutcome.PAUSED and checkpoint in (None, kept)
            return is_paused or outcome is AttemptOutcome.CANCELLED
        case Stopped():
            return outcome is AttemptOutcome.CANCELLED
        case _:
            return False


def _bytes(contents: ContentStore, task: Task, content: Content | None) -> bytes | None:
    if content is None:
        return None
    return contents.fetch(task.id, content) if content.data is None else content.data
