"""Defines the errors that handlers raise or receive."""

from __future__ import annotations


class Unretriable(Exception):
    """Raise this error to fail the task at once if a retry would not help."""


class PayloadInvalid(Unretriable, ValueError):
    """The payload does not match the handler's `payload`. A retry would not help."""


class HandlerTimeout(Exception):
    """A coroutine was cancelled because it did not end in time."""


class HandlerIncomplete(TypeError):
    """A handler class lacks the required phase `run`."""

    def __init__(self, task_type: str) -> None:
        super().__init__(f"the handler of the task type {task_type!r} has no method `run`")


class TaskTypeMissing(TypeError):
    """A handler was decorated without a task type.

    The function's name is not the default type, because renaming the function would leave waiting tasks without a
    handler.
    """

    def __init__(self, decorated: object) -> None:
        name = getattr(decorated, "__name__", None) or "report"
        super().__init__(f'@handler needs the type of the tasks: write @handler("{name}")')


class ClientMissing(RuntimeError):
    """A handler uses `context.client` in a test whose context has no client."""

    def __init__(self) -> None:
        super().__init__("this context has no client: create it with Context.for_test(client=...)")


class OptionInvalid(TypeError, ValueError):
    """A default option in a handler's decorator is unknown or has a wrong value."""

    def __init__(self, task_type: str, reasons: str) -> None:
        super().__init__(f"@handler({task_type!r}): {reasons}")


class AttemptPaused(Exception):
    """`Context.stop_if_requested` raises this if the user requested a pause."""

    def __init__(self, checkpoint: object = None) -> None:
        super().__init__("the user asked for a pause")
        self.checkpoint = checkpoint


class AttemptCancelled(Exception):
    """`Context.stop_if_requested` raises this if the user requested a cancellation."""


class LeaseLost(Exception):
    """`Context.step` and `Context.save_checkpoint` raise this if another worker may have the task.

    Do not catch this error.
    """

    def __init__(self) -> None:
        super().__init__("the attempt has lost its lease: another worker may have the task")


class StepInvalid(Unretriable, ValueError):
    """A call of a step is invalid, or its result cannot be stored. A retry would not help."""


class CheckpointInvalid(Unretriable, ValueError):
    """A checkpoint cannot be stored. A retry would not help."""
