"""Rates: an attempt is granted its start just before its target is called, or is put back until its turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.rate_parameters import RATE_BUSY_WAIT, RATE_LIFE
from duetime.domain.rates import MICROS, RateState, Start, StartRequest, Wait, part_of
from duetime.domain.switches import SYSTEM
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.rates import Join, RateName
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Rate
    from duetime.domain.times import Millis
    from duetime.ports.rates import RateStore
    from duetime.ports.runtime import Runtime

_TRIES = 6
_MAX_KNOWN = 1_000
"""Parts of rates whose last state a process remembers."""


@dataclass(frozen=True, slots=True)
class RateLimiter:
    """`duetime.ports.attempts.RateLimits`: grants starts, and places in line."""

    rates: RateStore
    runtime: Runtime
    _known: dict[RateName, RateState] = field(default_factory=dict, init=False)

    def held(self, task: Task, of_switches: tuple[Rate, ...]) -> Postponed | None:
        """Whether a claimed task whose target is about to be called must wait, and until when.

        If it may start, this returns once it may, a second later at most, and its target must be called at once. A
        start that one rate has granted is lost if another one does not: the slowest, which is the likeliest not to, is
        asked first.
        """
        rates = [(SYSTEM, rate) for rate in of_switches] + ([] if task.rate is None else [(task.owner, task.rate)])
        for owner, rate in sorted(rates, key=lambda each: each[1].limit / each[1].per_seconds):
            try:
                held = self._held(task, owner, rate)
            except Unavailable as error:
                # Its lease would have to end first, and cost an attempt.
                self.runtime.telemetry.note("a rate could not be asked", error=str(error), task=task.id.text)
                held = self._busy(rate)
            if held is not None:
                return held
        return None

    def _held(self, task: Task, owner: str, rate: Rate) -> Postponed | None:
        name, pace = part_of(rate, owner, task.id)
        place = task.rate_places.get(rate.key)
        state, took, is_fresh = self._known.get(name, RateState()), 0, False
        for _ in range(_TRIES):
            now = self.runtime.now()
            # What the store takes to answer must not use up the slack.
            request = StartRequest(pace, task.priority, (now + took) * MICROS, place)
            step = request.next_step(state, is_fresh=is_fresh)
            if isinstance(step, Wait):
                return Postponed(step.until, _reason(rate))
            applied, state = self._apply(name, step, now)
            is_fresh = True
            if not applied:
                continue
            if not isinstance(step, Start):
                until, place = request.joined(state)
                return Postponed(until, _reason(rate), {**task.rate_places, rate.key: place})
            earliest, latest = request.granted(state)
            self.runtime.clock.sleep_until(-(-earliest // MICROS))
            # Its clock may have been set meanwhile.
            if earliest <= self.runtime.now() * MICROS <= latest:
                return None
            took = self.runtime.now() - now
        return self._busy(rate)

    def _apply(self, name: RateName, step: Start | Join, now: Millis) -> tuple[bool, RateState]:
        applied, state = self.rates.apply(name, step.update, max(step.update.needed_until, now) + RATE_LIFE)
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[name] = state
        return applied, state

    def _busy(self, rate: Rate) -> Postponed:
        wait = SECOND + self.runtime.random_source.below(RATE_BUSY_WAIT)
        return Postponed(self.runtime.now() + wait, _reason(rate))


def _reason(rate: Rate) -> str:
    return f"rate {rate.key}"
