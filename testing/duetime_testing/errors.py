"""Errors of the test kit."""

from __future__ import annotations


class NotIdle(AssertionError):
    """A task is still active after the longest time that `run_until_idle` waits."""


class NotJson(AssertionError):
    """A payload or a result does not survive JSON."""


class NeedsVirtualTime(RuntimeError):
    """This needs virtual time, which a deployed stack does not have."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs virtual time: this test cannot run against a deployed stack")
