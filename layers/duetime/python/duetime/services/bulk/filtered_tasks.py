"""Doing something with many tasks by a filter: a bounded piece at a time, paced, and resumed where it stopped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.bulk.request import FilterResult
from duetime.domain.errors import FieldInvalid, RequestRefused, Unavailable, VersionDiffers
from duetime.domain.limits import MAX_EXAMINED, MAX_PAGE
from duetime.domain.tasks.states import State
from duetime.domain.times import SECOND
from duetime.ports.stores import ListQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.bulk.request import FilterAction
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.creation import TaskChange
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Executor
    from duetime.ports.stores import TaskStore
    from duetime.services.tasks.control import TaskControl
    from duetime.services.tasks.read import TaskReader
    from duetime.services.tasks.update import TaskUpdater


_AT_ONCE = 48
"""Tasks that are acted on before it is asked again whether there is time for more."""
_TRIES = 5
"""How often a task is acted on anew that others write in between."""


class NoLongerMatched(Exception):
    """The filter matched a task when it was read, and does not any more: it is left alone, and nobody hears of it."""


@dataclass(slots=True)
class _Tally:
    """What a piece has come to so far."""

    after: TaskId | None
    examined: int = 0
    matched: int = 0
    changed: int = 0
    refused: Counter[type[RequestRefused]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class FilteredTasks:
    """Does one thing with each of an owner's tasks that a filter means; doing a piece again does no harm."""

    tasks: TaskStore
    task_reader: TaskReader
    task_updater: TaskUpdater
    task_control: TaskControl
    clock: Clock
    executor: Executor | None = None

    def cancel(self, owner: str, sweep: FilterAction, *, force: bool) -> FilterResult:
        """Cancel a piece; by force, ask those that run to stop."""
        cancel = self.task_control.cancel_by_force if force else self.task_updater.cancel
        return self._sweep(owner, sweep, lambda task: cancel(owner, task.id, task.version))

    def change(self, owner: str, sweep: FilterAction, wanted: TaskChange) -> FilterResult:
        """Change a piece.

        Raises:
            FieldInvalid: the first of the tasks cannot be changed so; none was. Further on such a task is counted.
        """
        return self._sweep(owner, sweep, lambda task: self.task_updater.change(owner, task.id, wanted, task.version))

    def redrive(self, owner: str, sweep: FilterAction) -> FilterResult:
        """Have a piece of the failed tasks tried again; the filter asks for that state."""
        return self._sweep(owner, sweep, lambda task: self.task_control.retry(owner, task.id, task.version))

    def _sweep(self, owner: str, sweep: FilterAction, act: Callable[[Task], object]) -> FilterResult:
        """One piece; raises `Unavailable` only if nothing was done yet."""
        tally = _Tally(sweep.after)
        try:
            self._go_through(owner, sweep, tally, partial(_act_while_meant, sweep, act))
        except Unavailable:
            if not tally.changed:
                raise
        return FilterResult(tally.examined, tally.matched, tally.changed, dict(tally.refused), tally.after)

    def _go_through(self, owner: str, sweep: FilterAction, tally: _Tally, act: Callable[[Task], object]) -> None:
        pace = _Pace(self.clock, sweep)
        failed_only = sweep.wanted.state is State.FAILED
        while tally.examined < MAX_EXAMINED:
            query = ListQuery(owner, tally.after, descending=sweep.descending, limit=MAX_PAGE, failed_only=failed_only)
            ids = self.tasks.list_ids(query)
            tasks: Sequence[Task] = self.task_reader.get_many(owner, ids)
            while tasks:
                if pace.is_over(tally):
                    return
                segment, tasks = _split(tasks, sweep, self._at_once(sweep, tally))
                self._do(segment, sweep, tally, pace, act)
            if len(ids) < MAX_PAGE:
                tally.after = None
                return
            tally.after = ids[-1]

    def _at_once(self, sweep: FilterAction, tally: _Tally) -> int:
        """How many tasks may be acted on at a time: one while a pace is kept, and at first, which may refuse all."""
        if sweep.is_dry:
            return MAX_EXAMINED
        is_first = not tally.changed and sweep.after is None
        return (
            1 if self.executor is None or sweep.per_second or is_first else min(_AT_ONCE, sweep.limit - tally.matched)
        )

    def _do(
        self, segment: Sequence[Task], sweep: FilterAction, tally: _Tally, pace: _Pace, act: Callable[[Task], object]
    ) -> None:
        """Act on those of some tasks that are meant; the tally moves behind them all, unless the store fails."""
        meant = [task for task in segment if sweep.means(task)]
        ends: list[Exception | None] = []
        if not sweep.is_dry and meant:
            attempt = partial(_attempted, act)
            ends = (
                self.executor.map(attempt, meant)
                if self.executor and len(meant) > 1
                else [attempt(each) for each in meant]
            )
        refusals = [end for end in ends if isinstance(end, RequestRefused)]
        failures = [end for end in ends if isinstance(end, Unavailable)]
        for refusal in refusals:
            if isinstance(refusal, FieldInvalid) and not tally.changed and sweep.after is None:
                raise refusal
            tally.refused[type(refusal)] += 1
        left_alone = sum(isinstance(end, NoLongerMatched) for end in ends)
        tally.changed += len(ends) - len(refusals) - len(failures) - left_alone
        if failures:
            # Those before it in the list may be done; doing them again does no harm.
            raise failures[0]
        tally.matched += len(meant) - left_alone
        tally.examined += len(segment)
        tally.after = segment[-1].id
        if len(ends) > left_alone:
            pace.keep(tally)


def _attempted(act: Callable[[Task], object], task: Task) -> Exception | None:
    """What kept a task from being acted on."""
    try:
        act(task)
    except (NoLongerMatched, RequestRefused, Unavailable) as error:
        return error
    return None


def _split(tasks: Sequence[Task], sweep: FilterAction, most: int) -> tuple[Sequence[Task], Sequence[Task]]:
    """The first of the tasks, up to the one that makes it as many as may be acted on at once; and the rest."""
    meant = 0
    for number, task in enumerate(tasks):
        meant += sweep.means(task)
        if meant == most:
            return tasks[: number + 1], tasks[number + 1 :]
    return tasks, ()


def _act_while_meant(sweep: FilterAction, act: Callable[[Task], object], task: Task) -> None:
    """Act on the version of a task that the filter matched; if it has another one by now, match that first.

    Raises:
        NoLongerMatched: its user, or an attempt, has made it something that is not meant.
        VersionDiffers: others keep writing it.
    """
    for _ in range(_TRIES - 1):
        try:
            act(task)
        except VersionDiffers as refusal:
            task = refusal.task
            if not sweep.means(task):
                raise NoLongerMatched from None
        else:
            return
    act(task)


class _Pace:
    """How fast a piece goes, and when it has to end."""

    def __init__(self, clock: Clock, sweep: FilterAction) -> None:
        self._clock = clock
        self._sweep = sweep
        self._started = clock.now()

    def is_over(self, tally: _Tally) -> bool:
        """Whether nothing more can be begun; something always can, however slow its pace."""
        if not self._sweep.is_dry and tally.matched >= self._sweep.limit:
            return True
        is_late = self._clock.now() + self._step > self._started + self._sweep.budget
        return is_late and tally.examined > 0

    def keep(self, tally: _Tally) -> None:
        """Wait after a task, so that even whoever goes on at once keeps the pace."""
        if self._step:
            self._clock.sleep_until(self._started + tally.matched * self._step)

    @property
    def _step(self) -> Millis:
        pace = None if self._sweep.is_dry else self._sweep.per_second
        return 0 if pace is None else round(SECOND / pace)
