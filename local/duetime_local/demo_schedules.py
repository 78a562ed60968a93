"""Runs the demo's schedules, which repeat every few seconds, and compares their executions with the expected times."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from duetime_client import NewTask, TimingFields
from duetime_local.demo_report import RecurringFigures, lateness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duetime_client import Client
    from duetime_local.demo_receiver import Execution, Receiver

TAG = "demo-schedules"
WORK_MS = 5
SECOND_MS = 1000


@dataclass(frozen=True, slots=True)
class PlannedSchedule:
    """One of the demo's schedules, with its period in seconds."""

    name: str
    timing: TimingFields
    every_seconds: int
    over_http: bool = False

    def times_ms(self, start_ms: int, end_ms: int) -> list[int]:
        """The times at which the schedule should run, from start to end.

        The times are multiples of the period, counted from the epoch (cron) or the start (rate).
        """
        period_ms = self.every_seconds * SECOND_MS
        first_ms = start_ms if "rate" in self.timing else -(-start_ms // period_ms) * period_ms
        return list(range(first_ms, end_ms + 1, period_ms))


PLAN = (
    PlannedSchedule("every-2-seconds", {"cron": "*/2 * * * * *"}, 2),
    PlannedSchedule("every-3-seconds", {"rate": "3 seconds"}, 3, over_http=True),
    PlannedSchedule("every-5-seconds-in-kolkata", {"cron": "*/5 * * * * *", "timezone": "Asia/Kolkata"}, 5),
)


@dataclass(frozen=True, slots=True)
class Recurring:
    """The schedules of one demo."""

    run_id: str
    times_ms: Mapping[str, Sequence[int]]
    """The expected times of each schedule, by name."""

    @classmethod
    def begin(cls, client: Client, counter: Receiver, run_id: str, start_ms: int, spread_ms: int) -> Recurring:
        """Create the schedules, which start at the next full second and end before the demo does."""
        first_ms = -(-start_ms // SECOND_MS) * SECOND_MS
        last_ms = first_ms + spread_ms // SECOND_MS * SECOND_MS - SECOND_MS
        names = {f"demo-{run_id}-{planned.name}": planned for planned in PLAN}
        times_ms: dict[str, list[int]] = {}
        for name, planned in names.items():
            bounds = TimingFields(start_at=_instant(first_ms), end_at=_instant(last_ms))
            timing: TimingFields = {**planned.timing, **bounds}
            made = client.schedules.create(
                name,
                **timing,
                # A run on a cold worker can be late, which must not cause the next run to be skipped.
                overlap="allow_all",
                task=_task(name, counter, run_id, over_http=planned.over_http),
            )
            # A cold API may create a schedule after the schedule's first time; runs before the creation are not
            # expected.
            made_ms = _millis(made.created_at)
            times_ms[name] = [at for at in planned.times_ms(first_ms, last_ms) if at >= made_ms]
        return cls(run_id, times_ms)

    def figures(self, client: Client, counter: Receiver, patience_seconds: float) -> RecurringFigures:
        """Wait until all expected occurrences have run or the time is up, and count the results."""
        give_up = time.monotonic() + patience_seconds
        while True:
            tasks = list(client.tasks.list(tags={TAG: self.run_id}))
            planned = [(task.id, str((task.schedule or {}).get("name")), _millis(task.due_at)) for task in tasks]
            found = count(self.times_ms, planned, counter.executions)
            if not found.missed or time.monotonic() > give_up:
                return found
            time.sleep(SECOND_MS / 5000)


def count(
    times_ms: Mapping[str, Sequence[int]], tasks: Iterable[tuple[str, str, int]], executions: Iterable[Execution]
) -> RecurringFigures:
    """Compare the times at which schedules should run with the executions.

    Args:
        times_ms: when each schedule must run.
        tasks: the id, the schedule's name and the due time of each created task.
        executions: the executions that the receiver has recorded.
    """
    starts: dict[str, list[int]] = defaultdict(list)
    for one in executions:
        if one.succeeded:
            starts[one.task_id].append(one.started_at_ms)
    expected = {(name, at) for name, times in times_ms.items() for at in times}
    ran = [(name, due_ms, start - due_ms) for task_id, name, due_ms in tasks for start in starts[task_id]]
    at_times = [(name, due_ms) for name, due_ms, _ in ran]
    return RecurringFigures(
        schedules=len(times_ms),
        expected=len(expected),
        ran=len(expected & set(at_times)),
        missed=len(expected - set(at_times)),
        doubled=len(at_times) - len(set(at_times)),
        strange=len(set(at_times) - expected),
        lateness_ms=lateness([late for _, _, late in ran]),
    )


def _task(name: str, counter: Receiver, run_id: str, *, over_http: bool) -> NewTask:
    payload = {"job": name, "work_ms": WORK_MS}
    task = NewTask(type="ci.job", name=name, tags={TAG: run_id}, payload={**payload, "report_url": counter.report_url})
    if over_http:
        task["payload"] = payload
        task["target"] = {"kind": "http", "url": counter.run_url}
    return task


def _instant(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / SECOND_MS, UTC)


def _millis(moment: datetime) -> int:
    return round(moment.timestamp() * SECOND_MS)
