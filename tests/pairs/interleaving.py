"""Describes and runs an interleaving of two operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.times import SECOND
from tests.pairs.invariants import State, fingerprint_of, state_of
from tests.pairs.operations import REFUSED, UNKNOWN

if TYPE_CHECKING:
    from tests.pairs.footprints import Footprint
    from tests.pairs.operations import Operation
    from tests.pairs.subjects import Subject
    from tests.pairs.world import Actor, World


class CallFault(StrEnum):
    """A fault of a given call of the first operation."""

    SLOW = "slow"
    """The call is made only after a short lease has ended and the other operation has continued."""
    REFUSED = "refused"
    """The service throttles the call until the SDK gives up."""
    LOST = "lost"
    """The call is made before the other operation continues, and its response never arrives."""
    RESENT = "resent"
    """The call is made before and after the other operation continues, because the SDK sends it again."""
    LATE = "late"
    """The client abandons the call, and the call takes effect after the other operation has continued."""
    DIES = "dies"
    """The process ends instead of making the call."""


@dataclass(frozen=True)
class Pair:
    """A pair of operations on one subject."""

    subject: Subject
    first: Operation
    second: Operation

    @property
    def operations(self) -> tuple[Operation, Operation]:
        """Both operations of the pair."""
        return self.first, self.second

    def __str__(self) -> str:
        return f"{self.subject.name} {self.first.name} {self.second.name}"


@dataclass(frozen=True)
class Interleaving:
    """The first operation stops before call `k`, the second runs up to call `m`, the first ends, and the second ends.

    Attributes:
        k: the number of a call of the first operation, from 0; `None` if the operation does not stop.
        m: the number of a call of the second operation, from 0; `None` if the operation does not stop.
        fault: the fault of call `k`.
        runs: for each of the two operations, whether it is run.
        is_order: whether complete requests follow each other, with enough time in between for all readers to catch up.
        again: whether the first operation is repeated after both operations have ended, so that the repetition's
            response counts.
    """

    pair: Pair
    k: int | None = None
    m: int | None = None
    fault: CallFault | None = None
    runs: tuple[bool, bool] = (True, True)
    is_order: bool = False
    again: bool = False

    def __str__(self) -> str:
        def told(number: int | None) -> str:
            return "-" if number is None else str(number)

        return f"{self.pair} {told(self.k)} {told(self.m)} {self.fault or '-'}"


@dataclass
class Result:
    """The outcome of an interleaving.

    Attributes:
        reached: whether the first and the second operation reached the calls at which they should stop.
        outcomes: the responses to each client; `None` for an operation that was not run.
        state: the state after both operations had ended.
        is_known: whether an earlier interleaving left the same state and then settled without a violation.
        calls: the number of calls that each operation made.
        all_calls: the number of all calls, including the calls that were made while the state settled.
        requests: for each operation, the numbers of the calls before which its second and later requests began.
        made: the calls in the order in which they began.
        footprints: the data that each call touches.
    """

    reached: tuple[bool, bool] = (False, False)
    outcomes: tuple[tuple[str, ...] | None, tuple[str, ...] | None] = (None, None)
    state: State = ()
    violations: list[str] = field(default_factory=list)
    is_known: bool = False
    calls: tuple[int, int] = (0, 0)
    all_calls: int = 0
    requests: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    made: list[tuple[int, str, str]] = field(default_factory=list)
    footprints: tuple[tuple[Footprint, ...], tuple[Footprint, ...]] = ((), ())


def run(interleaving: Interleaving, settled: set[str] | None = None) -> Result:
    """Run one interleaving from the subject's saved state until nothing can change anymore.

    Args:
        interleaving: the interleaving to run.
        settled: fingerprints of states that have settled without a violation; these states do not settle again.
    """
    world = interleaving.pair.subject.world()
    try:
        result = Result()
        _play(world, interleaving, result)
        result.state = state_of(world)
        mark = None if settled is None else fingerprint_of(world)
        result.is_known = settled is not None and mark in settled
        if not result.is_known:
            world.settle()
        result.violations = list(world.watching.violations)
        result.all_calls = world.calls
        if settled is not None and mark is not None and not result.violations:
            settled.add(mark)
        return result
    finally:
        world.end()


def _play(world: World, wanted: Interleaving, result: Result) -> None:
    base = world.time.now()
    world.faulty = wanted.fault is not None
    first = second = None
    is_reached = [wanted.k is None, wanted.m is None]
    if wanted.runs[0]:
        first = world.begin(wanted.pair.first, wanted.k, wanted.fault)
        _until(world, first)
        is_reached[0] = wanted.k is None or first.calls > wanted.k
    _rest(world, wanted)
    if wanted.runs[1]:
        second = world.begin(wanted.pair.second, wanted.m)
        _until(world, second)
        is_reached[1] = wanted.m is None or second.calls > wanted.m
    _rest(world, wanted)
    for actor in (first, second):
        if first is not None and first.late is not None:
            first.late()
            first.late = None
        if actor is not None:
            world.let_on(actor)
            _until(world, actor)
            _rest(world, wanted)
    if wanted.again:
        first = world.begin(wanted.pair.first)
        _until(world, first)
        _rest(world, wanted)
    result.reached = (is_reached[0], is_reached[1])
    result.outcomes = (first.outcome if first else None, second.outcome if second else None)
    if wanted.fault is CallFault.RESENT and first is not None:
        # The refusal of an operation that is already done is ignored, because another operation's write overwrites the
        # nonce.
        result.outcomes = (tuple(UNKNOWN if each == REFUSED else each for each in first.outcome), result.outcomes[1])
    result.calls = (first.calls if first else 0, second.calls if second else 0)
    result.requests = (_requests(first), _requests(second))
    result.footprints = (_footprints(first), _footprints(second))
    result.made = sorted(
        (at - base, name, what)
        for name, actor in (("A", first), ("B", second))
        if actor is not None
        for at, what in actor.made
    )


def _footprints(actor: Actor | None) -> tuple[Footprint, ...]:
    if actor is None or not actor.footprints:
        return ()
    return (*actor.footprints[:-1], actor.footprints[-1] | actor.touched)


def _requests(actor: Actor | None) -> tuple[int, ...]:
    return tuple(actor.requests[1:]) if actor is not None else ()


def _rest(world: World, wanted: Interleaving) -> None:
    if wanted.is_order:
        world.time.run_until(world.time.now() + SECOND)


def _until(world: World, actor: Actor) -> None:
    """Let time pass until an operation stops or ends."""
    if not world.run_until(lambda: actor.is_stopped or actor.is_done):
        world.watching.check(False, f"{actor.operation.name} does not come to an end")  # noqa: FBT003 - it does not hold
