from __future__ import annotations

import logging
import subprocess
from collections import Counter
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import pytest

from duetime.domain.times import MINUTE
from duetime_testing.simulation.faults import Fault
from tests.simulation.__main__ import BROKEN, CRASHED, until_injected
from tests.simulation.fault_simulation import FaultSimulation, Theme
from tests.simulation.mutants import CORE, Hunt, found_by, hunt_of
from tests.simulation.mutations import MUTANTS
from tests.simulation.outcomes import Outcome, defects_of, outcome_of, run_functions, simulated, spread
from tests.simulation.trace_text import VIOLATION, told, told_before
from tests.simulation.unique_watching import UniqueWatching
from tests.simulation.users import Users

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.mutations.mutant import Mutant

QUICK, SEEDS = 1, 12
"""The number of seeds in the quick and all tests; `make simulate FIRST=12 SEEDS=3000` runs more."""
HEAVY = 0.03
FAULTS = {
    "a process dies": ("crash_before", "crash_after", "machine killed", "machine cut off", "target hangs"),
    "a process is lost with its messages": ("message lost",),
    "an answer is lost, and the SDK sends again": ("resent", "lost", "late"),
    "a service is busy or away, or one key of the table is": ("throttled", "away", "stalled", "hot partition"),
    "a process stands still past its leases, and goes on": ("machine frozen", "frozen between phases"),
    "queues take no messages, or are not read": ("send refused", "queue left unread"),
    "creations are completed late": ("creation refused",),
    "a pull worker is gone when its answer comes": ("puller vanished",),
    "an endpoint is down": ("endpoint down",),
    "nothing is invoked for days": ("days of silence",),
    "a batch is done in part": ("partial", "keys unprocessed"),
    "messages come twice, late, and out of order": ("message doubled", "message delayed", "messages reordered"),
    "ticks are missed and overlap": ("ticks stopped", "tick missed", "tick doubled", "ticks overlap"),
    "what is read is not the latest": ("stale read",),
    "the egress function is busy, and answers of endpoints get lost": ("egress refused", "endpoint's answer lost"),
    "clocks differ, and are set": ("clock skewed", "clock stepped"),
    "another deploy, of older and newer code, with more shards": (
        "deployed older code",
        "deployed present code",
        "deployed newer code",
        "shards doubled",
    ),
    "Lambda and Step Functions do things twice, or forget": (
        "invoked twice",
        "state invoked twice",
        "state missed",
        "token lost",
        "execution stopped",
    ),
}
"""Every fault of the design, with the names by which the simulations count it."""


@lru_cache(maxsize=1)
def finished(seed: int) -> FaultSimulation:
    """The simulation of a seed, for all tests that only look at it."""
    return simulated(seed)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The functions log events for a person; in a simulation that is everything."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    "seed", [*range(QUICK), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(QUICK, SEEDS))]
)
def test_the_functions_keep_every_promise_in_a_fault_simulation(seed: int) -> None:
    """Legal moves, one live effect, none early, none after a cancel, locks kept, and every task ends."""
    simulation = finished(seed)
    watching = simulation.watching
    assert not watching.violations, f"make simulate FIRST={seed} SEEDS=1\n" + "\n".join(watching.violations)
    assert watching.effects
    assert defects_of(simulation) == []


def test_a_violation_is_told_with_what_led_to_it() -> None:
    """The lines before the first violation that name the same task, and only those."""
    simulation = finished(0)
    name = simulation.watching.accepted[0]
    line = next(number for number, line in enumerate(simulation.lines) if name in str(line))
    broken = [*simulation.lines[: line + 30], (simulation.time.now(), "watch", VIOLATION, f"{name} is not what it was")]
    lines = told_before([*broken, *simulation.lines[line + 30 :]])
    assert len(lines) > 1
    # Of what a connection is sent, which names it too, the line shows nothing.
    assert all(name in each or "post_to_connection" in each for each in lines)
    assert VIOLATION in lines[-1]
    assert not outcome_of(simulation).violations


@pytest.mark.slow
def test_every_kind_of_fault_is_injected() -> None:
    """A kind that never happens would prove nothing."""
    happened: Counter[str] = Counter()
    wanted = {name for names in FAULTS.values() for name in names}
    assert {fault.name.lower() for fault in Fault} <= wanted
    for seed in range(120):
        happened.update(run_functions(seed, HEAVY).faults)
        if wanted <= happened.keys():
            break
    assert wanted <= happened.keys(), wanted - happened.keys()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_without_a_fault_everything_is_on_time(seed: int) -> None:
    """Lateness is a separate promise: without delaying faults, no start is seconds late."""
    simulation = simulated(seed, 0.0)
    assert not simulation.watching.violations
    assert simulation.watching.lateness
    assert simulation.watching.latest <= 3_000


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace_whatever_ran_before() -> None:
    """A failing seed can be run again, call by call."""
    traces = []
    for before in (None, 6):
        if before is not None:
            FaultSimulation(before).simulate(MINUTE)
        simulation = FaultSimulation(5, HEAVY)
        simulation.simulate(3 * MINUTE)
        traces.append(told(simulation.lines))
    assert len(traces[0]) > 500
    assert traces[0] == traces[1]


@pytest.mark.slow
def test_seeds_that_run_side_by_side_come_to_the_same() -> None:
    """The number of cores affects only the duration."""
    alone, beside = (list(spread(partial(run_functions, rate=HEAVY), range(6), jobs)) for jobs in (1, 2))
    assert alone == beside


def test_an_error_of_the_simulation_itself_is_reported_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of the simulation that raises has broken no promise: the seed has a crash, and no violation."""
    monkeypatch.setattr(Users, "use", lambda *_: dict[str, str]()["id"])
    outcome = run_functions(3, theme=Theme.TASKS)
    assert outcome.crash.startswith("KeyError('id') in test_fault_simulation.py:")
    assert not outcome.violations


def test_an_error_of_the_watchers_is_not_taken_for_one_of_the_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watchers are called within the functions, which catch errors: the simulation ends with theirs nevertheless."""
    monkeypatch.setattr(UniqueWatching, "written", lambda *_: dict[str, str]()["id"])
    outcome = run_functions(3, theme=Theme.TASKS)
    assert outcome.crash.startswith("KeyError('id') in test_fault_simulation.py:")


@pytest.mark.parametrize(
    ("code", "printed", "wanted"),
    [
        (0, "4 seeds, 12 tasks: 0 seeds broke a promise", Hunt(1)),
        (BROKEN, "seed 7: 1200: x ran twice", Hunt(1, 3, "x ran twice")),
        (CRASHED, "seed 7: the simulation itself failed: KeyError('id')", "KeyError('id')"),
        (BROKEN, "", "exit code 1"),
        (-9, "seed 6: 1200: x ran twice", "x ran twice"),
    ],
)
def test_only_a_broken_promise_finds_a_mutant(code: int, printed: str, wanted: Hunt | str) -> None:
    """A simulation that fails by itself, or is killed, has neither found the mutant nor missed it."""
    hunt = hunt_of(subprocess.CompletedProcess([], code, printed, ""), first=5, seconds=1)
    if isinstance(wanted, Hunt):
        assert hunt == wanted
    else:
        assert hunt.seeds is None
        assert wanted in hunt.error


@pytest.mark.parametrize(
    ("code", "printed", "wanted"),
    [
        (0, "12 passed", Hunt(1)),
        (1, "part 1/1\npaused: A (resume): done\n  VIOLATION x ran twice\n", Hunt(1, 1, "VIOLATION x ran twice")),
        (1, "E   assert 3 == 4\n1 failed", Hunt(1, 1, "E   assert 3 == 4")),
        (4, "no tests ran", Hunt(1, error="no tests ran")),
        (1, "", Hunt(1, error="boom")),
        (1, "part 1/1", Hunt(1, error="part 1/1")),
    ],
)
def test_pairs_and_tests_find_a_mutant_only_by_a_failure_of_theirs(code: int, printed: str, wanted: Hunt) -> None:
    """A missing test, or any other error, says nothing about the mutant."""
    assert found_by(subprocess.CompletedProcess([], code, printed, "boom" if not printed else ""), 1) == wanted


def test_seeds_go_on_until_so_many_faults_were_injected() -> None:
    """The last seed is the one that reaches the number, at any end of a batch of seeds."""

    def run(seed: int) -> Outcome:
        return Outcome(seed, [], {"faults": 3})

    assert [outcome.seed for outcome in until_injected(10, run, first=7, jobs=1, at_once=3)] == [7, 8, 9, 10]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_still_fits_the_code(mutant: Mutant) -> None:
    """A mistake that does not change the code could not be found, and invalid Python says nothing."""
    text = (CORE / mutant.file).read_text(encoding="utf-8")
    broken = mutant.applied(text)
    assert broken != text
    compile(broken, mutant.file, "exec")
