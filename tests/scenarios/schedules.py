"""Helpers for schedule scenarios: they create schedules and look at their occurrences."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.domain.tasks.attempt_records import SKIPPED
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply

NAME = "nightly"
PATH = f"/v1/schedules/{NAME}"


class Schedules(Tasks):
    """A scenario about a schedule.

    Attributes:
        created_at: the approximate time at which the schedule was created.
    """

    def __init__(self, seed: int = 1, start: Millis | None = None) -> None:
        super().__init__(seed, start)
        self.faulty = True
        self.created_at: Millis = 0

    def make(self, **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Create a schedule that runs once a minute unless another timing is given."""
        timings = {"cron", "rate", "interval", "dates", "permanent"}
        body: dict[str, Any] = {"name": NAME, "task": {"type": PLAIN, "timeout_seconds": 600}, **fields}
        if not timings & set(body):
            body["cron"] = "* * * * *"
        self.created_at = self.now
        made = self.ask("POST", "/v1/schedules", body)
        assert made.status == 201, made.body

    def schedule(self) -> dict[str, Any]:
        """The schedule in the API's response."""
        body: dict[str, Any] = self.ask("GET", PATH).body
        return body

    def control(self, verb: str, body: object = None) -> Reply:
        """Pause, resume, run or backfill the schedule."""
        return self.ask("POST", f"{PATH}/{verb}", body)

    def amend(self, **fields: Any) -> Reply:  # noqa: ANN401 - JSON
        """Change the schedule."""
        return self.ask("PATCH", PATH, fields)

    def placed(self) -> list[Task]:
        """All tasks of the schedule, ordered by id."""
        return sorted((task for task in self.watching.tasks() if task.schedule_ref), key=lambda task: task.id)

    def ran(self) -> Counter[Millis]:
        """How often each occurrence started, by nominal time."""
        nominal = {task.id.text: task.schedule_ref.nominal for task in self.placed() if task.schedule_ref}
        return Counter(nominal[effect.task_id] for effect in self.effects if effect.task_id in nominal)

    def skipped(self) -> list[str]:
        """The reasons why occurrences were skipped."""
        errors = [task.error for task in self.placed()]
        return [error.message for error in errors if error is not None and error.type == SKIPPED]

    def minutes(self, first: Millis, last: Millis) -> list[Millis]:
        """The full minutes from one instant to another."""
        return list(range(-(-first // MINUTE) * MINUTE, last + 1, MINUTE))

    def most_at_once(self, length: Millis) -> int:
        """The largest number of concurrent target calls if each call takes `length` milliseconds."""
        begun = [effect.at for effect in self.effects]
        return max(sum(1 for other in begun if at - length < other <= at) for at in begun)


def is_of_a_schedule(call: Call) -> bool:
    """Whether a call reads or writes a schedule's stored data."""
    return (call.partition or "").startswith(schema.SCHEDULE_PREFIX)


__all__ = ["NAME", "PATH", "SECOND", "Schedules", "is_of_a_schedule"]
