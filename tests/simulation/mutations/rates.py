"""Defects in rates: places in the line, turns of late tasks, and returned starts."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "a task that is too late for its turn keeps its place in the line forever",
        "domain/rates.py",
        "is_late = self.at - own > RATE_LATE_COMER * MICROS + 2 * interval",
        "is_late = False",
        test="tests/domain/test_rates.py",
    ),
    Mutant(
        "a place beyond the end of the line is kept",
        "domain/rates.py",
        "if own < state.of(LINES[rank]):",
        "if own < state.of(LINES[rank]) or own > 0:",
        test="tests/domain/test_rates.py",
    ),
    Mutant(
        "a task without a place overtakes the line",
        "domain/rates.py",
        "has_line = any(state.of(line) > self.at + interval for line in LINES[: rank + 1])",
        "has_line = False",
        test="tests/domain/test_rates.py",
    ),
    Mutant(
        "a start is returned to its rate although other starts have followed",
        "domain/rates.py",
        "return RateUpdate({}, {STARTS: -interval, **adds}, {STARTS: counted}, {STARTS: counted}, needed)",
        "return RateUpdate({}, {STARTS: -interval, **adds}, {}, {}, needed)",
        test="tests/domain/test_rates.py",
    ),
    Mutant(
        "a granted start is used however late its task is",
        "services/rate_limiter.py",
        "if all(grant.earliest <= now * MICROS <= grant.latest for grant in grants):",
        "if all(grant.earliest <= now * MICROS for grant in grants):",
        pairs="^rate-queued worker trigger$",
    ),
    Mutant(
        "an attempt starts although its rate was paused after it was read",
        "domain/rates.py",
        "return replace(self, at_least=at_least, at_most={**self.at_most, CONTROL: control})",
        "return self",
        pairs="^rate-queued (pause-rate worker|worker pause-rate)$",
    ),
    Mutant(
        "the start of a task that has a place moves the lines of lower priorities a second time",
        "domain/rates.py",
        "        if self.place is not None:\n            return {}\n        below",
        "        below",
        test="tests/domain/test_rates.py",
    ),
)
