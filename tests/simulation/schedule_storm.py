"""A storm in which users also make, change, hold and remove schedules."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime.adapters.memory.schedules import MemoryScheduleStore
from duetime.domain.schedules.definition import Overlap, ScheduleChange, ScheduleSpec, Written
from duetime.domain.schedules.occurrences import count_between
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.references import Cause
from duetime.domain.tasks.task import TaskSpec
from duetime.domain.times import MINUTE
from tests.simulation.storm import Storm
from tests.virtual.world import OWNER, START

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.schedules.run_history import Activity
    from duetime.domain.schedules.stored_schedule import StoredSchedule
    from duetime.domain.times import Millis


class StormySchedules(MemoryScheduleStore):
    """Schedules in memory; a call may be lost on the way, or its answer, or its caller, before or after."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Callable[[], None] = lambda: None

    def read(self, owner: str, name: str) -> tuple[StoredSchedule | None, Activity]:
        """Read a schedule, with a fault before it."""
        self.fault()
        return super().read(owner, name)

    def save(self, stored: StoredSchedule, nonce: str) -> bool:
        """Store a schedule, with a fault before or after it."""
        self.fault()
        saved = super().save(stored, nonce)
        self.fault()
        return saved

    def save_activity(self, owner: str, name: str, activity: Activity, nonce: str) -> bool:
        """Store which occurrence goes on, with a fault before or after it."""
        self.fault()
        saved = super().save_activity(owner, name, activity, nonce)
        self.fault()
        return saved


@dataclass(frozen=True)
class Missing:
    """A schedule of which occurrences are neither placed nor told of."""

    name: str
    wanted: int
    placed: int
    skipped: int


class ScheduleStorm(Storm):
    """A storm over schedules.

    Attributes:
        named: the names of the schedules that were made.
        disturbed: those that a user has changed, held, triggered or removed since.
        lasts: when all schedules end.
    """

    def __init__(self, seed: int, lasts: Millis) -> None:
        self.named: list[str] = []
        self.disturbed: set[str] = set()
        self.lasts = START + lasts
        super().__init__(seed)

    def _wire(self) -> None:
        store = StormySchedules()
        store.fault = self._fault
        self.schedules = store
        super()._wire()

    def _use_once(self) -> None:
        if self.random.random() < 0.5:
            super()._use_once()
        elif not self.named or self.random.random() < 0.4:
            name = f"schedule-{len(self.named)}"
            self.named.append(name)
            self.schedule_manager.create(OWNER, self._schedule(name))
        else:
            self._steer(self.random.choice(self.named))

    def _steer(self, name: str) -> None:
        if self.random.random() < 0.5:
            return
        self.disturbed.add(name)
        match self.random.randrange(6):
            case 0:
                self.schedule_manager.pause(OWNER, name, "by chance")
            case 1:
                self.schedule_manager.resume(OWNER, name)
            case 2:
                change = ScheduleChange({"written": self._timing(), "overlap": self._overlap()})
                self.schedule_manager.change(OWNER, name, change, None)
            case 3:
                self.made.append(self.schedule_manager.trigger(OWNER, name).id)
            case 4:
                start = START - 100 * MINUTE
                self.schedule_manager.backfill(OWNER, name, start, start + 10 * MINUTE, 20)
            case _:
                self.schedule_manager.delete(OWNER, name)

    def _schedule(self, name: str) -> ScheduleSpec:
        fields: dict[str, Any] = {"overlap": self._overlap(), "end_at": self.lasts}
        written = self._timing()
        if written.permanent is not None:
            fields["overlap"] = Overlap.SKIP
        fields["pause_on_failure"] = self.random.random() < 0.2
        fields["remaining_runs"] = self.random.choice([None, None, 5])
        return ScheduleSpec(written, TaskSpec("storm", timeout_seconds=120), name, **fields)

    def _timing(self) -> Written:
        pick = self.random.choice
        return pick(
            [Written(cron="* * * * *"), Written(rate="20 seconds"), Written(cron="*/3 * * * *"), Written(permanent=15)]
        )

    def _overlap(self) -> Overlap:
        return self.random.choice([Overlap.ALLOW_ALL, Overlap.ALLOW_ALL, Overlap.SKIP, Overlap.BUFFER_ONE])

    def doubled(self) -> list[tuple[str, int, Millis]]:
        """Occurrences of which there is more than one task."""
        seen = Counter(
            (schedule_ref.mark, schedule_ref.revision, schedule_ref.nominal)
            for task in self.tasks._tasks.values()
            if (schedule_ref := task.schedule_ref) is not None and schedule_ref.cause is Cause.RECURRENCE
        )
        return [key for key, number in seen.items() if number > 1]

    def missing(self) -> list[Missing]:
        """Schedules that nobody has disturbed, of which an occurrence is neither placed nor told of."""
        found = []
        for name in self.named:
            stored, _ = self.schedules.read(OWNER, name)
            if stored is None or name in self.disturbed or stored.state is ScheduleState.PAUSED:
                continue
            if stored.is_permanent or stored.spec.overlap is not Overlap.ALLOW_ALL:
                continue
            if stored.spec.remaining_runs is None:
                wanted = count_between(stored.schedule(), stored.created_at - 1, stored.done)
                if wanted != stored.placed + stored.skipped:
                    found.append(Missing(name, wanted, stored.placed, stored.skipped))
            elif stored.placed != stored.spec.remaining_runs and stored.done < self.lasts:
                found.append(Missing(name, stored.spec.remaining_runs, stored.placed, stored.skipped))
            tasks = [
                task for task in self.tasks._tasks.values() if task.schedule_ref and task.schedule_ref.schedule == name
            ]
            if len(tasks) != stored.placed:
                found.append(Missing(name, len(tasks), stored.placed, stored.skipped))
        return found

    def going_on(self) -> list[str]:
        """Schedules that should have ended by now, and have not."""
        heads = [self.schedules.read(OWNER, name)[0] for name in self.named]
        return [each.name for each in heads if each is not None and each.state is ScheduleState.ACTIVE]
