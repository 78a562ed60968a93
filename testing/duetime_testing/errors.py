"""What a test is told when it asks for something that cannot be."""

from __future__ import annotations


class NotIdle(AssertionError):
    """Something still goes on after the longest time that `run_until_idle` waits."""


class NotJson(AssertionError):
    """A payload or a result does not survive JSON."""


class NeedsVirtualTime(RuntimeError):
    """A deployed stack cannot do this: only virtual time can."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs virtual time: this test cannot run against a deployed stack")
