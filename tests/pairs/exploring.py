"""Runs every interleaving of a pair of operations, and checks that each outcome is possible in some order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from tests.pairs.footprints import conflict, is_read, last_conflict, starts_others
from tests.pairs.interleaving import CallFault, Interleaving, Pair, Result, run
from tests.pairs.invariants import definition_of, without_placed
from tests.pairs.operations import ACCEPTED, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from tests.pairs.footprints import Footprint
    from tests.pairs.invariants import State
    from tests.pairs.operations import Operation

_Outcome: TypeAlias = "tuple[str, ...] | None"


@dataclass(frozen=True)
class Found:
    """An interleaving that violated an invariant."""

    interleaving: Interleaving
    result: Result
    violations: list[str]


@dataclass(frozen=True)
class _End:
    """A possible end: the response to each operation (`None` if the operation was not run), and the state."""

    first: _Outcome
    second: _Outcome
    state: State

    def explains(self, pair: Pair, result: Result) -> bool:
        """Whether an interleaving's state and responses agree with this end."""
        return self.state == result.state and self.agrees(pair, result)

    def agrees(self, pair: Pair, result: Result) -> bool:
        """Whether the responses to both operations agree with this end."""
        first, second = result.outcomes
        return _agrees(pair.first, self.first, first) and _agrees(pair.second, self.second, second)


def _agrees(operation: Operation, told: _Outcome, other: _Outcome) -> bool:
    """Whether a response is also possible in an order.

    If the order lacks the operation, the response must not have accepted its requests.
    """
    if other is None or told is None:
        return ACCEPTED not in (other or ())
    if operation.is_repeatable:
        return True
    return len(told) == len(other) and all(
        UNKNOWN in pair or pair[0] == pair[1] or number in operation.repeats
        for number, pair in enumerate(zip(told, other, strict=True))
    )


@dataclass
class Memory:
    """The knowledge about a subject that is kept from one pair to the next.

    Attributes:
        settled: fingerprints of states that have settled without a violation.
        orders: the results of orders of complete requests, by the orders' operations and stops.
    """

    settled: set[str] = field(default_factory=set)
    orders: dict[tuple[object, ...], Result] = field(default_factory=dict)

    def of(self, order: Interleaving, make: Callable[[Interleaving], Result]) -> Result:
        """The result of an order; the order is run when its result is first needed."""
        names = [each.name if runs else None for each, runs in zip(order.pair.operations, order.runs, strict=True)]
        key = (*names, order.k, order.m, order.again)
        if key not in self.orders:
            self.orders[key] = make(order)
        return self.orders[key]


class Exploration:
    """All interleavings of one pair, except those that differ only in the order of calls without common data.

    Attributes:
        runs: the number of interleavings run.
        known: the number of interleavings that did not have to settle, because an earlier interleaving left the same
            state.
        calls: the number of AWS calls in these interleavings.
    """

    def __init__(
        self, pair: Pair, faults: tuple[CallFault, ...] = tuple(CallFault), memory: Memory | None = None
    ) -> None:
        self.pair = pair
        self.faults = faults
        self.runs = self.known = self.calls = 0
        self._memory = Memory() if memory is None else memory
        self._orders: list[_End] = []
        self._steps: list[_End] = []
        self._alone: tuple[Footprint, ...] = ()

    def found(self) -> Iterator[Found]:
        """Run all interleavings, and return the interleavings that violated an invariant."""
        yield from self._in_order()
        yield from self._without_fault()
        for fault in self.faults:
            yield from self._with(fault)

    def alone(self, wanted: Interleaving) -> Found:
        """Run one interleaving, and return the result whether or not an invariant was violated."""
        for _ in self._in_order():
            pass
        result = self._result(wanted)
        return Found(wanted, result, [*result.violations, *self._unexplained(wanted, result)])

    def _in_order(self) -> Iterator[Found]:
        """Run the two operations in each order, and each operation alone, to learn the correct ends."""
        pair, swapped = self.pair, Pair(self.pair.subject, self.pair.second, self.pair.first)
        first = yield from self._learn(Interleaving(pair, runs=(True, False), is_order=True), self._orders)
        self._alone = first.footprints[0]
        for runs in ((False, True), (False, False)):
            yield from self._learn(Interleaving(pair, runs=runs, is_order=True), self._orders)
        for each in (pair, swapped):
            whole = yield from self._learn(Interleaving(each, is_order=True), self._orders)
            for k, m in product((*whole.requests[0], None), (*whole.requests[1], None)):
                if (k, m) != (None, None):
                    yield from self._learn(Interleaving(each, k, m, is_order=True), self._orders)
            self._learn_begun(each)
        for each in (pair, swapped):
            if each.first.goes_on or (each.first.is_step and not each.second.is_step):
                yield from self._stepwise(each)

    def _learn_begun(self, pair: Pair) -> None:
        """Learn the ends in which the second of several requests had no effect, because its outcome is unknown."""
        if pair.first.begun is None:
            return
        begun = replace(pair.first, name=f"{pair.first.name}-begun", act=pair.first.begun)
        for each in (Pair(pair.subject, begun, pair.second), Pair(pair.subject, pair.second, begun)):
            whole = self._memory.of(Interleaving(each, is_order=True), self._result)
            # The operation may also run between two requests of the other operation.
            for k in (None, *whole.requests[0]):
                result = self._memory.of(Interleaving(each, k, is_order=True), self._result)
                first, second = result.outcomes if each.first is begun else result.outcomes[::-1]
                first, state = (*(first or ()), UNKNOWN), self._compared(result.state)
                if pair.first is self.pair.first:
                    self._orders.append(_End(first, second, state))
                if pair.first is self.pair.second:
                    self._orders.append(_End(second, first, state))

    def _stepwise(self, pair: Pair) -> Iterator[Found]:
        """Learn the ends in which a user's requests run between two calls of a slow step; these ends are correct."""
        wanted = Interleaving(pair, 1, is_order=True)
        while True:
            result = yield from self._learn(wanted, self._steps)
            if not result.reached[0]:
                return
            wanted = replace(wanted, k=(wanted.k or 0) + 1)

    def _learn(self, wanted: Interleaving, ends: list[_End]) -> Generator[Found, None, Result]:
        before = self.runs
        result = self._memory.of(wanted, self._result)
        if result.violations and self.runs > before:
            yield Found(wanted, result, result.violations)
        first, second = result.outcomes if wanted.pair == self.pair else result.outcomes[::-1]
        # Whether placed occurrences are left out of the comparison depends on both operations.
        end = _End(first, second, self._compared(result.state))
        if end not in ends:
            ends.append(end)
        return result

    def _without_fault(self) -> Iterator[Found]:
        k = 1
        while k < len(self._alone):
            result = yield from self._run(Interleaving(self.pair, k))
            if not result.reached[0]:
                return
            yield from self._second_stops(Interleaving(self.pair, k), result)
            first, second = result.footprints
            # If a call has no data in common with the other operation, stopping after the call equals stopping before
            # the call.
            k += 1
            # By then, the other operation may have done part of the first operation's work.
            while k < min(len(self._alone), len(first)) and self._may_skip(result):
                if conflict(first[k - 1], second):
                    break
                k += 1

    def _with(self, fault: CallFault) -> Iterator[Found]:
        for k, footprint in enumerate(self._alone):
            if is_read(footprint) and _makes_no_difference(fault, is_last=k + 1 == len(self._alone)):
                continue
            wanted = Interleaving(self.pair, k, None, fault)
            result = yield from self._run(wanted)
            if not result.reached[0]:
                return
            if fault is not CallFault.DIES:
                yield from self._second_stops(wanted, result)

    def _second_stops(self, wanted: Interleaving, result: Result) -> Iterator[Found]:
        """Stop the second operation before each of its calls that has data in common with the first's remaining calls.

        The last of these calls is tried first.

        Args:
            wanted: the interleaving in which the second operation does not stop.
            result: the result of that interleaving.
        """
        calls = result.footprints[1]
        m, k = len(calls), wanted.k or 0
        while True:
            # An operation that abandoned its call has already run to its end; only the abandoned call is still to come.
            rest = result.footprints[0][k : k + 1] if wanted.fault is CallFault.LATE else result.footprints[0][k:]
            m = last_conflict(calls, m, rest) if self._may_skip(result) else m - 1
            if m < 1:
                return
            result = yield from self._run(replace(wanted, m=m))
            if not result.reached[1]:
                return

    def _may_skip(self, result: Result) -> bool:
        """Whether no work other than the two operations takes place while they make their calls."""
        return not self.pair.subject.lives and not any(map(starts_others, result.footprints))

    def _run(self, wanted: Interleaving) -> Generator[Found, None, Result]:
        result = self._result(wanted)
        violations = [*result.violations, *self._unexplained(wanted, result)]
        if violations:
            yield Found(wanted, result, violations)
        return result

    def _unexplained(self, wanted: Interleaving, result: Result) -> list[str]:
        """Describe the end if no order explains it.

        A step that stops midway may have other ends, but must not change data that only users write.
        """
        first, second = operations = wanted.pair.operations
        has_fault = wanted.fault is not None
        if (first.is_step and second.is_step) or not wanted.pair.subject.is_compared:
            return []
        if has_fault and any(each.is_in_parts for each in operations):
            return []
        if wanted.fault is CallFault.RESENT and self._is_done_again(result):
            return []
        takes_time, ends = first.takes_time or second.takes_time, self._orders + self._steps
        if not (takes_time and has_fault) and not any(end.explains(self.pair, result) for end in ends):
            return [self._told(result, ends)]
        if takes_time and not (has_fault and (first.is_step or second.is_step)):
            return self._unasked(wanted, result)
        return []

    def _unasked(self, wanted: Interleaving, result: Result) -> list[str]:
        """Describe the data in the end that only users write, if neither operation requested it."""
        is_asked = any(each.is_asked for each in self.pair.operations)
        ends = [end for end in self._orders if end.agrees(self.pair, result)]
        if is_asked or not ends:
            # Some requests are accepted only during a step, such as a target's report on a running attempt.
            ends = [end for end in self._orders + self._steps if end.agrees(self.pair, result)]
        if wanted.fault is not None and not ends:
            # If a fault prevents an effect, the response is the same as to an unneeded request; the follow-up notices
            # this.
            beside = self._result(replace(wanted, m=0, is_order=True))
            ends = [*self._orders, *self._steps, _End(*beside.outcomes, self._compared(beside.state))]
        defined = definition_of(result.state)
        if any(definition_of(end.state) == defined for end in ends):
            return []
        return [self._told(replace(result, state=defined), [replace(e, state=definition_of(e.state)) for e in ends])]

    def _is_done_again(self, result: Result) -> bool:
        """Whether the end is the same as if the first operation had run both before and after the second.

        A repeated call may have this effect. After the second operation's write, the record no longer contains the
        repeated call's nonce, so the call's effect is unknown.
        """
        twice = self._memory.of(Interleaving(self.pair, is_order=True, again=True), self._result)
        return _End(*twice.outcomes, self._compared(twice.state)).explains(self.pair, result)

    def _result(self, wanted: Interleaving) -> Result:
        self.runs += 1
        result = run(wanted, self._memory.settled)
        if not wanted.is_order:
            result.state = self._compared(result.state)
        self.known += result.is_known
        self.calls += result.all_calls
        return result

    def _compared(self, state: State) -> State:
        takes_time = any(each.takes_time for each in self.pair.operations)
        return without_placed(state) if takes_time else state

    def _told(self, result: Result, ends: list[_End]) -> str:
        near = [end for end in ends if end.agrees(self.pair, result)]
        told = " and ".join(f"{'/'.join(outcome) or 'done'}" for outcome in result.outcomes if outcome is not None)
        if not near:
            return f"no order of the two is answered {told}; it ended as {_short(result.state, ())}"
        return f"answered {told}, it ended as no order does: " + "; ".join(
            _short(result.state, end.state) for end in near
        )


def _makes_no_difference(fault: CallFault, *, is_last: bool) -> bool:
    """Whether a fault of a read-only call has the same effect as a refusal, or as the process's end after the call."""
    return fault in {CallFault.LOST, CallFault.RESENT, CallFault.LATE} or (fault is CallFault.DIES and not is_last)


def _short(state: State, other: State) -> str:
    """The differences between a state and another state."""
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
