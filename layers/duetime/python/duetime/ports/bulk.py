"""The store of bulk operations, and the starter of their executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetime.domain.bulk.filter_action import BulkRequest, FilterAction, FilterResult
    from duetime.domain.bulk.operation import BulkKind, BulkOperation, BulkProgress, Latest
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.times import Millis


class BulkStore(Protocol):
    """Bulk operations. Every method may raise `duetime.domain.errors.Unavailable`."""

    def read(self, operation_id: TaskId) -> BulkOperation | None:
        """Read one, consistently; `None` if there is none."""
        ...

    def save(self, operation: BulkOperation, nonce: str) -> bool:
        """Store one, if it is still at the version that was read. Safe to resend.

        Returns:
            Whether it is stored, at the next version.
        """
        ...

    def list(self, owner: str, limit: int) -> list[BulkOperation]:
        """The latest of an owner's operations, newest first, eventually consistently."""
        ...

    def latest_of(self, topology: TaskId) -> Latest:
        """Which operation was started last on a topology, read consistently."""
        ...

    def set_latest(self, latest: Latest, nonce: str, expires_at: Millis) -> bool:
        """Note which operation is started on a topology, if nobody else's was since that was read. Safe to resend.

        Returns:
            Whether it is stored.
        """
        ...


class BulkStarter(Protocol):
    """Whoever carries operations out."""

    def start(self, operation_id: TaskId) -> None:
        """Have an operation run now, without waiting for it. Its timer stands in for a start that is lost."""
        ...


class BulkSteps(Protocol):
    """Does the steps of one kind of bulk operations. Two may be at one for a moment: a step may be done twice."""

    def step(self, operation: BulkOperation, until: Millis) -> BulkProgress:
        """Do as much of an operation as fits before an instant, and tell how far it is then.

        Raises:
            Replaced: another request has replaced it.
            RequestError: it cannot be run.
            Unavailable: the step is to be done again.
        """
        ...


class ScheduleActions(Protocol):
    """Pauses and resumes schedules by a filter."""

    def apply(self, owner: str, kind: BulkKind, action: FilterAction, by: Attribution) -> FilterResult:
        """Do a piece; doing it again does no harm.

        Raises:
            Unavailable: the store did not answer, and nothing was done yet.
        """
        ...


class BulkRequestReader(Protocol):
    """Makes requests of their stored bodies."""

    def __call__(self, kind: BulkKind, text: bytes) -> BulkRequest:
        """The request of a body that was accepted."""
        ...
