"""Checks of individual tasks: start on time, cancellation, retries, locks, HTTP calls and idempotent creation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime_client.errors import ApiError
from duetime_client.verification import findings as assertions
from duetime_client.verification.check import Check, at
from duetime_client.verification.session import millis
from duetime_client.verification.verification_plan import LEAD_SECONDS, PROBE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.task_request_fields import (
        HttpTarget,
        NewTask,
        TaskFields,
    )
    from duetime_client.verification.findings import Finding
    from duetime_client.verification.session import Session
    from duetime_client.verification.verification_plan import Plan
    from duetime_common.option_fields import LockSpec, RetryPolicy

_CONCURRENT_REQUESTS = 5


@dataclass
class DelayedTasks(Check):
    """Tasks that are due one after another; the first task is due after `lead` seconds."""

    name: str
    guarantee: str
    plan: Plan
    count: int
    lead: float

    def start(self, session: Session) -> None:
        """Create the tasks in batches."""
        first, step = session.now_ms() + round(self.lead * 1000), self.plan.seconds * 1000 / max(1, self.count)
        session.create(
            self.name,
            [session.probe(self.name, due_at=at(first + round(number * step))) for number in range(self.count)],
        )

    def findings(self, session: Session) -> Sequence[Finding]:
        """Report how late the tasks started."""
        return [assertions.on_time(self.guarantee, session.executions(self.name), self.plan.limits)]


@dataclass
class CancelledTasks(Check):
    """Tasks that are cancelled before they are due."""

    plan: Plan
    name: str = "cancelled"

    def start(self, session: Session) -> None:
        """Create the tasks and cancel them."""
        due = at(session.now_ms() + round(LEAD_SECONDS * 1000))
        tasks = [session.probe(self.name, due_at=due) for _ in range(self.plan.cancelled)]
        for task in session.create(self.name, tasks, "cancelled", 0):
            session.client.tasks.cancel(task.id)

    def findings(self, session: Session) -> Sequence[Finding]:
        """Report whether any cancelled task ran."""
        return [assertions.cancelled(session.executions(self.name))]


@dataclass
class RetriedTasks(Check):
    """Tasks whose first attempts fail."""

    name: str = "retried"

    def start(self, session: Session) -> None:
        """Create a task that fails once and a task that fails twice."""
        for fails in (1, 2):
            policy: RetryPolicy = {"max_attempts": fails + 2, "initial_seconds": 1.0, "multiplier": 1.0}
            task = session.probe(self.name, payload={"fail_times": fails}, retry=policy)
            session.create(self.name, [task], attempts=fails + 1)

    def findings(self, session: Session) -> Sequence[Finding]:
        """Report whether the tasks succeeded after the expected number of attempts."""
        return [assertions.retried(session.executions(self.name))]


@dataclass
class LockedTasks(Check):
    """Tasks that are due at the same time and need the same lock."""

    plan: Plan
    name: str = "locked"

    def start(self, session: Session) -> None:
        """Create the tasks."""
        due = at(session.now_ms() + round(LEAD_SECONDS * 1000))
        lock: LockSpec = {"key": f"verify-{session.run_id}"}
        payload = {"seconds": 0.3}
        tasks: list[NewTask] = [
            session.probe(self.name, payload=payload, due_at=due, lock=lock) for _ in range(self.plan.locked)
        ]
        session.create(self.name, tasks)

    def findings(self, session: Session) -> Sequence[Finding]:
        """Report whether any two of the tasks ran at the same time."""
        return [assertions.exclusive(session.executions(self.name))]


@dataclass
class HttpCall(Check):
    """A task that calls an HTTP endpoint."""

    plan: Plan
    name: str = "http"

    def start(self, session: Session) -> None:
        """Create the task if an endpoint is given."""
        if self.plan.http_url:
            target: HttpTarget = {"kind": "http", "url": self.plan.http_url}
            session.create(self.name, [session.probe(self.name, target=target)])

    def findings(self, session: Session) -> Sequence[Finding]:
        """Report whether the endpoint responded."""
        guarantee = "an HTTP endpoint is called"
        if not self.plan.http_url:
            return [assertions.unmeasured(guarantee, "needs an endpoint (--http-url)")]
        executions = session.executions(self.name)
        wrong = [each.task_id for each in executions if each.state != "succeeded"]
        return [assertions.judged(guarantee, wrong, len(executions), "without success")]


@dataclass
class IdempotentCreation(Check):
    """A task that is created by several requests with the same idempotency key."""

    name: str = "idempotent"
    _ids: list[str] = field(default_factory=list)
    _status: int = 0

    def start(self, session: Session) -> None:
        """Send the same request several times concurrently, and then a different body with the same key."""
        key, fields = f"verify-{session.run_id}", session.probe(self.name, payload={"note": 1})
        other = session.probe(self.name, payload={"note": 2})
        create = session.client.tasks.create

        def create_one(_: int) -> str:
            made = create(PROBE, idempotency_key=key, **_without_type(fields))
            session.follow(made.id, millis(made.due_at), self.name)
            return made.id

        with ThreadPoolExecutor(_CONCURRENT_REQUESTS) as threads:
            self._ids = list(threads.map(create_one, range(_CONCURRENT_REQUESTS)))
        try:
            made = create(PROBE, idempotency_key=key, **_without_type(other))
        except ApiError as error:
            self._status = error.status
        else:
            session.follow(made.id, millis(made.due_at), self.name)
            self._status = 201

    def findings(self, session: Session) -> Sequence[Finding]:  # noqa: ARG002 - of every check
        """Report whether exactly one task was created."""
        return [assertions.idempotent(self._ids, self._status)]


def _without_type(task: NewTask) -> TaskFields:
    return {name: value for name, value in task.items() if name != "type"}  # type: ignore[return-value]  # the keys are the task's fields
