"""The checks of a verification: what each creates, and what it judges from what became of that."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from duetime_client.errors import ApiError
from duetime_client.verification import assertions
from duetime_client.verification.plan import LEAD_SECONDS, PROBE, TRIGGER_LEAD_SECONDS
from duetime_client.verification.session import millis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.task_fields import HttpTarget, LockSpec, NewTask, RetryPolicy, TaskFields
    from duetime_client.verification.assertions import Finding
    from duetime_client.verification.plan import Plan
    from duetime_client.verification.session import Session

_AT_ONCE = 5
_PULL_LEASE_SECONDS = 30
EDGES = (("top", "left"), ("top", "right"), ("left", "bottom"), ("right", "bottom"))
"""The dependencies of the topology that is run."""


class Check(Protocol):
    """One of the things that a verification does."""

    @property
    def name(self) -> str:
        """What its bar is called, and its tasks' group."""
        ...

    def begin(self, session: Session) -> None:
        """Create what it needs."""
        ...

    def look(self, session: Session) -> None:
        """Do what it does while time goes by; often, and soon done."""
        ...

    def findings(self, session: Session) -> Sequence[Finding]:
        """What it found out, at the end."""
        ...


@dataclass
class Delayed:
    """Tasks that are due one by one, the first of them after `lead` seconds."""

    name: str
    promise: str
    plan: Plan
    count: int
    lead: float

    def begin(self, session: Session) -> None:
        """Create them in batches."""
        first, step = session.now_ms() + round(self.lead * 1000), self.plan.seconds * 1000 / max(1, self.count)
        session.create(
            self.name, [session.probe(self.name, at=at(first + round(number * step))) for number in range(self.count)]
        )

    def look(self, session: Session) -> None:
        """Nothing: they run by themselves."""

    def findings(self, session: Session) -> Sequence[Finding]:
        """How late they were."""
        return [assertions.on_time(self.promise, session.executions(self.name), self.plan.limits)]


@dataclass
class Cancelled:
    """Tasks that are taken back before they are due."""

    plan: Plan
    name: str = "cancelled"

    def begin(self, session: Session) -> None:
        """Create and cancel them."""
        due = at(session.now_ms() + round(LEAD_SECONDS * 1000))
        tasks = [session.probe(self.name, at=due) for _ in range(self.plan.cancelled)]
        for task in session.create(self.name, tasks, "cancelled", 0):
            session.client.cancel_task(task.id)

    def look(self, session: Session) -> None:
        """Nothing: nothing of them should happen."""

    def findings(self, session: Session) -> Sequence[Finding]:
        """Whether any ran."""
        return [assertions.cancelled(session.executions(self.name))]


@dataclass
class Retried:
    """Tasks whose first attempts fail."""

    name: str = "retried"

    def begin(self, session: Session) -> None:
        """Create one that fails once, and one that fails twice."""
        for fails in (1, 2):
            policy: RetryPolicy = {"max_attempts": fails + 2, "initial_seconds": 1.0, "multiplier": 1.0}
            task = session.probe(self.name, payload={"fail_times": fails}, retry=policy)
            session.create(self.name, [task], attempts=fails + 1)

    def look(self, session: Session) -> None:
        """Nothing: they are tried again by themselves."""

    def findings(self, session: Session) -> Sequence[Finding]:
        """Whether they succeeded after so many attempts."""
        return [assertions.retried(session.executions(self.name))]


@dataclass
class Locked:
    """Tasks that name one lock, all due at once."""

    plan: Plan
    name: str = "locked"

    def begin(self, session: Session) -> None:
        """Create them."""
        due = at(session.now_ms() + round(LEAD_SECONDS * 1000))
        lock: LockSpec = {"key": f"verify-{session.run_id}"}
        payload = {"seconds": 0.3}
        tasks: list[NewTask] = [
            session.probe(self.name, payload=payload, at=due, lock=lock) for _ in range(self.plan.locked)
        ]
        session.create(self.name, tasks)

    def look(self, session: Session) -> None:
        """Nothing: they let each other in."""

    def findings(self, session: Session) -> Sequence[Finding]:
        """Whether any two ran at once."""
        return [assertions.exclusive(session.executions(self.name))]


@dataclass
class Graph:
    """A topology in the form of a diamond."""

    name: str = "topology"
    _topology: str = ""
    _nodes: dict[str, str] = field(default_factory=dict)

    def begin(self, session: Session) -> None:
        """Create it."""
        nodes = {
            key: {
                "type": PROBE,
                "payload": {"seconds": 0.2},
                "tags": session.tags,
                "depends_on": [parent for parent, child in EDGES if child == key],
            }
            for key in ("top", "left", "right", "bottom")
        }
        body = {"name": "verify-topology", "tags": session.tags, "nodes": nodes}
        made = session.client.create_topology(body)
        self._topology = made.id
        session.follow(made.id, millis(made.due_at), self.name)

    def look(self, session: Session) -> None:
        """Learn which tasks its nodes are."""
        if len(self._nodes) < len(EDGES) and self._topology:
            topology = session.client.get_topology(self._topology)
            for key, node in topology.nodes.items():
                if node.task_id:
                    self._nodes[key] = node.task_id
                    session.follow(node.task_id, millis(topology.created_at), "node")

    def findings(self, session: Session) -> Sequence[Finding]:
        """Whether each node began after its parents had ended."""
        ran = {key: session.execution(session.followed[task_id]) for key, task_id in self._nodes.items()}
        if len(ran) < len(EDGES):
            return [assertions.judged("a topology keeps its order", ["it was not run"], 1, "")]
        return [assertions.in_order(ran, EDGES)]


@dataclass
class RecurringTasks:
    """A schedule that runs every few seconds for a while."""

    plan: Plan
    name: str = "recurring"
    _expected: list[int] = field(default_factory=list)
    _schedule: str = ""

    def begin(self, session: Session) -> None:
        """Create it."""
        period = self.plan.period_seconds * 1000
        first = -(-(session.now_ms() + round(LEAD_SECONDS * 1000)) // period) * period
        self._expected = [first + number * period for number in range(self.plan.occurrences)]
        self._schedule = f"verify-{session.run_id}"
        session.schedules.append(self._schedule)
        session.client.create_schedule(
            self._schedule,
            cron=f"*/{self.plan.period_seconds} * * * * *",
            start_at=at(first),
            end_at=at(self._expected[-1]),
            overlap="allow_all",
            task=session.probe(self.name),
        )

    def look(self, session: Session) -> None:
        """Learn which tasks it has made."""
        known = sum(each.group == self.name for each in session.followed.values())
        if known < len(self._expected) and self._schedule:
            period = self.plan.period_seconds * 1000
            start, end = at(self._expected[0] - period), at(self._expected[-1] + period)
            for occurrence in session.client.list_occurrences(self._schedule, start=start, end=end):
                if occurrence.task_id:
                    session.follow(occurrence.task_id, millis(occurrence.at), self.name)

    def findings(self, session: Session) -> Sequence[Finding]:
        """Whether each time has run, and how late."""
        executions = session.executions(self.name)
        on_time = assertions.on_time("occurrences are on time", executions, self.plan.limits)
        return [assertions.recurring(self._expected, executions), on_time]


@dataclass
class Pulled:
    """Tasks of a pulled type, which this machine leases."""

    plan: Plan
    name: str = "pulled"
    _seen: Counter[str] = field(default_factory=Counter)

    def begin(self, session: Session) -> None:
        """Create them."""
        if self.plan.pulled_type:
            tasks = [session.probe(self.name) for _ in range(self.plan.pulled)]
            session.create(self.name, [{**task, "type": self.plan.pulled_type} for task in tasks])

    def look(self, session: Session) -> None:
        """Lease those that are there and complete them; what is not ours is given back at once."""
        if not self.plan.pulled_type:
            return
        leases = session.client.lease_tasks(
            [self.plan.pulled_type], max=self.plan.pulled, lease_seconds=_PULL_LEASE_SECONDS, worker="duetime verify"
        )
        for leased in leases:
            if leased.task.id in session.followed:
                self._seen[leased.task.id] += 1
                session.client.complete_lease(leased.lease)
            else:
                session.client.release_lease(leased.lease)

    def findings(self, session: Session) -> Sequence[Finding]:
        """Whether each came once."""
        if not self.plan.pulled_type:
            return [assertions.unmeasured("a pulled task is handed out once", "no pulled type was named (--pulled)")]
        return [assertions.pulled([each.task_id for each in session.executions(self.name)], self._seen)]


@dataclass
class Called:
    """A task that calls an HTTP endpoint."""

    plan: Plan
    name: str = "http"

    def begin(self, session: Session) -> None:
        """Create it."""
        if self.plan.http_url:
            target: HttpTarget = {"kind": "http", "url": self.plan.http_url}
            session.create(self.name, [session.probe(self.name, target=target)])

    def look(self, session: Session) -> None:
        """Nothing: it is called by itself."""

    def findings(self, session: Session) -> Sequence[Finding]:
        """Whether it was answered."""
        promise = "an HTTP endpoint is called"
        if not self.plan.http_url:
            return [assertions.unmeasured(promise, "no endpoint was named (--http-url)")]
        executions = session.executions(self.name)
        wrong = [each.task_id for each in executions if each.state != "succeeded"]
        return [assertions.judged(promise, wrong, len(executions), "without success")]


@dataclass
class Idempotent:
    """One creation, asked for again and again under one key."""

    name: str = "idempotent"
    _ids: list[str] = field(default_factory=list)
    _status: int = 0

    def begin(self, session: Session) -> None:
        """Ask for it several times at once, and then for another under the same key."""
        key, fields = f"verify-{session.run_id}", session.probe(self.name, payload={"note": 1})
        other = session.probe(self.name, payload={"note": 2})
        create = session.client.create_task

        def ask(_: int) -> str:
            made = create(PROBE, idempotency_key=key, **_without_type(fields))
            session.follow(made.id, millis(made.due_at), self.name)
            return made.id

        with ThreadPoolExecutor(_AT_ONCE) as threads:
            self._ids = list(threads.map(ask, range(_AT_ONCE)))
        try:
            made = create(PROBE, idempotency_key=key, **_without_type(other))
        except ApiError as error:
            self._status = error.status
        else:
            session.follow(made.id, millis(made.due_at), self.name)
            self._status = 201

    def look(self, session: Session) -> None:
        """Nothing: all was said at once."""

    def findings(self, session: Session) -> Sequence[Finding]:  # noqa: ARG002 - of every check
        """Whether there is one task."""
        return [assertions.idempotent(self._ids, self._status)]


def checks(plan: Plan) -> list[Check]:
    """All of them; the longest last, for its bar to be the one that is waited for."""
    late = Delayed("sent by trigger", "on time, sent by the trigger", plan, plan.late_tasks, TRIGGER_LEAD_SECONDS)
    return [
        Idempotent(),
        Cancelled(plan),
        Retried(),
        Locked(plan),
        Graph(),
        Pulled(plan),
        Called(plan),
        RecurringTasks(plan),
        Delayed("delayed", "on time, sent by the API", plan, plan.tasks, LEAD_SECONDS),
        *([late] if plan.late_tasks else []),
    ]


def _without_type(task: NewTask) -> TaskFields:
    return {name: value for name, value in task.items() if name != "type"}  # type: ignore[return-value]  # its fields


def at(moment_ms: int) -> datetime:
    """An instant, in UTC."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC)
