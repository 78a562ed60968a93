"""What can go wrong with the embedded AWS."""

from __future__ import annotations


class EmulatorNotInstalled(RuntimeError):
    """The emulator's own virtual environment is missing."""

    def __init__(self) -> None:
        super().__init__("the embedded AWS is not installed: run `make setup`")


class EmulatorFailed(RuntimeError):
    """The emulator ended, or did not answer in time."""

    def __init__(self, what: str, last_lines: str) -> None:
        super().__init__(f"the embedded AWS {what}\n{last_lines}".rstrip())
