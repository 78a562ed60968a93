"""Doing something with many tasks by a filter: a bounded piece at a time, paced, and resumed where it stopped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from duetime.domain.bulk.filter_action import FilterResult
from duetime.domain.errors import FieldInvalid, RequestError, Unavailable, VersionMismatch
from duetime.domain.limits import MAX_EXAMINED, MAX_PAGE
from duetime.domain.tasks.action_history import BY_SYSTEM
from duetime.domain.tasks.states import State
from duetime.domain.times import SECOND
from duetime.ports.tasks import ListQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.bulk.filter_action import FilterAction
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.creation import TaskChange
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Runtime
    from duetime.ports.tasks import TaskStore
    from duetime.services.tasks.control import TaskControl
    from duetime.services.tasks.read import TaskReader
    from duetime.services.tasks.update import TaskUpdater


_AT_ONCE = 48
"""Tasks that are acted on before it is asked again whether there is time for more."""
_TRIES = 5
"""How often a task is acted on again that others write in between."""


class NoLongerMatched(Exception):
    """The filter matched a task when it was read, and does not any more: it is left alone, and nobody hears of it."""


@dataclass(slots=True)
class Counts:
    """What a piece has come to so far."""

    after: TaskId | None
    examined: int = 0
    matched: int = 0
    affected: int = 0
    refused: Counter[type[RequestError]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class FilteredTasks:
    """Does one thing with each of an owner's tasks that a filter means; doing a piece again does no harm."""

    tasks: TaskStore
    task_reader: TaskReader
    task_updater: TaskUpdater
    task_control: TaskControl
    runtime: Runtime

    def cancel(self, owner: str, action: FilterAction, *, force: bool, by: Attribution = BY_SYSTEM) -> FilterResult:
        """Cancel a piece; by force, ask those that run to stop."""
        cancel = self.task_control.cancel_by_force if force else self.task_updater.cancel
        return self._apply(owner, action, lambda task: cancel(owner, task.id, task.version, by))

    def update(self, owner: str, action: FilterAction, wanted: TaskChange, by: Attribution = BY_SYSTEM) -> FilterResult:
        """Change a piece.

        Raises:
            FieldInvalid: the first of the tasks cannot be changed so; none was. Further on such a task is counted.
        """
        update = self.task_updater.update
        return self._apply(owner, action, lambda task: update(owner, task.id, wanted, task.version, by))

    def retry(self, owner: str, action: FilterAction, by: Attribution = BY_SYSTEM) -> FilterResult:
        """Have a piece of the failed tasks tried again; the filter asks for that state."""
        return self._apply(owner, action, lambda task: self.task_control.retry(owner, task.id, task.version, by))

    def _apply(self, owner: str, action: FilterAction, act: Callable[[Task], object]) -> FilterResult:
        """One piece; raises `Unavailable` only if nothing was done yet."""
        counts = Counts(action.after)
        try:
            self._go_through(owner, action, counts, partial(_act_while_meant, action, act))
        except Unavailable:
            if not counts.affected:
                raise
        return FilterResult(counts.examined, counts.matched, counts.affected, dict(counts.refused), counts.after)

    def _go_through(self, owner: str, action: FilterAction, counts: Counts, act: Callable[[Task], object]) -> None:
        pace = Pace(self.runtime.clock, action)
        failed_only = action.wanted.states == (State.FAILED,)
        while counts.examined < MAX_EXAMINED:
            query = ListQuery(
                owner, counts.after, descending=action.descending, limit=MAX_PAGE, failed_only=failed_only
            )
            ids = self.tasks.list_ids(query)
            tasks: Sequence[Task] = self.task_reader.get_many(owner, ids)
            while tasks:
                if pace.is_over(counts):
                    return
                segment, tasks = _split(tasks, action, self._at_once(action, counts))
                self._do(segment, action, counts, pace, act)
            if len(ids) < MAX_PAGE:
                counts.after = None
                return
            counts.after = ids[-1]

    def _at_once(self, action: FilterAction, counts: Counts) -> int:
        """How many tasks may be acted on at a time: one while a pace is kept, and at first, which may reject all."""
        if action.is_dry:
            return MAX_EXAMINED
        is_first = not counts.affected and action.after is None
        return 1 if action.per_second or is_first else min(_AT_ONCE, action.limit - counts.matched)

    def _do(
        self,
        segment: Sequence[Task],
        action: FilterAction,
        counts: Counts,
        pace: Pace,
        act: Callable[[Task], object],
    ) -> None:
        """Act on those of some tasks that are meant; the counts move behind them all, unless the store fails."""
        meant = [task for task in segment if action.means(task)]
        ends: list[Exception | None] = []
        if not action.is_dry and meant:
            attempt = partial(_attempted, act)
            ends = self.runtime.executor.map(attempt, meant) if len(meant) > 1 else [attempt(each) for each in meant]
        refusals = [end for end in ends if isinstance(end, RequestError)]
        failures = [end for end in ends if isinstance(end, Unavailable)]
        for refusal in refusals:
            if isinstance(refusal, FieldInvalid) and not counts.affected and action.after is None:
                raise refusal
            counts.refused[type(refusal)] += 1
        left_alone = sum(isinstance(end, NoLongerMatched) for end in ends)
        counts.affected += len(ends) - len(refusals) - len(failures) - left_alone
        if failures:
            # Those before it in the list may be done; doing them again does no harm.
            raise failures[0]
        counts.matched += len(meant) - left_alone
        counts.examined += len(segment)
        counts.after = segment[-1].id
        if len(ends) > left_alone:
            pace.keep(counts)


def _attempted(act: Callable[[Task], object], task: Task) -> Exception | None:
    """What kept a task from being acted on."""
    try:
        act(task)
    except (NoLongerMatched, RequestError, Unavailable) as error:
        return error
    return None


def _split(tasks: Sequence[Task], action: FilterAction, most: int) -> tuple[Sequence[Task], Sequence[Task]]:
    """The first of the tasks, up to the one that makes it as many as may be acted on at once; and the rest."""
    meant = 0
    for number, task in enumerate(tasks):
        meant += action.means(task)
        if meant == most:
            return tasks[: number + 1], tasks[number + 1 :]
    return tasks, ()


def _act_while_meant(action: FilterAction, act: Callable[[Task], object], task: Task) -> None:
    """Act on the version of a task that the filter matched; if it has another one by now, match that first.

    Raises:
        NoLongerMatched: its user, or an attempt, has made it something that is not meant.
        VersionMismatch: others keep writing it.
    """
    for _ in range(_TRIES - 1):
        try:
            act(task)
        except VersionMismatch as refusal:
            task = refusal.task
            if not action.means(task):
                raise NoLongerMatched from None
        else:
            return
    act(task)


class Pace:
    """How fast a piece goes, and when it has to end."""

    def __init__(self, clock: Clock, action: FilterAction) -> None:
        self._clock = clock
        self._apply = action
        self._started = clock.now()

    def is_over(self, counts: Counts) -> bool:
        """Whether nothing more can be begun; something always can, however slow its pace."""
        if not self._apply.is_dry and counts.matched >= self._apply.limit:
            return True
        is_late = self._clock.now() + self._step > self._started + self._apply.budget
        return is_late and counts.examined > 0

    def keep(self, counts: Counts) -> None:
        """Wait after a task, so that even whoever goes on at once keeps the pace."""
        if self._pace:
            self._clock.sleep_until(self._started + ceil(counts.matched * SECOND / self._pace))

    @property
    def _pace(self) -> float | None:
        return None if self._apply.is_dry else self._apply.per_second

    @property
    def _step(self) -> Millis:
        return ceil(SECOND / self._pace) if self._pace else 0
