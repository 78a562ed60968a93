"""What handlers raise, and what is raised at them."""

from __future__ import annotations


class Unretriable(Exception):
    """Raise it to fail the task at once: no further attempt would help."""


class PayloadInvalid(Unretriable, ValueError):
    """The payload is not what the handler's `payload` says. No attempt would change that."""


class HandlerTimeout(Exception):
    """A coroutine was cancelled, because it did not end in time."""


class HandlerIncomplete(TypeError):
    """A handler class does not do the one phase that it must."""

    def __init__(self, task_type: str) -> None:
        super().__init__(f"the handler of the task type {task_type!r} has no method `run`")


class TaskTypeMissing(TypeError):
    """A handler was decorated without the type of its tasks.

    The name of the function is not taken for it: tasks that wait would lose their handler when somebody renames it.
    """

    def __init__(self, decorated: object) -> None:
        name = getattr(decorated, "__name__", None) or "report"
        super().__init__(f'@handler needs the type of the tasks: write @handler("{name}")')


class AttemptPaused(Exception):
    """Raised by `Context.stop_if_requested` when the user asked for a pause."""

    def __init__(self, checkpoint: object = None) -> None:
        super().__init__("the user asked for a pause")
        self.checkpoint = checkpoint


class AttemptCancelled(Exception):
    """Raised by `Context.stop_if_requested` when the user asked for a cancel."""
