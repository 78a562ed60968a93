"""Shows an owner's rates with their waiting tasks; pauses, resets and pins rates."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.errors import RateNotFound, RequestError, Unavailable
from duetime.domain.operating_parameters import RATE_LIFE
from duetime.domain.rates import (
    CONTROL,
    MICROS,
    RateControl,
    RateName,
    RateState,
    RateStatus,
    RateWaiter,
    parts,
    parts_of,
)
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.tasks.states import State
from duetime.ports.tasks import ListQuery
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Rate
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import RateStore
    from duetime.services.tasks.control import TaskControl
    from duetime.services.tasks.read import TaskReader

_TRIES = 20
_LINE_SHOWN = 100
_MOST_PAGES = 10
"""Maximum number of pages of 100 waiting tasks that are read to find the tasks that wait for one rate."""


@frozen
class RateAdmin:
    """Shows an owner's rates, pauses them, and sets limits that replace the limits that tasks request.

    Attributes:
        task_control: checks waiting tasks at once if they may now start earlier.
    """

    rates: RateStore
    task_reader: TaskReader
    task_control: TaskControl
    runtime: Runtime

    def list(self, owner: str, after: str, limit: int) -> tuple[Sequence[RateStatus], str | None]:
        """A page of an owner's rates by key, and the key after which the next page begins, if any."""
        keys = self.rates.list_keys(owner, after, limit)
        firsts = self.rates.read_many([RateName(owner, key) for key in keys])
        more = [name for first, state in firsts.items() for name in _others(first, state)]
        states = {**firsts, **self.rates.read_many(more)}
        now = self.runtime.now()
        found = [
            RateStatus.of(key, {name.part: state for name, state in states.items() if name.key == key}, now)
            for key in keys
            if RateName(owner, key) in firsts
        ]
        return found, keys[-1] if len(keys) == limit else None

    def get(self, owner: str, key: str) -> tuple[RateStatus, Sequence[RateWaiter]]:
        """One rate, with the first tasks in line.

        Raises:
            RateNotFound: no task has asked for the rate recently, and the rate is neither paused nor pinned.
        """
        status = RateStatus.of(key, self._states(owner, key), self.runtime.now())
        line = sorted(self._waiting(owner, key), key=lambda task: (task.next_at, task.id))
        return status, [RateWaiter(task.id, task.due_at, task.next_at) for task in line[:_LINE_SHOWN]]

    def pause(self, owner: str, key: str) -> RateStatus:
        """Stop all starts under a rate, even if no task has used it yet; repeating the call changes nothing."""
        now = self.runtime.now()
        return self._change(owner, key, lambda control: control.paused(now))

    def resume(self, owner: str, key: str, by: Attribution) -> RateStatus:
        """Let attempts start again under a paused rate; the first waiting tasks are checked at once.

        Raises:
            RateNotFound: the rate does not exist.
        """
        self._states(owner, key, consistent=True)
        return self._change_and_check(owner, key, lambda control: replace(control, paused_at=None), by)

    def reset(self, owner: str, key: str, by: Attribution) -> RateStatus:
        """Reset a rate's count of starts, and empty its line; the first waiting tasks are checked at once.

        Raises:
            RateNotFound: the rate does not exist.
        """
        self._states(owner, key, consistent=True)
        return self._change_and_check(owner, key, lambda control: replace(control, resets=True), by)

    def pin(self, owner: str, pinned: Rate, by: Attribution) -> RateStatus:
        """Set a limit that replaces the limits that tasks request."""
        return self._change_and_check(owner, pinned.key, lambda control: replace(control, pin=pinned), by)

    def unpin(self, owner: str, key: str, by: Attribution) -> RateStatus:
        """Let the limits that tasks request apply again.

        Raises:
            RateNotFound: the rate does not exist.
        """
        self._states(owner, key, consistent=True)
        return self._change_and_check(owner, key, lambda control: replace(control, pin=None), by)

    def set_keys(self, owner: str, after: str, limit: int) -> Sequence[str]:
        """Some keys of paused or pinned rates that follow the given key; empty if no more follow."""
        while True:
            page, last = self.list(owner, after, limit)
            found = [status.key for status in page if status.control.is_set]
            if found or last is None:
                return found
            after = last

    def clear(self, owner: str, key: str) -> None:
        """Remove a rate's pause and pin; the rest of the rate's state expires on its own."""
        self._change(owner, key, lambda control: RateControl(control.number))

    def _states(self, owner: str, key: str, *, consistent: bool = False) -> Mapping[int, RateState]:
        found = self.rates.read_many(parts(owner, key), consistent=consistent)
        if not found:
            raise RateNotFound(key)
        return {name.part: state for name, state in found.items()}

    def _change_and_check(
        self, owner: str, key: str, change: Callable[[RateControl], RateControl], by: Attribution
    ) -> RateStatus:
        """Write an action that may let waiting tasks start earlier, and check the first waiting tasks."""
        status = self._change(owner, key, change)
        self._check_first(owner, key, by)
        return status

    def _change(self, owner: str, key: str, change: Callable[[RateControl], RateControl]) -> RateStatus:
        """Write an action to the first part, which is authoritative, and then to all other parts.

        If the process crashes in between, some parts lack the action; repeating the action writes it to all parts.

        Raises:
            Unavailable: too many concurrent actions, or the store did not answer.
        """
        names = parts(owner, key)
        states = dict(self.rates.read_many(names, consistent=True))
        first = states.get(names[0], RateState())
        for _ in range(_TRIES):
            # A random part makes the numbers of two actions within the same millisecond differ.
            at = self.runtime.now() * MICROS + self.runtime.random_source.below(MICROS)
            before = first.of(CONTROL)
            control = change(RateControl.of(key, first)).numbered(at)
            applied, first = self._write(names[0], control, first, before, before)
            if applied or first.of(CONTROL) == control.number:
                break
        else:
            raise Unavailable("too many concurrent actions on the rate; try again")
        write = partial(self._write_copy, control, states)
        after = dict(zip(names[1:], self.runtime.executor.map(write, names[1:]), strict=True))
        known = {name.part: state for name, state in {names[0]: first, **after}.items()}
        return RateStatus.of(key, known, self.runtime.now())

    def _write_copy(self, control: RateControl, states: Mapping[RateName, RateState], name: RateName) -> RateState:
        return self._write(name, control, states.get(name, RateState()), 0, control.number - 1)[1]

    def _write(
        self, name: RateName, control: RateControl, state: RateState, at_least: int, at_most: int
    ) -> tuple[bool, RateState]:
        update = replace(control.update(state, at_least, at_most), is_listed=name.part == 0)
        expires_at = None if control.is_set else max(update.needed_until, self.runtime.now()) + RATE_LIFE
        return self.rates.apply(name, update, expires_at)

    def _waiting(self, owner: str, key: str) -> Sequence[Task]:
        """The tasks that wait for a rate, among the owner's first waiting tasks."""
        wanted = TaskFilter(states=(State.WAITING,))
        query = ListQuery(owner, descending=False, limit=_LINE_SHOWN)
        found: list[Task] = []
        for _ in range(_MOST_PAGES):
            page = self.task_reader.list(query, wanted)
            found += [task for task in page.tasks if task.waiting_for == f"rate {key}"]
            if page.after is None or len(found) >= _LINE_SHOWN:
                break
            query = replace(query, after=page.after)
        return found

    def _check_first(self, owner: str, key: str, by: Attribution) -> None:
        """Let the first waiting tasks ask for a start now, because they may start earlier; other tasks ask as planned.

        This method never raises `Unavailable`, because the action is done, and each task asks again in any case.
        """

        def check(task: Task) -> None:
            try:
                self.task_control.check_now(owner, task.id, task.version, by)
            except (RequestError, Unavailable) as error:
                self.runtime.telemetry.note("a task was not checked early", task=task.id.text, error=str(error))

        try:
            self.runtime.executor.map(check, self._waiting(owner, key)[:_LINE_SHOWN])
        except Unavailable as error:
            self.runtime.telemetry.note("the line of a rate could not be read", error=str(error))


def _others(first: RateName, state: RateState) -> Sequence[RateName]:
    """The other parts of the rate in effect."""
    rate = state.pin(first.key) or state.asked(first.key)
    return [] if rate is None else parts(first.owner, first.key)[1 : parts_of(rate)]
