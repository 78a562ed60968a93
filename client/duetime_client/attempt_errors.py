"""Errors for the handlers of pull workers."""

from __future__ import annotations


class LeaseLost(Exception):
    """The lease could not be renewed in time, or was rejected, so another worker may have the task.

    Do not catch this error.
    """


class AttemptPaused(Exception):
    """Raised by `Context.stop_if_requested` when a pause was requested. Do not catch this error."""

    def __init__(self, checkpoint: object = None) -> None:
        super().__init__("a pause was requested")
        self.checkpoint = checkpoint


class AttemptCancelled(Exception):
    """Raised by `Context.stop_if_requested` when a cancellation was requested. Do not catch this error."""


class Unavailable(Exception):
    """A step's result or a checkpoint could not be stored because the API did not respond. The task is retried."""


class StepInvalid(ValueError):
    """A step was called incorrectly, or its result cannot be stored. The task fails, because a retry would not help."""


class CheckpointInvalid(ValueError):
    """A checkpoint cannot be stored. The task fails, because a retry would not help."""
