"""Invariants of events for other systems under all faults: all statements in the events are true.

Each write to the table goes through the same functions as in a deployment, where the table's stream delivers it.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.stream import changes_of
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of
from duetime.domain.change_events import EventKind, events_of
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.times import MINUTE, SECOND
from duetime_testing.fakes.stream import FakeStream
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.machines import SKEW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.change_events import ScheduleSnapshot
    from duetime.domain.tasks.task import ScheduleRef, Task
    from duetime.domain.times import Millis
    from tests.simulation.fault_simulation import FaultSimulation

_HISTORY, _STARTED, _FENCE, _SCHEDULE_REF = (
    ATTRIBUTES[name].name for name in ("attempt_history", "started_at", "fence", "schedule_ref")
)
_BEGINNING = frozenset({"prepare", "run"})
_EXPECTED = (None, None, 60, 120)
_UNSURE = 15 * SECOND
"""A success this close to the start or end of a period, or recorded this late, may count for another period."""
_LATE = MINUTE
"""A first start that is at least this late must cause an event."""


def expected_every(schedule: str) -> int | None:
    """How often, in seconds, users expect a success of the schedule with this name; `None` without an expectation."""
    return Random(f"{schedule} expectation").choice(_EXPECTED)  # noqa: S311 - repeatable on purpose


class EventWatching:
    """Watches the events about late starts, and about schedules whose runs did not succeed in time.

    Attributes:
        late: the number of events about the late start of each task.
        missed: the number of events about schedules without a successful run in time.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self._stream = FakeStream(account.time.now)
        self._stream.told = self._read
        self._called_at: dict[str, Millis] = {}
        self._called: set[tuple[str, int]] = set()
        self._is_due: set[str] = set()
        """The tasks whose late start must be reported by an event."""
        self._ids: dict[str, set[str]] = {}
        self.late: Counter[str] = Counter()
        self.missed = 0
        self._successes: dict[str, tuple[ScheduleRef, Millis, Millis]] = {}
        """The schedule of each successful run, the time when the run ended, and the time when its end was recorded."""

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check a write of a task's record; the first end of an attempt decides whether the task started late."""
        self._stream.add(old, new)  # type: ignore[arg-type]  # items
        if new is not None and _SCHEDULE_REF in new:
            self._note_success(task_of(new))
        if old is None or new is None:
            return
        is_claimed = old[_FENCE] != new[_FENCE]
        if _STARTED in old and (_STARTED not in new or (is_claimed and old[_STARTED] != new[_STARTED])):
            # A task that was put back, or whose lease was never acknowledged, has not started.
            self._called_at.pop(new[schema.SORT_KEY]["S"], None)
        if _HISTORY in old or _HISTORY not in new:
            return
        task = task_of(new)
        line = task.attempt_history[-1]
        is_lost = line.outcome is AttemptOutcome.LOST or (task.error is not None and task.error.type == "WorkerLost")
        was_called = (task.id.text, line.fence) in self._called and not is_lost
        if was_called and (task.lateness or 0) >= _LATE:
            self._is_due.add(task.id.text)

    def schedule_written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check a write of a schedule."""
        self._stream.add(old, new)  # type: ignore[arg-type]  # items

    def _note_success(self, run: Task) -> None:
        """Record the success of a run that the schedule's timing created.

        Remove the success if the run is deleted or undone.
        """
        line, ref = (run.attempt_history or (None,))[-1], run.schedule_ref
        if run.state is not State.SUCCEEDED or run.erased or line is None or line.started_at is None or ref is None:
            self._successes.pop(run.id.text, None)
        elif ref.is_by_timing:
            ended_at, now = line.started_at + line.took, self._account.time.now()
            self._successes.setdefault(run.id.text, (ref, ended_at, now))

    def began(self, task: Task, phase: str, fence: int) -> None:
        """Record that a target was called."""
        if phase not in _BEGINNING:
            return
        self._called_at.setdefault(task.id.text, self._account.time.now())
        self._called.add((task.id.text, fence))

    def _read(self) -> None:
        """Process the stream's records at once."""
        changes = changes_of(self._stream.event(), FakeTelemetry())
        for event in events_of(changes):
            if event.kind is EventKind.TASK_LATE:
                self._check_late(str(event.detail.get("task_id")), event.detail["id"])
        for change in changes.schedules:
            if change.after is not None and any(e.kind is EventKind.EXPECTATION_MISSED for e in events_of(changes)):
                self._check_missed(change.after)
        self._stream.records.clear()

    def _check_missed(self, schedule: ScheduleSnapshot) -> None:
        """Check that no run succeeded in a period for which an event reports a missing success."""
        self.missed += 1
        length, state = expected_every(schedule.name), schedule.expectation
        assert state is not None
        end = state.missed_at or 0
        begin = end - (length or 0) * SECOND
        for name, (ref, ended_at, written_at) in self._successes.items():
            is_inside = begin + _UNSURE < ended_at and max(ended_at, written_at) < end - _UNSURE
            is_its = ref.schedule == schedule.name and schedule.uid.text.endswith(ref.mark)
            told = f"{schedule.name} is said to have had no success from {begin} to {end}, in which {name} succeeded"
            self._account.watching.check(not (is_its and is_inside), told)

    def _check_late(self, name: str, event_id: str) -> None:
        self.late[name] += 1
        self._ids.setdefault(name, set()).add(event_id)
        task, check = self._account.watching.record(name), self._account.watching.check
        check(self.late[name] == 1, f"{name} has {self.late[name]} events of its late start, {self._ids[name]}")
        if task is None or task.pull_queue or not isinstance(task.target, HandlerTarget):
            # Calls for such tasks are not watched. A pull worker's task starts only with the worker's first heartbeat.
            return
        called_at = self._called_at.get(name)
        check(called_at is not None, f"{name} is said to have started late, and was not called")
        is_late = called_at is None or called_at - task.due_at >= _LATE - 2 * SKEW
        check(is_late, f"{name} is said to have started late, and was called in time")

    def check_end(self) -> None:
        """Check that each late start has an event."""
        for name in sorted(self._is_due):
            self._account.watching.check(self.late[name] == 1, f"{name} has started late, and no event says so")
