"""Users who create tasks of all kinds and act on them, pull workers, and targets with random behavior."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.domain.times import MINUTE, SECOND, Millis
from duetime.handlers import Accepted
from tests.simulation import works
from tests.simulation.account import LEASE_SECONDS, PULLED
from tests.simulation.endpoints import URL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime_testing.simulation.virtual_time import Strand, VirtualTime

_TYPES = (works.PLAIN, works.PLAIN, works.UNDONE, works.PHASED, PULLED)


@dataclass
class Effect:
    """A call of a target."""

    task_id: str
    fence: int
    phase: str
    process: Strand
    is_over: bool = False

    @property
    def lives(self) -> bool:
        """Whether the call is still running."""
        return not self.is_over and not self.process.done


@dataclass
class Answer:
    """A response of the API.

    Attributes:
        is_of_old: whether the response comes from a function that was already running when the table was restored.
    """

    status: int
    body: Any
    is_of_old: bool = False


class BusyUsers:
    """Random events in one account or in several accounts; a seed determines all of them.

    Attributes:
        seed: determines all events.
        rate: the probability of a fault at each call.
        effects: all calls of targets.
        created: ids of the tasks whose creation was acknowledged.
        is_busy: whether users create tasks.
        behave: the behavior of a target, which is random by default.
    """

    seed: int
    time: VirtualTime
    rate: float
    effects: list[Effect]
    created: list[str]
    is_busy: bool
    behave: Callable[[str, Any], Any]

    if TYPE_CHECKING:
        # Subclasses implement these methods, either for one account or for several accounts together.
        def ask(self, method: str, path: str, body: object = None) -> Answer | None:
            """Send a request, and return `None` if there is no response."""
            ...

        def take(self, milliseconds: Millis) -> None:
            """Let this much time pass."""
            ...

        def check(self, holds: bool, violation: str) -> None:  # noqa: FBT001 - what is checked
            """Record a violation unless the condition holds."""
            ...

        def began(self, phase: str, task_id: str, fence: int) -> Effect:
            """Record that a target was called."""
            ...

        def check_report(self, answer: Answer | None, task_id: str, fence: int) -> None:
            """Check the response to a report about an attempt."""

    def use(self) -> None:
        """Create tasks, schedules and topologies at random, and control some of the tasks."""
        draw = Random(f"{self.seed} users")  # noqa: S311 - repeatable
        while True:
            self.take(draw.randrange(200, 8 * SECOND))
            path, body = self._wanted(draw)
            answer = self.ask("POST", path, body)
            self.check(answer is None or answer.status != 422, f"{body} was refused: {answer and answer.body}")
            if answer is not None and answer.status == 201 and "id" in answer.body:
                self.created.append(answer.body["id"])
            if self.created and draw.random() < 0.3:
                task_id = draw.choice(self.created)
                self.ask("POST", f"/v1/tasks/{task_id}/{draw.choice(['cancel', 'pause', 'resume', 'retry', 'run'])}")

    def _wanted(self, draw: Random) -> tuple[str, dict[str, Any]]:
        limits = {"timeout_seconds": 60, "notify_within_seconds": 60}
        retry = {"retry": {"max_attempts": draw.choice([1, 3]), "initial_seconds": 1}}
        task: dict[str, Any] = {"type": draw.choice(_TYPES), **limits, **retry}
        if task["type"] == PULLED:
            task["target"] = {"kind": "pull"}
        kind = draw.random()
        if kind < 0.12:
            parents: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
            nodes = {key: {"type": works.PLAIN, "depends_on": on, **limits, **retry} for key, on in parents.items()}
            return "/v1/topologies", {"nodes": nodes}
        if kind < 0.18:
            name = f"s{draw.randrange(10**6)}"
            body = {"name": name, "rate": "1 minute", "task": {"type": works.PLAIN, **limits, **retry}}
            return "/v1/schedules", {**body, "remaining_runs": 4}
        more = draw.choice(
            (
                {},
                {},
                {"lock": {"key": f"l{draw.randrange(2)}", "max_holders": 1}},
                {"unique": {"key": f"u{draw.randrange(3)}"}},
                {"order": {"key": f"o{draw.randrange(2)}"}},
                {"rate": {"key": "r", "limit": 20, "per_seconds": 60}},
            )
        )
        if draw.random() < 0.2 and task["type"] != PULLED:
            task |= {"type": "remote", "target": {"kind": "http", "url": f"{URL}?action=run"}}
        return "/v1/tasks", {**task, **more, "delay_seconds": draw.choice([0, 0, 3, 60, 400])}

    def pull(self) -> None:
        """Lease and complete tasks as a pull worker."""
        draw = Random(f"{self.seed} puller {self.time.now()}")  # noqa: S311 - repeatable
        while True:
            wanted = {"types": [PULLED], "wait_seconds": 5, "lease_seconds": LEASE_SECONDS, "worker": "w"}
            answer = self.ask("POST", "/v1/leases", wanted)
            for lease in answer.body["leases"] if answer is not None and answer.status == 200 else []:
                self._work_on(lease, draw)
            self.take(SECOND if self.rate or self.is_busy else MINUTE)

    def _work_on(self, lease: Mapping[str, Any], draw: Random) -> None:
        task = lease["task"]
        effect = self.began("run", task["id"], task["fence"])
        # The work does not take longer than the lease.
        self.take(draw.choice([0, 2, LEASE_SECONDS - 4]) * SECOND)
        effect.is_over = True
        answer = self.ask("POST", f"/v1/leases/{lease['id']}/complete", {"result": 1})
        self.check_report(answer, task["id"], task["fence"])

    # The following methods simulate the targets.

    def act(self, phase: str, context: Any, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Execute a phase of a task."""
        del payload
        effect = self.began(phase, context.task_id, context.fence)
        try:
            return self.behave(phase, context)
        finally:
            effect.is_over = True

    def do_something(self, phase: str, context: Any) -> Any:  # noqa: ANN401 - any JSON
        """Take some time, and succeed, fail or accept the work."""
        draw = Random(f"{self.seed} {context.task_id} {context.fence} {phase}")  # noqa: S311 - repeatable
        until = self.time.now() + draw.choice([0, 0, 100, 2 * SECOND, 20 * SECOND, 50 * SECOND])
        while self.time.now() < until and context.requested_action is None:
            self.take(min(5 * SECOND, until - self.time.now()))
        if phase == "run" and draw.random() < 0.15:
            self.time.start_process(partial(self._notify, context.task_id, context.fence, draw.randrange(55 * SECOND)))
            return Accepted()
        if draw.random() < 0.15:
            raise ValueError("by chance")
        return "done"

    def _notify(self, task_id: str, fence: int, later: Millis) -> None:
        self.take(later)
        body = {"fence": fence, "outcome": "succeeded", "result": fence}
        self.check_report(self.ask("POST", f"/v1/tasks/{task_id}/notify", body), task_id, fence)
