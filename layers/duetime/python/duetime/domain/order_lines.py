"""Ordered keys, which make a key's tasks run one after another, in the order of their creation.

Decisions are returned as values.

Each key has a line. A task joins the line when it is created, with the key's next number, and leaves the line when it
ends. One task at a time has the turn, from before its first attempt to its outcome, including retries and pauses. An
attempt therefore needs no additional write if its task already has the turn.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import (
    LATEST_ARRIVAL,
    LONGEST_ORDER_CHECK,
    MAX_CLOCK_DIFFERENCE,
    SHORTEST_ORDER_CHECK,
)
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import AfterFailure
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

WAITS_FOR_ITS_TURN = "order "
"""Prefix of the wait reason of a task whose turn has not come; the prefix is followed by the key."""


@frozen(order=True)
class LineName:
    """Name of a line; keys are unique per owner."""

    owner: str
    key: str


@frozen(order=True)
class LinePlace:
    """The place of a task in a line.

    Attributes:
        number: number of the place, which is greater than the number of every task whose creation request had ended
            before this place was created.
        since: when the place was written, just before the task's record.
    """

    number: int
    task_id: TaskId
    since: Millis

    def is_being_created(self, now: Millis) -> bool:
        """Whether the missing record of the place's task may still be written, if its creator has not crashed."""
        return now < self.since + LATEST_ARRIVAL + MAX_CLOCK_DIFFERENCE


@frozen
class OrderLine:
    """The first tasks in a line, as read.

    Attributes:
        turn: the task that has or last had the turn; `None` if no task ever had the turn.
        version: incremented whenever the turn is given; 0 before the first turn.
        places: the first places, in order.
        is_whole: whether `places` has all places in the line.
    """

    name: LineName
    turn: TaskId | None = None
    version: int = 0
    places: tuple[LinePlace, ...] = ()
    is_whole: bool = True

    def reaches(self, number: int) -> bool:
        """Whether all places before a given number were read."""
        return self.is_whole or (bool(self.places) and number <= self.places[-1].number)

    def lacks(self, number: int) -> bool:
        """Whether it is certain that the line has no place with a given number."""
        return self.reaches(number) and all(place.number != number for place in self.places)

    def index(self, number: int) -> int:
        """How many of the places that were read are before a given number."""
        return sum(1 for place in self.places if place.number < number)


@frozen
class OrderedKey:
    """An ordered key as shown to users.

    Attributes:
        turn: the task that the other tasks wait for; `None` if no task has the turn.
        waiting: the first tasks that wait behind that task, in order; empty in lists.
    """

    key: str
    turn: Task | None
    waiting: Sequence[Task] = ()


class PlaceStatus(Enum):
    """Status of a place in a line."""

    OPEN = "its task will run, is running, or has failed and stops the line"
    COMING = "its task is being created"
    GONE = "its task has ended, has another place, or was never created"


def line_of(task: Task) -> LineName | None:
    """The line of a task; `None` if it has no ordered key."""
    return None if task.order is None else LineName(task.owner, task.order.key)


def place_status(place: LinePlace, task: Task | None, now: Millis) -> PlaceStatus:
    """Status of a place, given its task's record."""
    if task is None:
        return PlaceStatus.COMING if place.is_being_created(now) else PlaceStatus.GONE
    return PlaceStatus.OPEN if task.order_number == place.number and holds_line(task, now) else PlaceStatus.GONE


def holds_line(task: Task, now: Millis) -> bool:
    """Whether the next task in the line must wait for a given task.

    A task with an outcome blocks the line until its worker lets the next task in, or the worker's lease ends.
    """
    if not task.is_terminal or stops_line(task):
        return True
    is_leased = task.lease_expires_at is not None and task.lease_expires_at + MAX_CLOCK_DIFFERENCE > now
    return task.finished_at is None and is_leased


def stops_line(task: Task) -> bool:
    """Whether an ended task stops its line, because it has failed for good and was neither retried nor deleted."""
    has_failed = task.state in {State.FAILED, State.ROLLED_BACK} and task.error is not None
    return has_failed and not task.erased and task.order is not None and task.order.on_failure is AfterFailure.STOP


def may_have_lost_turn(task: Task) -> bool:
    """Whether a task's turn must be confirmed: the task had ended before, and another task may be taking the turn."""
    return task.reopened_at is not None or task.state is State.ROLLING_BACK


def is_waiting_for_turn(task: Task) -> bool:
    """Whether the last check of a task found that another task had the turn."""
    return task.waiting_for is not None and task.waiting_for.startswith(WAITS_FOR_ITS_TURN)


def check_interval(index: int, first: Task | None, now: Millis) -> Millis:
    """How long a task waits until it checks its line again. When its turn comes, the task is enqueued at once.

    Args:
        index: how many places are known to be ahead of the task's place.
        first: the task that the task waits for, if that task's record exists.
        now: the time.
    """
    until_first = 0 if first is None or first.is_terminal else (first.next_at - now) // 2
    return min(LONGEST_ORDER_CHECK, max(SHORTEST_ORDER_CHECK * max(1, index), until_first))
