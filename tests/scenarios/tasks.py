"""Helpers for task scenarios: they create and control tasks, and look at them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.scenarios.scenario import PLAIN, SECOND, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.tasks.states import State
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime_testing.fakes.sqs import Held
    from duetime_testing.fakes.telemetry import FakeTelemetry
    from duetime_testing.simulation.faults import Call
    from duetime_testing.simulation.machines import Machine
    from tests.simulation.account import Invocation
    from tests.simulation.users import Reply

RECOVERY = 180 * SECOND
"""After a fault, a task is late by at most this time plus the lease."""
ONCE = {"max_attempts": 1}
"""A retry policy without retries."""


@dataclass(frozen=True)
class Effect:
    """A call to a target, as seen by the outside world."""

    task_id: str
    phase: str
    at: Millis
    fence: int


class Tasks(Scenario):
    """A scenario about tasks.

    Attributes:
        effects: every call of a target, in order.
        callbacks: every outcome that was posted to a callback URL, in order.
        answer_callback: the status of the receiver's response to a callback.
        notices: the id and the kind of every notice that was posted, in order.
        answer_notice: the status of the receiver's response to a notice.
    """

    def __init__(self, seed: int = 1, start: Millis | None = None) -> None:
        super().__init__(seed, start)
        self.effects: list[Effect] = []
        self.callbacks: list[tuple[str, str]] = []
        self.answer_callback: Callable[[], int] = lambda: 200
        self.notices: list[tuple[str, str]] = []
        self.answer_notice: Callable[[], int] = lambda: 200
        self._facts: dict[Machine, FakeTelemetry] = {}

    # Actions by users.

    def create(self, delay: Millis = 0, kind: str = PLAIN, **fields: Any) -> str:  # noqa: ANN401 - JSON
        """Create a task that is due after a delay; return its id."""
        body = {"type": kind, "timeout_seconds": 60, **fields}
        if "due_at" not in body:
            body["delay_seconds"] = delay / SECOND
        made = self.ask("POST", "/v1/tasks", body)
        assert made.status == 201, made.body
        return str(made.body["id"])

    def do(self, task_id: str, verb: str, body: object = None) -> Reply:
        """Ask for an action on a task: `pause`, `resume`, `run`, `retry`, `rollback`, `notify`, `heartbeat`."""
        return self.ask("POST", f"/v1/tasks/{task_id}/{verb}", body)

    def change(self, task_id: str, **fields: Any) -> Reply:  # noqa: ANN401 - JSON
        """Change a task."""
        return self.ask("PATCH", f"/v1/tasks/{task_id}", fields)

    def cancel(self, task_id: str, *, force: bool = False) -> Reply:
        """Cancel a task."""
        return self.ask("POST", f"/v1/tasks/{task_id}/cancel", {"force": True} if force else None)

    def send_event(self, event_id: str, at: str, **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Put an event on the intake queue."""
        event = {"id": event_id, "source": "orders", "time": at, "detail": {"type": PLAIN, **fields}}
        self.sqs.send_message(QueueUrl=self.intake, MessageBody=json.dumps(event))

    # The states of tasks.

    def tally(self) -> Counter[State]:
        """The number of tasks in each state."""
        return Counter(task.state for task in self.watching.tasks())

    def state(self, task_id: str) -> State:
        """The state of a task."""
        return self.record(task_id).state

    def outcomes(self, task_id: str) -> list[str]:
        """The outcomes of a task's attempts."""
        return [str(line.outcome) for line in self.record(task_id).attempt_history]

    def phases(self, task_id: str = "") -> list[str]:
        """The phases for which targets were called, for all tasks or for one task."""
        return [each.phase for each in self.effects if task_id in {"", each.task_id}]

    def effect_times(self, task_id: str) -> list[Millis]:
        """The times at which the task's target was called."""
        return [each.at for each in self.effects if each.task_id == task_id]

    def act(self, phase: str, context: Any, payload: Any) -> Any:  # noqa: ANN401 - a handler gets it
        """Record a call to a target, then behave as the test says."""
        self.effects.append(Effect(context.task_id, phase, self.now, context.fence))
        return super().act(phase, context, payload)

    def notified(self, notice_id: str, kind: str) -> int:
        """Record a notice, then respond as the test says."""
        self.notices.append((notice_id, kind))
        return self.answer_notice()

    def called_back(self, task_id: str, state: str) -> int:
        """Record a callback, then respond as the test says."""
        super().called_back(task_id, state)
        self.callbacks.append((task_id, state))
        return self.answer_callback()

    def attempt(self, context: Any) -> int:  # noqa: ANN401 - a handler's or an endpoint's
        """The number of the attempt that called a target."""
        return self.record(context.task_id).attempt

    def hang(self, attempts: int = 1, otherwise: Callable[[], object] = lambda: "done") -> None:
        """Make targets take ten hours in the first `attempts` attempts of each task."""
        self.target = lambda _phase, context: (
            self.take(10 * 3600 * SECOND) if self.attempt(context) <= attempts else otherwise()
        )

    def fail_then_hang(self, attempts: int) -> None:
        """Make targets raise in the first `attempts` attempts of each task, and take ten hours in the next."""

        def behave(_phase: str, context: Any) -> None:  # noqa: ANN401 - as above
            if self.attempt(context) <= attempts:
                raise ValueError(self.attempt(context))
            self.take(10 * 3600 * SECOND)

        self.target = behave

    def fail(self, attempts: int = 99, phase: str = "run", error: type[Exception] = ValueError) -> None:
        """Make one phase raise in the first `attempts` attempts of each task."""

        def behave(called: str, context: Any) -> str:  # noqa: ANN401 - as above
            if called == phase and self.attempt(context) <= attempts:
                raise error(f"{called} {self.attempt(context)}")
            return "done"

        self.target = behave

    def last(self, seconds: float) -> None:
        """Make each target call take this long."""

        def behave(_phase: str, _context: object) -> str:
            self.take(round(seconds * SECOND))
            return "done"

        self.target = behave

    # Faults.

    def lose_messages(self) -> None:
        """Lose every message that is queued or in flight."""
        for queue in self.sqs.queues.values():
            queue.messages.clear()

    def messages(self) -> list[Held]:
        """Every message that is queued or in flight."""
        return [message for queue in self.sqs.queues.values() for message in queue.messages]

    def busy(self, function: str = "worker") -> list[Machine]:
        """The processes of a function that are currently working."""
        return [each for each in self.machines if each.function == function and each.strand is not None]

    def kill(self, function: str = "worker") -> None:
        """Kill every process of a function that is currently working."""
        for machine in self.busy(function):
            machine.die()

    def refuse(self, matches: Callable[[Call], object]) -> list[Call]:
        """Refuse every matching call from now on, and add each refused call to the returned list."""
        refused: list[Call] = []

        def refuse(call: Call) -> None:
            if matches(call):
                refused.append(call)
                call.refuse()

        self.before_call = refuse
        return refused

    def refuse_sends(self) -> list[Call]:
        """Have the queues refuse messages from now on."""
        return self.refuse(lambda call: call.operation == "send_message_batch")

    # Costs and counts.

    def invoke(self, function: str, event: Mapping[str, Any]) -> Invocation:
        """Begin an invocation, and keep its process's telemetry."""
        invocation = super().invoke(function, event)
        assert invocation.strand is not None
        machine: Any = invocation.strand.home
        self._facts[machine] = machine.facts
        return invocation

    def counts(self) -> Counter[str]:
        """The counts of all processes."""
        return sum((facts.counts for facts in self._facts.values()), Counter[str]())

    def measured(self, name: str) -> list[Millis]:
        """All measurements of a duration by all processes; a name can have a dimension, as in `wait{gate=lock}`."""
        return [value for facts in self._facts.values() for each, value in facts.measures if each == name]

    def notes(self) -> list[str]:
        """The notes of all processes."""
        return [text for facts in self._facts.values() for text, _ in facts.notes]

    def sent(self) -> int:
        """The number of messages sent to the work queues."""
        answers = [line[4] for line in self.lines if line[2] == "send_message_batch"]
        return sum(len(answer.get("Successful", ())) for answer in answers if isinstance(answer, dict))

    def worker_ends(self) -> int:
        """The number of workers that ended their own process."""
        return sum(1 for line in self.lines if line[2] == "ends itself")

    def done(self, task_id: str) -> Task:
        """The record of a task, which must have succeeded."""
        task = self.record(task_id)
        assert task.state == "succeeded", task
        return task


__all__ = ["ONCE", "RECOVERY", "Effect", "Tasks"]
