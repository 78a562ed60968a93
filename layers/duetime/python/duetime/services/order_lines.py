"""Checks whether a task with an ordered key has the turn, lets in the next task after an outcome, and shows keys.

A conditional write gives the turn, either when the previous task ends or during the next task's own check. The check
also notices an ended task whose hand-over was lost, so no step in this module has to be repeated.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard
from duetime.domain.errors import OrderedKeyNotFound, Unavailable
from duetime.domain.operating_parameters import LATEST_ARRIVAL, MAX_CLOCK_DIFFERENCE
from duetime.domain.order_lines import (
    WAITS_FOR_ITS_TURN,
    LineName,
    LinePlace,
    OrderedKey,
    PlaceStatus,
    check_interval,
    holds_line,
    is_waiting_for_turn,
    line_of,
    may_have_lost_turn,
    place_status,
    stops_line,
)
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.tasks.states import LEASED, LEGAL, Move
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.order_lines import OrderLine
    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import Clock, Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer

_TRIES = 20
_SHOWN = 25
"""Number of places read together; their items fit into one read unit, which is the minimum cost of a query."""


@frozen
class _Ahead:
    """The task that another task waits for, and the waiting task's position in the line.

    Attributes:
        index: number of known places before the waiting task's place.
        task_id: id of the task ahead.
        task: record of the task ahead; `None` while the record is being created.
    """

    index: int
    task_id: TaskId
    task: Task | None


@frozen
class OrderLines:
    """Keeps the order of tasks with an ordered key."""

    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime

    def held(self, task: Task) -> Postponed | None:
        """Whether a just-claimed task must wait for an earlier task, and why; `None` if the task has the turn.

        Raises:
            Unavailable: the store did not answer.
        """
        name = line_of(task)
        if name is None or task.order_number is None:
            return None
        for _ in range(_TRIES):
            line = self.stores.order_lines.read(name, _SHOWN)
            if line.turn == task.id and not may_have_lost_turn(task):
                return None
            if (ahead := self._ahead(line, task)) is not None:
                if line.turn == task.id:
                    self._give_back(line, ahead)
                return self._wait(line, task, ahead)
            # If all tasks that were read have ended, the next try reads the tasks behind them.
            if line.reaches(task.order_number) and self._give_turn(line, task.id):
                return None
        return Postponed(self.runtime.now() + SECOND, f"{WAITS_FOR_ITS_TURN}{name.key}")

    def check_again(self, task: Task) -> None:
        """Enqueue a task that was just put back, if the task has received the turn since its check.

        This method never raises `Unavailable`, because the task checks its line again in any case.
        """
        name = line_of(task)
        if name is None or not is_waiting_for_turn(task):
            return
        with suppress(Unavailable):
            if self.stores.order_lines.read(name, 0).turn == task.id:
                self._enqueue(task)

    def release(self, task: Task) -> None:
        """Let in the next task in line after a task's end; repeating the call is safe.

        Raises:
            Unavailable: the store did not answer.
        """
        name = line_of(task)
        if name is None or task.order_number is None or stops_line(task):
            return
        self.stores.order_lines.leave(name, task.order_number)
        for _ in range(_TRIES):
            if self._handed_on(name, task):
                return

    def release_if_possible(self, task: Task) -> None:
        """Like `release`, but never raises `Unavailable`, because the next task checks the line in any case."""
        try:
            self.release(task)
        except Unavailable as error:
            self.runtime.telemetry.note("the next task of a key was not let in", task=task.id.text, error=str(error))

    def _handed_on(self, name: LineName, leaving: Task) -> bool:
        """Try once to give the turn to the first task in line; returns `True` if nothing is left to do."""
        line = self.stores.order_lines.read(name, _SHOWN)
        if line.turn not in (None, leaving.id):
            current = self.stores.tasks.read(line.turn)
            if current is not None and holds_line(current, self.runtime.now()):
                # The process that gave this task the turn may have crashed before enqueuing it.
                self._enqueue(current)
                return True
        following = self._open_places(line)
        place, task = next(following, (None, None))
        if place is None:
            # If the line is longer, only the first places were read. Their tasks have all ended, so the places are
            # removed.
            return line.is_whole
        if task is None:
            # The task's creator writes the record soon. If the creator has crashed, the task behind is checked and
            # continues.
            behind = next((each for _, each in following if each is not None), None)
            if behind is not None:
                self._enqueue(behind, LATEST_ARRIVAL + 2 * MAX_CLOCK_DIFFERENCE)
            return True
        if not self._give_turn(line, task.id):
            return False
        if task.state in LEASED or not is_waiting_for_turn(task):
            # The task may have been put back since it was read, without noticing that it has the turn.
            task = self.stores.tasks.read(task.id) or task
        self._enqueue(task)
        return True

    def _give_back(self, line: OrderLine, ahead: _Ahead) -> None:
        """Give the turn of a retried task to an earlier task, because otherwise they would wait for each other."""
        if self._give_turn(line, ahead.task_id) and ahead.task is not None:
            self._enqueue(ahead.task)

    def _give_turn(self, line: OrderLine, task_id: TaskId) -> bool:
        return self.stores.order_lines.give_turn(line, task_id, self.runtime.nonce(), self.runtime.now())

    def _ahead(self, line: OrderLine, task: Task) -> _Ahead | None:
        """The task that the given task waits for, or `None` if the given task may take the turn."""
        if line.turn not in (None, task.id):
            current = self.stores.tasks.read(line.turn)
            if current is not None and holds_line(current, self.runtime.now()):
                return _Ahead(line.index(task.order_number or 0), current.id, current)
        for place, first in self._open_places(line):
            if place.number >= (task.order_number or 0):
                return None
            return _Ahead(line.index(task.order_number or 0), place.task_id, first)
        return None

    def _open_places(self, line: OrderLine) -> Iterator[tuple[LinePlace, Task | None]]:
        """The places, in order, whose tasks are open or being created; other places are removed."""
        for place in line.places:
            task = self.stores.tasks.read(place.task_id)
            match place_status(place, task, self.runtime.now()):
                case PlaceStatus.OPEN:
                    yield place, task
                case PlaceStatus.COMING:
                    yield place, None
                case PlaceStatus.GONE:
                    self.stores.order_lines.leave(line.name, place.number)

    def _wait(self, line: OrderLine, task: Task, ahead: _Ahead) -> Postponed:
        """Put a task back, and rewrite its place if the place was removed because the record was written late."""
        now, number = self.runtime.now(), task.order_number or 0
        if line.lacks(number):
            self.stores.order_lines.join(line.name, LinePlace(number, task.id, now))
        most = check_interval(ahead.index, ahead.task, now)
        if ahead.task is None:
            most = 2 * (LATEST_ARRIVAL + MAX_CLOCK_DIFFERENCE)
        until = now + most // 2 + self.runtime.random_source.below(most // 2)
        return Postponed(until, f"{WAITS_FOR_ITS_TURN}{line.name.key}")

    def _enqueue(self, task: Task, after: int = 0) -> None:
        """Schedule a check of a task if it waits for its turn; other waiting tasks have their own checks."""
        for _ in range(_TRIES):
            if not is_waiting_for_turn(task) or task.state not in LEGAL[Move.REPLACE].sources:
                return
            at = self.runtime.now() + after
            result = self.enqueuer.move(task, Move.REPLACE, at, Guard(version=task.version), {})
            if isinstance(result, Applied) or result.task is None:
                return
            task = result.task


_LINE_SHOWN = 100


@frozen
class OrderedKeyReader:
    """Shows an owner's ordered keys."""

    stores: Stores
    clock: Clock

    def list(self, owner: str, after: str, limit: int) -> tuple[Sequence[OrderedKey], str | None]:
        """A page of an owner's ordered keys without their lines, and the key after which the next page begins."""
        keys = self.stores.order_lines.list_keys(owner, after, limit)
        lines = self.stores.order_lines.read_many([LineName(owner, key) for key in keys])
        tasks = self.stores.tasks.read_many([line.turn for line in lines if line.turn is not None])
        found = [OrderedKey(line.name.key, self._turn(line, tasks)) for line in lines]
        return found, keys[-1] if len(keys) == limit else None

    def get(self, owner: str, key: str) -> OrderedKey:
        """One ordered key with the first tasks in line.

        Raises:
            OrderedKeyNotFound: no task has used the key.
        """
        line = self.stores.order_lines.read(LineName(owner, key), _LINE_SHOWN)
        if line.turn is None and not line.places:
            raise OrderedKeyNotFound(key)
        ids = {place.task_id for place in line.places} | ({line.turn} if line.turn else set())
        tasks = self.stores.tasks.read_many(sorted(ids))
        now = self.clock.now()
        found = [(place, tasks.get(place.task_id)) for place in line.places if place.task_id != line.turn]
        waiting = [task for place, task in found if task and place_status(place, task, now) is PlaceStatus.OPEN]
        return OrderedKey(key, self._turn(line, tasks), waiting)

    def _turn(self, line: OrderLine, tasks: Mapping[TaskId, Task]) -> Task | None:
        task = None if line.turn is None else tasks.get(line.turn)
        return task if task is not None and holds_line(task, self.clock.now()) else None
