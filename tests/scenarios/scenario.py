"""A scenario is a simulated account without random faults, in which a test controls all events."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from duetime.adapters.dynamodb import schema
from duetime.domain.times import HOUR, MINUTE, SECOND, Millis, from_datetime
from tests.simulation import works
from tests.simulation.fault_simulation import FaultSimulation

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from duetime.domain.tasks.task import Task
    from duetime.handlers import Context
    from duetime_testing.fakes.attribute_values import Item
    from duetime_testing.simulation.faults import Call
    from duetime_testing.simulation.machines import Machine
    from tests.simulation.endpoints import Asked
    from tests.simulation.users import Reply

PLAIN, UNDONE, PHASED = works.PLAIN, works.UNDONE, works.PHASED
"""Three types, whose handlers have only `run`, `run` and `rollback`, and all four phases, respectively."""
_BACKFILLS = re.compile(r"/v1/schedules/([^/]+)/backfills")
_ENDS = ("after", "before")


class Scenario(FaultSimulation):
    """An account in virtual time that runs the unmodified functions. Calls fail only if the test makes them fail.

    Use it as a context manager. All invariants of the simulation are checked at every write; `violations` has the
    findings, and leaving the block without an error fails if there are any.
    """

    def __init__(self, seed: int = 1, start: Millis | None = None) -> None:
        super().__init__(seed, 0.0, start=start)
        self.faulty = self.is_mild = False
        self.delivery = 0, 0
        self.attempts.hears_all = False
        self.steps.share = 0
        self.target: Callable[[str, Any], Any] = lambda _phase, _context: "done"

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop every process of the account."""
        works.STAGE.remove(self)
        self.close()
        if kind is None:
            assert self.crash is None, self.crash
            assert not self.violations, self.violations
            # The account's parts refer to the account, so everything recorded would be left to the slow garbage
            # collector.
            vars(self).clear()

    @property
    def violations(self) -> list[Any]:
        """The invariant violations that were found."""
        return list(self.watching.violations)

    @property
    def now(self) -> Millis:
        """The virtual time."""
        return self.time.now()

    def run(self, duration: Millis) -> None:
        """Let time pass."""
        self.time.run_until(self.now + duration)

    def run_until(self, is_so: Callable[[], object], within: Millis = HOUR, step: Millis = 50) -> bool:
        """Let time pass until a condition on the account is true; return whether it became true in time.

        The condition is checked after each step in which something happened.
        """
        end = self.now + within
        while not is_so() and self.now < end:
            steps = max(1, -((self.now - self.time.next_event()) // step))
            self.time.run_until(min(self.now + steps * step, end))
        return bool(is_so())

    def ask(self, method: str, path: str, body: object = None, **more: Any) -> Reply:  # noqa: ANN401 - see `Users.ask`
        """Send a request to the API and let time pass until its response.

        Raises:
            AssertionError: if no response came.
        """
        replies = self.send(method, path, body, **more)
        assert self.run_until(lambda: replies), f"no answer to {method} {path}"
        return replies[0]

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> list[Reply]:  # noqa: ANN401 - as above
        """Send a request while other work continues; the response is added to the returned list.

        A backfill's period is passed to the invariant checks for schedules.
        """
        replies: list[Reply] = []
        if method == "POST" and (asked := _BACKFILLS.fullmatch(path)) is not None:
            after, before = (from_datetime(datetime.fromisoformat(body[f"scheduled_{end}"])) for end in _ENDS)
            self.schedules.fills_back(asked[1], after, before)

        def ask() -> None:
            reply = self.users.ask(method, path, body, **more)
            if reply is not None:
                replies.append(reply)

        self.time.start_process(ask)
        return replies

    def receive_again(self) -> None:
        """Resume reading from the queues."""
        self.receiving = True
        for poller in self._pollers.values():
            self.time.nudge(poller)

    def record(self, task_id: str) -> Task:
        """A task's record as stored."""
        task = self.watching.record(task_id)
        assert task is not None
        return task

    def items(self, prefix: str = "") -> list[Item]:
        """The items of the table whose partition key begins with `prefix`."""
        return [item for item in self.table.every() if item[schema.PARTITION_KEY]["S"].startswith(prefix)]

    def expire(self) -> list[tuple[str, str]]:
        """Remove every expired item, as DynamoDB does at some time after the expiry; return the removed keys."""
        over = [
            (item[schema.PARTITION_KEY]["S"], item[schema.SORT_KEY]["S"])
            for item in self.table.every()
            if schema.TTL in item and int(item[schema.TTL]["N"]) * SECOND < self.now
        ]
        for key in over:
            self.table.write(self.now, key, None)
        return over

    def once(self, matches: Callable[[Call], bool], then: Callable[[Call], None]) -> list[Call]:
        """Call `then` before the first matching call, and add that call to the returned list."""
        met: list[Call] = []
        before = self.before_call

        def do(call: Call) -> None:
            if before is not None:
                before(call)
            if not met and matches(call):
                met.append(call)
                then(call)

        self.before_call = do
        return met

    def slow(self, matches: Callable[[Call], bool], duration: Millis) -> list[Call]:
        """Delay the first matching call, and add the call to the returned list."""
        return self.once(matches, lambda _call: self.take(duration))

    def suspend(self, machine: Machine, duration: Millis) -> None:
        """Suspend every process on a machine for some time, during which the processes' leases may end."""
        assert machine.strand is not None
        self.watching.freezes(machine.strand)
        self.time.freeze(machine.strand, self.now + duration)
        if self.time.process() is machine.strand:
            self.take(duration)

    def _behave(self, phase: str, context: Context | Asked) -> Any:  # noqa: ANN401 - any JSON
        return self.target(phase, context)


__all__ = ["HOUR", "MINUTE", "PHASED", "PLAIN", "SECOND", "UNDONE", "Scenario"]
