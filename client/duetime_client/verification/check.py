"""The interface of a check, which creates tasks, observes them and reports findings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.verification.findings import Finding
    from duetime_client.verification.session import Session


class Check(ABC):
    """One check of a verification.

    Attributes:
        name: label of the check's progress bar, and group of its tasks.
    """

    name: str

    @abstractmethod
    def start(self, session: Session) -> None:
        """Create the tasks of the check."""

    def observe(self, session: Session) -> None:  # noqa: B027 - most have nothing to do
        """Observe the tasks while they run, or act on them; called about once a second."""

    @abstractmethod
    def findings(self, session: Session) -> Sequence[Finding]:
        """Return the findings; called after all tasks have ended."""


def at(moment_ms: int) -> datetime:
    """Convert milliseconds since 1970 to a time in UTC."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC)
