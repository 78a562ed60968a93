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
"""The numbers of seeds in the quick and in the full tests; `make simulate FIRST=12 SEEDS=3000` runs more seeds."""
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
"""All kinds of faults in the design, each with the names under which the simulations count the faults."""


@lru_cache(maxsize=1)
def finished(seed: int) -> FaultSimulation:
    """The completed simulation of a seed, shared by all tests that only read its results."""
    return simulated(seed)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Disable logging: the functions log unusual events, and in a simulation all events are unusual."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    "seed", [*range(QUICK), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(QUICK, SEEDS))]
)
def test_the_functions_keep_every_promise_in_a_fault_simulation(seed: int) -> None:
    """A simulation with random faults breaks no promise, and causes no errors in duetime's own code."""
    simulation = finished(seed)
    watching = simulation.watching
    assert not watching.violations, f"make simulate FIRST={seed} SEEDS=1\n" + "\n".join(watching.violations)
    assert watching.effects
    assert defects_of(simulation) == []


def test_a_violation_is_shown_with_the_earlier_lines_of_its_task() -> None:
    """A violation is shown only with the earlier lines that name the same task."""
    simulation = finished(0)
    name = simulation.watching.accepted[0]
    line = next(number for number, line in enumerate(simulation.lines) if name in str(line))
    broken = [*simulation.lines[: line + 30], (simulation.time.now(), "watch", VIOLATION, f"{name} is not what it was")]
    lines = told_before([*broken, *simulation.lines[line + 30 :]])
    assert len(lines) > 1
    # The line for a push to a connection does not show the body, which also names the task.
    assert all(name in each or "post_to_connection" in each for each in lines)
    assert VIOLATION in lines[-1]
    assert not outcome_of(simulation).violations


@pytest.mark.slow
def test_every_kind_of_fault_is_injected() -> None:
    """Each kind of fault is injected in some simulation, because a kind that never occurs would prove nothing."""
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
    """If no faults delay tasks, no task starts more than three seconds late."""
    simulation = simulated(seed, 0.0)
    assert not simulation.watching.violations
    assert simulation.watching.lateness
    assert simulation.watching.latest <= 3_000


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace_whatever_ran_before() -> None:
    """A seed gives the same trace whatever ran before it, so that a failing seed can be repeated call by call."""
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
def test_seeds_have_the_same_outcomes_on_one_or_several_cores() -> None:
    """Seeds have the same outcomes whether they run on one core or on several cores."""
    alone, beside = (list(spread(partial(run_functions, rate=HEAVY), range(6), jobs)) for jobs in (1, 2))
    assert alone == beside


def test_an_error_of_the_simulation_itself_is_reported_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the simulation itself is reported as a crash of its seed, and not as a violation."""
    monkeypatch.setattr(Users, "use", lambda *_: dict[str, str]()["id"])
    outcome = run_functions(3, theme=Theme.TASKS)
    assert outcome.crash.startswith("KeyError('id') in test_fault_simulation.py:")
    assert not outcome.violations


def test_an_error_in_a_watcher_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in a watcher ends the simulation, even though the functions that call the watcher catch errors."""
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
    """If a simulation itself fails or is killed, its mutant is neither found nor missed."""
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
def test_an_unrelated_error_in_pairs_or_tests_does_not_find_a_mutant(code: int, printed: str, wanted: Hunt) -> None:
    """If a test is missing, or pairs or a test fail with another error, the mutant is neither found nor missed."""
    assert found_by(subprocess.CompletedProcess([], code, printed, "boom" if not printed else ""), 1) == wanted


def test_seeds_run_until_the_given_number_of_faults_was_injected() -> None:
    """Seeds run until the given number of faults have been injected, even in the middle of a batch of seeds."""

    def run(seed: int) -> Outcome:
        return Outcome(seed, [], {"faults": 3})

    assert [outcome.seed for outcome in until_injected(10, run, first=7, jobs=1, at_once=3)] == [7, 8, 9, 10]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_still_fits_the_code(mutant: Mutant) -> None:
    """Each deliberate defect changes the code, and the changed code is valid Python."""
    text = (CORE / mutant.file).read_text(encoding="utf-8")
    broken = mutant.applied(text)
    assert broken != text
    compile(broken, mutant.file, "exec")
