"""Circuit breakers pause calls to a failing host, except for probes, and cost a healthy host nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb.circuit_breakers import DynamoCircuitStore
from duetime.domain.circuit_breakers import Circuit, CircuitState
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import CIRCUIT_OPEN, CIRCUIT_SPREAD, CIRCUIT_THRESHOLD, MAX_CIRCUITS_KNOWN
from duetime.domain.tasks.attempt_results import Postponed, Succeeded, TargetEnding, failure
from duetime.domain.tasks.targets import Phase
from duetime.domain.times import HOUR, MINUTE, SECOND
from duetime.ports.runtime import Runtime
from duetime.services.worker.target_caller import CircuitBreakers
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.task_table import new_table
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.virtual_time import SeededRandom
from tests.adapters.clouds import EXECUTOR
from tests.adapters.targets.works import work
from tests.clocks import StandingClock

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.targets import Work

OWNER = "me"
HOST = "example.org"
URL = f"https://{HOST}/report"
DOWN = failure("Http503", "out of order")
CHANCE = SeededRandom()
"""All processes share one source of random numbers, so that no nonce is drawn twice."""


class CountingStore(DynamoCircuitStore):
    """A store of circuits that can fail, and that counts reads and writes."""

    def __init__(self) -> None:
        fake: Any = FakeDynamoDB()
        super().__init__(fake, new_table(fake))
        self.available = True
        self.readings = self.savings = 0

    def read(self, owner: str, host: str, *, consistent: bool) -> Circuit:
        """Read a circuit, unless the store is failing."""
        self.readings += 1
        if not self.available:
            raise Unavailable("away")
        return super().read(owner, host, consistent=consistent)

    def save(self, circuit: Circuit, nonce: str, expires_at: Millis) -> bool:
        """Store a circuit, unless the store is failing."""
        self.savings += 1
        if not self.available:
            raise Unavailable("away")
        return super().save(circuit, nonce, expires_at)


class Endpoint:
    """A target that ends as the test says, and counts its calls."""

    def __init__(self) -> None:
        self.ending: TargetEnding = Succeeded(b"1")
        self.calls = 0

    def phases(self, task: Task) -> frozenset[Phase]:
        """Support all phases."""
        del task
        return frozenset(Phase)

    def run(self, work_: Work) -> TargetEnding:
        """Count the call, and end as the test says."""
        del work_
        self.calls += 1
        return self.ending


class Process:
    """One process that calls an endpoint through its circuit breaker."""

    def __init__(self, circuits: CountingStore, clock: StandingClock, endpoint: Endpoint) -> None:
        self.facts = FakeTelemetry()
        self.endpoint = endpoint
        self.clock = clock
        self.circuit_breakers = CircuitBreakers(endpoint, circuits, Runtime(clock, CHANCE, EXECUTOR, self.facts))

    def call(
        self,
        ending: TargetEnding | None = None,
        url: str = URL,
        phase: Phase = Phase.RUN,
        owner: str = OWNER,
        seconds: int = 60,
    ) -> TargetEnding:
        """Call the endpoint, with the given outcome."""
        self.endpoint.ending = ending or self.endpoint.ending
        wanted = work(url=url, phase=phase, seconds=seconds)
        return self.circuit_breakers.run(replace(wanted, task=replace(wanted.task, owner=owner)))

    def fail(self, times: int = CIRCUIT_THRESHOLD) -> None:
        """Fail this many times in succession."""
        for _ in range(times):
            assert self.call(DOWN) == DOWN


@pytest.fixture
def clock() -> StandingClock:
    """The clock."""
    return StandingClock()


@pytest.fixture
def circuits() -> CountingStore:
    """The store of circuits, which processes share."""
    return CountingStore()


@pytest.fixture
def process(circuits: CountingStore, clock: StandingClock) -> Process:
    """The first process that calls the endpoint."""
    return Process(circuits, clock, Endpoint())


def another(process: Process, circuits: CountingStore) -> Process:
    """Another process that calls the same endpoint."""
    return Process(circuits, process.clock, process.endpoint)


def test_five_failures_in_a_row_open_the_circuit(process: Process, circuits: CountingStore) -> None:
    """After five failures in succession, the sixth task waits and shows why, until the circuit may close."""
    process.fail()
    held = process.call(Succeeded(b"1"))
    now = process.clock.now()
    assert isinstance(held, Postponed)
    assert now + CIRCUIT_OPEN < held.until <= now + CIRCUIT_OPEN + SECOND + CIRCUIT_SPREAD
    assert held.reason == f"the circuit of {HOST} is open"
    assert process.endpoint.calls == CIRCUIT_THRESHOLD
    assert process.facts.counts["circuits_opened"] == 1
    assert circuits.read(OWNER, HOST, consistent=True).reason == "Http503"


def test_a_hosts_failures_for_one_owner_do_not_affect_other_owners(process: Process, circuits: CountingStore) -> None:
    """If a host fails for one owner, it is still called for other owners."""
    process.fail()
    assert isinstance(process.call(), Postponed)
    for each in (process, another(process, circuits)):
        assert each.call(Succeeded(b"1"), owner="another") == Succeeded(b"1")
        assert isinstance(each.call(), Postponed)


def test_timeouts_after_short_time_limits_never_open_the_circuit(process: Process) -> None:
    """Timeouts after one second never open the circuit; five timeouts after a minute do."""
    late = failure("Timeout", "")
    for _ in range(100):
        assert process.call(late, seconds=1) == late
    for _ in range(CIRCUIT_THRESHOLD):
        assert process.call(late, seconds=60) == late
    assert isinstance(process.call(), Postponed)


def test_timeouts_below_twice_the_usual_response_time_do_not_count(process: Process) -> None:
    """For a host that usually takes half a minute, timeouts after 50 s do not count, but timeouts after 60 s do."""

    class Slow(Endpoint):
        def run(self, work_: Work) -> TargetEnding:
            process.clock.at += 30 * SECOND
            return super().run(work_)

    slow = Process(CountingStore(), process.clock, Slow())
    assert slow.call(Succeeded(b"1")) == Succeeded(b"1")
    for _ in range(3 * CIRCUIT_THRESHOLD):
        assert not isinstance(slow.call(failure("Timeout", ""), seconds=50), Postponed)
    for _ in range(CIRCUIT_THRESHOLD):
        assert not isinstance(slow.call(failure("Timeout", ""), seconds=60), Postponed)
    assert isinstance(slow.call(), Postponed)


def test_failures_that_are_not_in_a_row_do_not_open_the_circuit(process: Process) -> None:
    """A success or any response that is not a 5xx restarts the count of failures."""
    for sign_of_life in (Succeeded(b"1"), failure("Http404", "", retriable=False)):
        process.fail(CIRCUIT_THRESHOLD - 1)
        process.call(sign_of_life)
    process.fail(CIRCUIT_THRESHOLD)
    assert isinstance(process.call(), Postponed)


def test_a_request_for_several_tasks_counts_once(process: Process) -> None:
    """Attempts that share another attempt's request do not count, but a probe is ended even if it shares one."""

    class Shared(Endpoint):
        def run(self, work_: Work) -> TargetEnding:
            work_.shares_call()
            return super().run(work_)

    shared = Process(CountingStore(), process.clock, Shared())
    shared.fail(3 * CIRCUIT_THRESHOLD)
    assert shared.facts.counts["circuits_opened"] == 0
    circuits = CountingStore()
    Process(circuits, process.clock, Endpoint()).fail()
    process.clock.at += CIRCUIT_OPEN
    assert Process(circuits, process.clock, Shared()).call(Succeeded(b"1")) == Succeeded(b"1")
    assert circuits.read(OWNER, HOST, consistent=True).state(process.clock.now()) is CircuitState.CLOSED


def test_a_healthy_host_costs_one_read_in_five_seconds(process: Process, circuits: CountingStore) -> None:
    """A healthy host costs one read in five seconds, and single failures cause no write."""
    for number in range(100):
        process.call(DOWN if number % CIRCUIT_THRESHOLD else Succeeded(b"1"))
    assert (circuits.readings, circuits.savings) == (1, 0)
    for _ in range(60):
        process.clock.at += SECOND
        process.call(Succeeded(b"1"))
    assert (circuits.readings, circuits.savings) == (1 + 12, 0)


def test_other_processes_learn_of_an_open_circuit_within_seconds(process: Process, circuits: CountingStore) -> None:
    """Other processes learn of an open circuit within seconds, without failures of their own."""
    other = another(process, circuits)
    other.call(Succeeded(b"1"))
    process.fail()
    process.clock.at += 5 * SECOND
    assert isinstance(other.call(), Postponed)
    assert isinstance(another(process, circuits).call(), Postponed)
    assert other.facts.counts["circuits_opened"] == 0


def test_only_one_process_makes_the_probe(process: Process, circuits: CountingStore) -> None:
    """During a probe, all other calls wait in every process; if the probe succeeds, the circuit closes."""
    process.fail()
    process.clock.at += CIRCUIT_OPEN
    other = another(process, circuits)
    outcomes: list[TargetEnding] = []

    class Slow(Endpoint):
        def run(self, work_: Work) -> TargetEnding:
            outcomes.extend([other.call(), process.circuit_breakers.run(work_)] if not outcomes else [])
            return super().run(work_)

    slow = CircuitBreakers(Slow(), circuits, Runtime(process.clock, CHANCE, EXECUTOR, FakeTelemetry()))
    assert slow.run(work(url=URL)) == Succeeded(b"1")
    assert [type(outcome) for outcome in outcomes] == [Postponed, Postponed]
    assert process.endpoint.calls == CIRCUIT_THRESHOLD
    process.clock.at += 5 * SECOND
    assert process.call(Succeeded(b"2")) == other.call() == Succeeded(b"2")
    assert circuits.read(OWNER, HOST, consistent=True).state(process.clock.now()) is CircuitState.CLOSED


def test_a_probe_that_fails_opens_the_circuit_for_twice_as_long(process: Process, circuits: CountingStore) -> None:
    """A failed probe opens the circuit for twice as long; after an inconclusive probe, the next probe decides."""
    process.fail()
    process.clock.at += CIRCUIT_OPEN
    assert process.call(failure("EgressFailed", "")) == failure("EgressFailed", "")
    assert process.call(DOWN) == DOWN
    assert isinstance(process.call(), Postponed)
    circuit = circuits.read(OWNER, HOST, consistent=True)
    assert (circuit.openings, circuit.open_until - process.clock.now()) == (2, 2 * CIRCUIT_OPEN)


def test_a_probe_of_a_dead_process_is_replaced_after_the_deadline(process: Process, circuits: CountingStore) -> None:
    """If a probe's process dies, another probe is made after the deadline."""
    process.fail()
    process.clock.at += CIRCUIT_OPEN
    circuit = circuits.read(OWNER, HOST, consistent=True)
    circuits.save(circuit.probed(process.clock.now() + MINUTE), "died", process.clock.now() + HOUR)
    assert isinstance(process.call(Succeeded(b"1")), Postponed)
    process.clock.at += MINUTE
    assert process.call() == Succeeded(b"1")


def test_a_failing_host_delays_no_other_host(process: Process) -> None:
    """A failing host delays no other host, no Python handler and no cleanup."""
    process.fail()
    for url in ("https://other.example.org/", f"https://{HOST}:8443/report", ""):
        assert process.call(Succeeded(b"1"), url=url) == Succeeded(b"1")
    assert process.call(phase=Phase.CLEAN) == Succeeded(b"1")
    assert [isinstance(process.call(phase=phase), Postponed) for phase in (Phase.PREPARE, Phase.ROLLBACK)] == [True] * 2


def test_calls_pass_while_the_store_of_circuits_is_down(process: Process, circuits: CountingStore) -> None:
    """An outage of the store of circuits neither stops calls nor raises an error."""
    circuits.available = False
    process.fail(3 * CIRCUIT_THRESHOLD)
    assert process.call(Succeeded(b"1")) == Succeeded(b"1")
    assert process.facts.notes


def test_a_process_remembers_a_limited_number_of_hosts(process: Process) -> None:
    """An owner can use any number of hosts, but a process remembers only a limited number."""
    for number in range(MAX_CIRCUITS_KNOWN + 5):
        process.call(url=f"https://h{number}.example.org/")
    assert len(process.circuit_breakers._known) <= MAX_CIRCUITS_KNOWN


def test_an_outdated_read_does_not_close_an_open_circuit(process: Process, circuits: CountingStore) -> None:
    """If an eventually consistent read is from before the circuit opened, the circuit stays open."""
    process.fail()
    process.clock.at += 6 * SECOND
    circuits.read = lambda owner, host, **_: Circuit(owner, host)  # type: ignore[method-assign] # a replica that lags behind
    assert isinstance(process.call(Succeeded(b"1")), Postponed)
