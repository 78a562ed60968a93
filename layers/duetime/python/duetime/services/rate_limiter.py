"""Enforces rates just before a task's target is called; a task whose turn comes later is put back until its turn."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import LONGEST_STOP, RATE_BUSY_WAIT, RATE_LIFE, SHORTEST_STOP
from duetime.domain.rates import CONTROL, MICROS, Convert, RateState, Start, StartRequest, Wait, part_of
from duetime.domain.switches import SYSTEM
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.rates import Pace, RateName, RateUpdate
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Rate
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import RateStore

_TRIES = 6
_MAX_KNOWN = 1_000
"""Number of rate parts whose last known state a process caches."""


@frozen
class _Grant:
    """A start granted by one part of a rate.

    Attributes:
        before: the part's state on which the grant was decided.
        after: the part's state after the grant.
        earliest: earliest call of the target, in microseconds.
        latest: latest call of the target, in microseconds.
    """

    name: RateName
    request: StartRequest
    before: RateState
    after: RateState
    earliest: int
    latest: int


@frozen
class _Asked:
    """The part of a rate that decides about a task's start.

    Attributes:
        task: the task.
        rate: the rate that the task asks for.
        rule: the rate in effect, which is the task's own rate or the pinned rate.
        state: last known state of the part.
        is_fresh: whether the state was read for this task.
    """

    task: Task
    owner: str
    rate: Rate
    rule: Rate
    name: RateName
    pace: Pace
    state: RateState
    is_fresh: bool = False

    @classmethod
    def of(cls, task: Task, owner: str, rate: Rate, known: Mapping[RateName, RateState]) -> _Asked:
        """The part that the task's own rate selects."""
        name, pace = part_of(rate, owner, task.id)
        return cls(task, owner, rate, rate, name, pace, known.get(name, RateState()))

    @property
    def is_redirected(self) -> bool:
        """Whether the state shows that another rate is in effect.

        A state that was not read for this task can only show that a rate is pinned.

        A pinned rate may have more or fewer parts than the task's own rate.
        """
        pin = self.state.pin(self.rate.key)
        return (pin is not None or self.is_fresh) and (pin or self.rate) != self.rule

    def redirected(self, known: Mapping[RateName, RateState]) -> _Asked:
        """The part of the rate in effect."""
        rule = self.state.pin(self.rate.key) or self.rate
        name, pace = part_of(rule, self.owner, self.task.id)
        if name == self.name:
            return replace(self, rule=rule, pace=pace)
        state = known.get(name, RateState())
        # All parts have the same control number. The known state of a part with a different number may be outdated, so
        # the next write reads the current state.
        state = state if state.of(CONTROL) == self.state.of(CONTROL) else RateState()
        return replace(self, rule=rule, name=name, pace=pace, state=state, is_fresh=False)

    @property
    def is_listed(self) -> bool:
        """Whether writes add the rate to its owner's list; only the first of these writes costs more."""
        return self.owner != SYSTEM and not self.name.part


@frozen
class RateLimiter:
    """`duetime.ports.targets.RateLimits` that grants starts and places in line."""

    rates: RateStore
    runtime: Runtime
    _known: dict[RateName, RateState] = field(default_factory=dict, init=False)

    def held(self, task: Task, of_switches: tuple[Rate, ...]) -> Postponed | None:
        """Whether a claimed task must wait before its target is called, and until when.

        If the task may start, the call waits until the start time, for at most a second, and the caller must then call
        the target at once. With several rates, the slowest rate is asked first, because that rate is the most likely to
        refuse. If another rate then refuses, the granted start is given back. The start is lost if other tasks have
        used the first rate in the meantime.
        """
        rates = [(SYSTEM, rate) for rate in of_switches] + ([] if task.rate is None else [(task.owner, task.rate)])
        rates.sort(key=lambda each: each[1].limit / each[1].per_seconds)
        took, begins = 0, 0
        for _ in range(_TRIES):
            asked = self.runtime.now()
            grants = self._grants(task, rates, max(begins, (asked + took) * MICROS))
            if not isinstance(grants, list):
                return grants
            begins = max((grant.earliest for grant in grants), default=0)
            if any(grant.latest < begins for grant in grants):
                self._give_back(grants)
                continue
            self.runtime.clock.sleep_until(-(-begins // MICROS))
            now = self.runtime.now()
            # The process's clock may have been adjusted in the meantime.
            if all(grant.earliest <= now * MICROS <= grant.latest for grant in grants):
                return None
            # The next try asks for a later start, which allows for the store's latency.
            took = now - asked
        return self._busy(rates[0][1])

    def _grants(self, task: Task, rates: list[tuple[str, Rate]], at: int) -> list[_Grant] | Postponed:
        """A start from each rate, at the same time if possible; otherwise a postponement, which uses up no start."""
        grants: list[_Grant] = []
        for owner, rate in rates:
            try:
                answer = self._ask(task, owner, rate, max([at, *(grant.earliest for grant in grants)]))
            except Unavailable as error:
                # The task does not wait for the store, because its lease could end first, which would cost an attempt.
                self.runtime.telemetry.note("a rate could not be read", error=str(error), task=task.id.text)
                answer = self._busy(rate)
            if isinstance(answer, Postponed) and not grants:
                return answer
            if isinstance(answer, Postponed):
                places = self._give_back(grants, answer.until)
                return replace(answer, rate_places={**task.rate_places, **places, **(answer.rate_places or {})})
            grants.append(answer)
        return grants

    def _give_back(self, grants: list[_Grant], until: Millis | None = None) -> dict[str, int]:
        """Exchange unused starts for places in the rates' lines, at the time when the task returns.

        Without a place for this task, the other tasks in line would be granted the same start in turn, and put back.

        Returns:
            The places by rate key.
        """
        places: dict[str, int] = {}
        for grant in grants:
            with suppress(Unavailable):
                now, request = self.runtime.now(), grant.request
                update = request.given_back(grant.before, grant.after)
                applied, state = self._apply(grant.name, update, grant.after, now)
                if until is None or not applied or request.place is not None:
                    continue
                later = replace(request, at=until * MICROS)
                joined, after = self._apply(grant.name, later.join(state).update, state, now)
                if joined:
                    places[grant.name.key] = later.joined(after)[1]
        return places

    def _ask(self, task: Task, owner: str, rate: Rate, at: int) -> _Grant | Postponed:
        place = task.rate_places.get(rate.key)
        asked = _Asked.of(task, owner, rate, self._known)
        for _ in range(_TRIES):
            if asked.is_redirected:
                asked = asked.redirected(self._known)
                continue
            if asked.state.is_paused:
                if asked.is_fresh:
                    return self._paused(rate)
                # The rate may have been resumed since. A write based on an empty state returns the current state if it
                # fails.
                asked = replace(asked, state=RateState())
            now = self.runtime.now()
            request = StartRequest(asked.pace, task.priority, max(at, now * MICROS), place)
            step = request.next_step(asked.state, is_fresh=asked.is_fresh)
            if isinstance(step, Wait):
                return Postponed(step.until, _reason(rate))
            update = step.update.asked_for(rate, is_listed=asked.is_listed)
            before = asked.state
            applied, state = self._apply(asked.name, update, before, now)
            asked = replace(asked, state=state, is_fresh=True)
            if not applied or isinstance(step, Convert):
                continue
            if isinstance(step, Start):
                return _Grant(asked.name, request, before, state, *request.granted(state))
            until, place = request.joined(state)
            return Postponed(until, _reason(rate), {**task.rate_places, rate.key: place})
        return self._busy(rate)

    def _apply(self, name: RateName, update: RateUpdate, before: RateState, now: Millis) -> tuple[bool, RateState]:
        expires_at = None if before.is_controlled else max(update.needed_until, now) + RATE_LIFE
        applied, state = self.rates.apply(name, update.under(before), expires_at)
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[name] = state
        return applied, state

    def _paused(self, rate: Rate) -> Postponed:
        wait = SHORTEST_STOP + self.runtime.random_source.below(LONGEST_STOP - SHORTEST_STOP + 1)
        return Postponed(self.runtime.now() + wait, _reason(rate))

    def _busy(self, rate: Rate) -> Postponed:
        wait = SECOND + self.runtime.random_source.below(RATE_BUSY_WAIT)
        return Postponed(self.runtime.now() + wait, _reason(rate))


def _reason(rate: Rate) -> str:
    return f"rate {rate.key}"
