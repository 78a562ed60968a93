"""Errors of the embedded AWS."""

from __future__ import annotations


class EmulatorNotInstalled(RuntimeError):
    """The emulator's virtual environment is missing."""

    def __init__(self) -> None:
        super().__init__("the embedded AWS is not installed: run `make setup`")


class EmulatorFailed(RuntimeError):
    """The emulator could not be installed or started, ended unexpectedly, or did not respond in time."""

    def __init__(self, what: str, last_lines: str) -> None:
        super().__init__(f"the embedded AWS {what}\n{last_lines}".rstrip())
