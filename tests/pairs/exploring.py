"""Every interleaving of a pair of operations, and whether its end is one that some order of the two could have had."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from tests.pairs.interleaving import CallFault, Interleaving, Pair, Result, run
from tests.pairs.invariants import definition_of, without_placed
from tests.pairs.operations import ACCEPTED, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tests.pairs.invariants import State
    from tests.pairs.operations import Operation

_Outcome: TypeAlias = "tuple[str, ...] | None"


@dataclass(frozen=True)
class Found:
    """An interleaving that broke something."""

    interleaving: Interleaving
    result: Result
    violations: list[str]


@dataclass(frozen=True)
class _End:
    """How things may be in the end: what each of the two was told, `None` of one that did not run, and the state."""

    first: _Outcome
    second: _Outcome
    state: State

    def explains(self, pair: Pair, result: Result) -> bool:
        """Whether an interleaving may have ended like this."""
        return self.state == result.state and self.agrees(pair, result)

    def agrees(self, pair: Pair, result: Result) -> bool:
        """Whether both were answered like this."""
        first, second = result.outcomes
        return _agrees(pair.first, self.first, first) and _agrees(pair.second, self.second, second)


def _agrees(operation: Operation, told: _Outcome, other: _Outcome) -> bool:
    """Whether an answer of an interleaving is that of an order; of what an order leaves out, nothing was accepted."""
    if other is None or told is None:
        return ACCEPTED not in (other or ())
    if operation.is_repeatable:
        return True
    return len(told) == len(other) and all(
        UNKNOWN in pair or pair[0] == pair[1] for pair in zip(told, other, strict=True)
    )


class Exploration:
    """All interleavings of one pair.

    Attributes:
        runs: how many were run.
        known: how many of them had not to settle, because an earlier one had left the same state behind.
        calls: how many calls of AWS were made in them.
    """

    def __init__(
        self, pair: Pair, faults: tuple[CallFault, ...] = tuple(CallFault), settled: set[str] | None = None
    ) -> None:
        self.pair = pair
        self.faults = faults
        self.runs = self.known = self.calls = 0
        self._settled = set() if settled is None else settled
        self._orders: list[_End] = []
        self._steps: list[_End] = []

    def found(self) -> Iterator[Found]:
        """Run them; what broke something."""
        yield from self._in_order()
        yield from self._all(None)
        for fault in self.faults:
            yield from self._all(fault)

    def alone(self, wanted: Interleaving) -> Found:
        """One interleaving, whether or not it breaks something."""
        for _ in self._in_order():
            pass
        result = self._result(wanted)
        return Found(wanted, result, [*result.violations, *self._unexplained(wanted, result)])

    def _in_order(self) -> Iterator[Found]:
        """One request after the other, in each order, and one of the two alone: the ends that are right."""
        pair, swapped = self.pair, Pair(self.pair.subject, self.pair.second, self.pair.first)
        for runs in ((True, False), (False, True), (False, False)):
            yield from self._learn(Interleaving(pair, runs=runs, is_order=True), self._orders)
        for each in (pair, swapped):
            whole = yield from self._learn(Interleaving(each, is_order=True), self._orders)
            for k, m in product((*whole.requests[0], None), (*whole.requests[1], None)):
                if (k, m) != (None, None):
                    yield from self._learn(Interleaving(each, k, m, is_order=True), self._orders)
        for each in (pair, swapped):
            if each.first.goes_on or (each.first.is_step and not each.second.is_step):
                yield from self._stepwise(each)

    def _stepwise(self, pair: Pair) -> Iterator[Found]:
        """What a user asks for at once, between two calls of a step that takes its time, has an end that is right."""
        wanted = Interleaving(pair, 1, is_order=True)
        while True:
            result = yield from self._learn(wanted, self._steps)
            if not result.reached[0]:
                return
            wanted = replace(wanted, k=(wanted.k or 0) + 1)

    def _learn(self, wanted: Interleaving, ends: list[_End]) -> Generator[Found, None, Result]:
        result = self._result(wanted)
        first, second = result.outcomes if wanted.pair == self.pair else result.outcomes[::-1]
        end = _End(first, second, result.state)
        if end not in ends:
            ends.append(end)
        if result.violations:
            yield Found(wanted, result, result.violations)
        return result

    def _all(self, fault: CallFault | None) -> Iterator[Found]:
        wanted = Interleaving(self.pair, 1 if fault is None else 0, None, fault)
        while True:
            result = yield from self._run(wanted)
            if not result.reached[0]:
                return
            yield from self._second_stops(replace(wanted, m=1))
            wanted = replace(wanted, k=(wanted.k or 0) + 1)

    def _second_stops(self, wanted: Interleaving) -> Iterator[Found]:
        while wanted.fault is not CallFault.DIES:
            result = yield from self._run(wanted)
            if not result.reached[1]:
                return
            wanted = replace(wanted, m=(wanted.m or 0) + 1)

    def _run(self, wanted: Interleaving) -> Generator[Found, None, Result]:
        result = self._result(wanted)
        violations = [*result.violations, *self._unexplained(wanted, result)]
        if violations:
            yield Found(wanted, result, violations)
        return result

    def _unexplained(self, wanted: Interleaving, result: Result) -> list[str]:
        """What of the end no order explains. A step that stops midway may have ends of its own, but defines nothing."""
        first, second = wanted.pair.first, wanted.pair.second
        if (first.is_step and second.is_step) or not wanted.pair.subject.is_compared:
            return []
        takes_time = first.takes_time or second.takes_time
        if not (takes_time and wanted.fault) and not any(
            end.explains(self.pair, result) for end in self._orders + self._steps
        ):
            return [self._told(result, self._orders + self._steps)]
        # Some requests are accepted only while a step goes on, such as the word of a target whose attempt goes on.
        ends = self._orders if any(end.agrees(self.pair, result) for end in self._orders) else self._steps
        defined = [replace(end, state=definition_of(end.state)) for end in ends]
        end_defined = replace(result, state=definition_of(result.state))
        is_met = wanted.fault is not None and (first.is_step or second.is_step)
        if takes_time and not is_met and not any(end.explains(self.pair, end_defined) for end in defined):
            return [self._told(end_defined, defined)]
        return []

    def _result(self, wanted: Interleaving) -> Result:
        self.runs += 1
        result = run(wanted, self._settled)
        if wanted.pair.first.takes_time or wanted.pair.second.takes_time:
            result.state = without_placed(result.state)
        self.known += result.is_known
        self.calls += result.all_calls
        return result

    def _told(self, result: Result, ends: list[_End]) -> str:
        near = [end for end in ends if end.agrees(self.pair, result)]
        told = " and ".join(f"{'/'.join(outcome) or 'done'}" for outcome in result.outcomes if outcome is not None)
        if not near:
            return f"no order of the two is answered {told}; it ended as {_short(result.state, ())}"
        return f"answered {told}, it ended as no order does: " + "; ".join(
            _short(result.state, end.state) for end in near
        )


def _short(state: State, other: State) -> str:
    """Where a state differs from another."""
    if not other:
        return "; ".join(" ".join(part) for part in state)
    mine = [part for part in state if part not in other]
    theirs = [part for part in other if part not in state]
    lines = []
    for number in range(max(len(mine), len(theirs))):
        one = mine[number] if number < len(mine) else ()
        two = theirs[number] if number < len(theirs) else ()
        if one and two and one[0] == two[0]:
            lines.append(f"{one[0]}: " + ", ".join(f"{a} not {b}" for a, b in zip(one, two, strict=False) if a != b))
        else:
            lines.append(f"{' '.join(one) or 'nothing'} not {' '.join(two) or 'nothing'}")
    return "; ".join(lines)
