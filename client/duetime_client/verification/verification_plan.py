"""The size of a verification, and its estimated cost."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

PROBE = "duetime.probe"
"""The built-in task type that every deployment can run."""
LEAD_SECONDS = 5.0
"""Seconds between the creation of tasks and their due times, which is enough time to create all tasks."""
TRIGGER_LEAD_SECONDS = 300.0
"""A task that is due at least this many seconds ahead is dispatched by the trigger, not by the API."""
_DOLLARS_PER_TASK = 5e-5
"""Cost of a task that is alone in its batch: six write units, six SQS requests, four invocations, 2.5 GB-seconds."""
_DOLLARS_PER_REQUEST = 2.5e-6
"""The cost of a request to the HTTP API, including 100 ms of the API function."""
_DOLLARS_PER_TOPOLOGY = 5e-4
"""The cost of the verification's topology: a dozen state transitions and twenty write units."""
_END_SECONDS = 20
"""Seconds needed to read every task once more at the end."""
_REQUESTS_PER_TASK = 5
"""Requests for each task: one to create the task, two to read it, and two to read the task and its attempts at the
end."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The longest allowed times between a task's due time and its start, in milliseconds."""

    p50_ms: float = 250.0
    p99_ms: float = 1_000.0
    most_ms: float = 10_000.0

    @classmethod
    def of(cls, most_ms: float | None) -> Limits:
        """Return the guaranteed limits; `most_ms` replaces all three limits if given."""
        return cls() if most_ms is None else cls(most_ms, most_ms, most_ms)


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of tasks of each kind.

    Attributes:
        tasks: number of tasks due one after another over `seconds`.
        late_tasks: number of tasks due far enough ahead that the trigger sends them; 0 to skip.
        occurrences: number of occurrences of a schedule that runs every `period_seconds`.
        cancelled: number of tasks that are cancelled.
        locked: number of tasks that need the same lock.
        pulled: number of tasks that this machine leases.
        pulled_type: a pulled type that no other worker leases during the verification; empty to skip.
        http_url: an endpoint that responds with 2xx; empty to skip.
        patience_seconds: seconds after its due time when a task that has not ended counts as lost.
    """

    tasks: int = 100
    seconds: float = 60.0
    late_tasks: int = 20
    occurrences: int = 10
    period_seconds: int = 5
    cancelled: int = 6
    locked: int = 4
    pulled: int = 5
    pulled_type: str = ""
    http_url: str = ""
    patience_seconds: float = 210.0
    limits: Limits = Limits()

    @property
    def total(self) -> int:
        """The number of tasks that the verification creates, including a topology and its nodes."""
        pulled, http = self.pulled * bool(self.pulled_type), bool(self.http_url)
        return self.tasks + self.late_tasks + self.occurrences + self.cancelled + self.locked + pulled + http + 8

    @property
    def dollars(self) -> float:
        """Estimated cost at AWS's public list prices, without free tiers, rounded up to a cent."""
        each = _DOLLARS_PER_TASK + _REQUESTS_PER_TASK * _DOLLARS_PER_REQUEST
        return ceil(100 * (self.total * each + _DOLLARS_PER_TOPOLOGY)) / 100

    @property
    def minutes(self) -> int:
        """Estimated duration of the verification if nothing goes wrong, in minutes."""
        last = (TRIGGER_LEAD_SECONDS if self.late_tasks else LEAD_SECONDS) + self.seconds
        return ceil((last + _END_SECONDS) / 60)
