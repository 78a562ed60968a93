"""What an owner sees of a rate, and sets for it: a pause, or a limit that holds instead of those that tasks ask for.

An action has a number greater than those of earlier ones, which each part of the rate stores with it. The first part
decides about concurrent actions; the others take what has the greatest number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_RATE_LIMIT
from duetime.domain.operating_parameters import MAX_STARTS_PER_RATE_PART
from duetime.domain.rates import (
    CONTROL,
    LINES,
    MICROS,
    PAUSED,
    PINNED,
    STARTS,
    RateName,
    RateState,
    RateUpdate,
    StartRequest,
    pace_of,
    parts_of,
)
from duetime.domain.tasks.task_options import Priority
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task_options import Rate
    from duetime.domain.times import Millis

MOST_PARTS = -(-MAX_RATE_LIMIT // MAX_STARTS_PER_RATE_PART)
"""Parts of the fastest rate: an action is written to all of them, because any task may ask any of them next."""


def parts(owner: str, key: str) -> Sequence[RateName]:
    """The names of all parts that a rate may have, the first one first."""
    return [RateName(owner, key, part) for part in range(MOST_PARTS)]


@frozen
class RateControl:
    """What an owner has set for a rate.

    Attributes:
        number: of the action that set it.
        paused_at: when it was paused; `None` if it is not.
        pin: the rate that holds instead of those of tasks; `None` if there is none.
        resets: whether this action also forgets the starts that were counted, and the line.
    """

    number: int = 0
    paused_at: Millis | None = None
    pin: Rate | None = None
    resets: bool = False

    @classmethod
    def of(cls, key: str, state: RateState) -> RateControl:
        """What a part has stored."""
        return cls(state.of(CONTROL), state.of(PAUSED) or None, state.pin(key))

    @property
    def is_set(self) -> bool:
        """Whether the parts must be kept."""
        return self.paused_at is not None or self.pin is not None

    def paused(self, now: Millis) -> RateControl:
        """The control with a pause; an earlier one continues."""
        return replace(self, paused_at=self.paused_at or now)

    def numbered(self, at: int) -> RateControl:
        """The control as a new action at a time in microseconds."""
        return replace(self, number=max(at, self.number + 1))

    def update(self, state: RateState, at_least: int, at_most: int) -> RateUpdate:
        """The write of this action to a part.

        Args:
            state: state of the part as read.
            at_least: the number of the action before it, at least.
            at_most: the same, at most.
        """
        pin = (self.pin.limit, self.pin.per_seconds, self.pin.burst) if self.pin else (0, 0, 0)
        sets = {CONTROL: self.number, PAUSED: self.paused_at or 0, **dict(zip(PINNED, pin, strict=True))}
        if self.resets:
            sets |= dict.fromkeys((STARTS, *LINES), 0)
        required = {CONTROL: at_least} if at_least else {}
        needed_until = -(-max(state.of(name) for name in (STARTS, *LINES)) // MICROS)
        return RateUpdate(sets, {}, required, {CONTROL: at_most}, needed_until, is_listed=True)


@frozen
class RateStatus:
    """The present state of a rate.

    Attributes:
        rate: the rate that holds: the pinned one, or that of the latest task; `None` if no task has used it yet.
        asked: the rate of the latest task.
        used: starts that still count, so that as many fewer can follow at once.
        available: starts that are possible at once.
        waiting: places in its line that are still to come, also of tasks that were cancelled since; `None` while it is
            paused, as tasks get no places then.
        next_free_at: when a task of normal priority that asked now could start; `None` while it is paused.
    """

    key: str
    control: RateControl
    rate: Rate | None
    asked: Rate | None
    used: int = 0
    available: int = 0
    waiting: int | None = 0
    next_free_at: Millis | None = None

    @classmethod
    def of(cls, key: str, states: Mapping[int, RateState], now: Millis) -> RateStatus:
        """The state of a rate.

        Args:
            key: key of the rate.
            states: states of its parts by number.
            now: the time.
        """
        first = states.get(0) or next(iter(states.values()), RateState())
        control, asked = RateControl.of(key, first), first.asked(key)
        rate = control.pin or asked
        if rate is None:
            return cls(key, control, None, None, waiting=None if control.paused_at else 0)
        used = available = waiting = 0
        turns = []
        for part in range(parts_of(rate)):
            pace = pace_of(rate, part)
            request, state = StartRequest(pace, Priority.NORMAL, now * MICROS), states.get(part, RateState())
            state = request.converted(state)
            ahead = min(pace.burst + 1, max(0, -(-(state.of(STARTS) - request.at) // pace.interval)))
            used, available = used + ahead, available + pace.burst + 1 - ahead
            waiting += request.line_length(state)
            turns.append(request.turn(state))
        if control.paused_at is not None:
            return cls(key, control, rate, asked, used, 0, None, None)
        return cls(key, control, rate, asked, used, available, waiting, -(-min(turns) // MICROS))


@frozen
class RateWaiter:
    """A task that waits for a rate.

    Attributes:
        next_at: when it is its turn, or, while the rate is paused, when it is checked again.
    """

    task_id: TaskId
    due_at: Millis
    next_at: Millis
