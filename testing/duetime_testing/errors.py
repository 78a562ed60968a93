"""Errors of the test kit."""

from __future__ import annotations


class NotIdle(AssertionError):
    """A task has not ended within the longest time that `run_until_idle` waits."""


class NotJson(AssertionError):
    """A payload or a result is not JSON, or changes when it is converted to JSON and back."""


class NeedsVirtualTime(RuntimeError):
    """The operation requires virtual time, which a deployed stack does not have."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs virtual time: this test cannot run against a deployed stack")
