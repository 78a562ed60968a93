"""Users who stop, skip and move single occurrences of a schedule, and change fields other than its timing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.domain.tasks.states import State
from duetime.domain.times import MINUTE, SECOND, to_iso
from tests.simulation.schedule_users import PATH

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from tests.simulation.fault_simulation import FaultSimulation

NAME = "edited"
_AHEAD = 10 * SECOND
"""An occurrence is stopped at least this long before its due time, so that it has not begun by any machine's clock."""
_MOST_EDITS = 30


class OccurrenceUsers:
    """Users' actions on one schedule and its occurrences; the requests are sent one after the other."""

    def __init__(self, simulation: FaultSimulation) -> None:
        self.simulation = simulation
        self.random = simulation.random
        self.stopped: list[Task] = []
        self.is_certain = True
        self._value = 60

    def use(self, until: Millis) -> None:
        """Create the schedule, and then repeatedly stop future occurrences and change the schedule."""
        body = {
            "name": NAME,
            "cron": "* * * * *",
            "overlap": "allow_all",
            "task": {"type": "simulation-plain", "timeout_seconds": 60},
        }
        while not self._ask("POST", PATH, body):
            self.simulation.take(SECOND)
        self.is_certain = True
        self.simulation.schedules.disturbed.add(NAME)
        while self.simulation.time.now() < until:
            self.simulation.take(self.random.randrange(1, 40 * SECOND))
            if self.random.random() < 0.5:
                self._stop()
            if self.random.random() < 0.5:
                self._change()
            for _ in range(self.random.choice([1, 1, 2, _MOST_EDITS])):
                self._value += 1
                self._ask("PATCH", f"{PATH}/{NAME}", {"catch_up_seconds": self._value})
        self._ask("POST", f"{PATH}/{NAME}/pause", {})

    def _stop(self) -> None:
        """Stop one of the future occurrences that the current revision has placed."""
        stored, _ = self.simulation.schedules.store.read("local", NAME)
        now = self.simulation.time.now()
        ahead = [
            task
            for task in self.simulation.watching.tasks()
            if task.schedule_ref is not None and stored is not None and task.schedule_ref.schedule == NAME
            if task.schedule_ref.is_by_timing and stored.is_current(task.schedule_ref)
            if task.state is State.SCHEDULED and task.due_at > now + _AHEAD
        ]
        if not ahead or not self.is_certain:
            return
        task = self.random.choice(ahead)
        verb = self.random.choice(["cancel", "pause"])
        if self._ask("POST", f"/v1/tasks/{task.id}/{verb}", {}):
            self.simulation.occurrences.stop(task)

    def _change(self) -> None:
        """Skip one of the occurrences in the next minutes, or move it to another second."""
        now = self.simulation.time.now()
        at = (now // MINUTE + self.random.randrange(2, 6)) * MINUTE
        body = {"scheduled_at": to_iso(at), "action": self.random.choice(["skip", "move"])}
        if body["action"] == "move":
            body["due_at"] = to_iso(at + self.random.choice([-1, 1]) * self.random.randrange(1, 60) * SECOND)
        stored, _ = self.simulation.schedules.store.read("local", NAME)
        if stored is not None and self._ask("POST", f"{PATH}/{NAME}/occurrences/update", body):
            self.simulation.occurrences.stopped[NAME, stored.mark, at] = str(body)

    def _ask(self, method: str, path: str, body: dict[str, Any]) -> bool:
        """Send a request, and return whether the response confirms the request."""
        answer = self.simulation.users.ask(method, path, body)
        # The change of a request without a response may be written at any later time, and may overwrite later stops.
        self.is_certain = self.is_certain and answer is not None and answer.status < 500
        return answer is not None and answer.status < 300
