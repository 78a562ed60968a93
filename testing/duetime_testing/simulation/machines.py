"""Simulates the processes of Lambda functions; each has its own composition, skewed clock, threads and faulty calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from greenlet import GreenletExit

from duetime import composition
from duetime.adapters.targets import Targets
from duetime.adapters.targets.job_calls import Resources
from duetime.composition import Composition, Platform
from duetime.composition.core import CoreServices
from duetime.composition.invoked_functions import HttpServices
from duetime.composition.worker import TargetServices
from duetime_common.frozen_classes import frozen
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.code_versions import Generation
from duetime_testing.simulation.event_loop import without_event_loop
from duetime_testing.simulation.faults import FaultyClient
from duetime_testing.simulation.simulated_target_calls import InlineAwsRunner, SimulatedCaller
from duetime_testing.simulation.virtual_time import SeededRandom, running_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from duetime.adapters.targets.handler_client import HandlerClients
    from duetime.domain.tasks.allowed_targets import TargetRules
    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.tasks.type_defaults import HandlerDescription
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Job
    from duetime.ports.targets import Work
    from duetime_testing.simulation.account import Account
    from duetime_testing.simulation.virtual_time import Strand, VirtualTime

T = TypeVar("T")
R = TypeVar("R")
SKEW = 2_500
"""The maximum skew of a clock in either direction, in milliseconds."""
FAR = 1_000_000_000
"""A wait that is longer than any test, in milliseconds."""


@dataclass
class SkewedClock:
    """A clock that differs from the virtual time by a constant."""

    time: VirtualTime
    skew: Millis

    def now(self) -> Millis:
        """The current time by this clock."""
        return self.time.now() + self.skew

    def sleep_until(self, at: Millis) -> None:
        """Wait until `at` by this clock while other strands continue."""
        self.time.sleep_until(at - self.skew)


@dataclass
class Threads:
    """The concurrent jobs of a process."""

    time: VirtualTime
    clock: SkewedClock
    raised: Callable[[Exception], None]

    def start(self, work: Callable[[], None]) -> Job:
        """Start a job in this process; as in a thread, an exception in the job ends only that job."""

        def run() -> None:
            try:
                work()
            except AssertionError:
                # A failed assertion belongs to the test, not to the tested code, so it ends the test.
                raise
            except Exception as error:  # noqa: BLE001 - nobody waits for it
                self.raised(error)

        return self.time.start(run)

    def wait(self, jobs: Sequence[Job], until: Millis) -> None:
        """Wait until one of the jobs ends or the time `until` is reached."""
        self.time.wait(jobs, until - self.clock.skew)

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call a function for all items concurrently, and return the results in order."""
        todo = list(items)
        if len(todo) < 2:
            return [work(item) for item in todo]
        ends: dict[int, R] = {}
        errors: dict[int, Exception] = {}

        def do(number: int, item: T) -> None:
            try:
                ends[number] = work(item)
            except Exception as error:  # noqa: BLE001 - it is raised again where the results are wanted
                errors[number] = error

        jobs = [self.time.start(partial(do, number, item)) for number, item in enumerate(todo)]
        while open_jobs := [job for job in jobs if not job.done]:
            self.time.wait(open_jobs, self.time.now() + FAR)
        if errors:
            raise errors[min(errors)]
        return [ends[number] for number in range(len(todo))]


class SimulatedHttp(HttpServices):
    """The HTTP services of a simulated process."""

    @cached_property
    def caller(self) -> SimulatedCaller:
        """The caller for simulated endpoints."""
        machine = self.platform.process
        assert isinstance(machine, Machine)
        return SimulatedCaller(machine)


@frozen
class MortalTargets(Targets):
    """Targets whose handlers end when their machine is killed.

    Exceptions that a handler raises while its machine is being killed are not processed.
    """

    machine: Machine

    def run(self, work: Work) -> TargetEnding:
        """Run one phase of a target to its end."""
        ending = Targets.run(self, work)
        self.machine.live()
        return ending


class SimulatedCore(CoreServices):
    """Stores, queues and rules of a simulated process."""

    @cached_property
    def target_rules(self) -> TargetRules:
        """The allowed targets."""
        machine = self.platform.process
        assert isinstance(machine, Machine)
        return machine.account.target_rules(super().target_rules)

    @cached_property
    def handler_descriptions(self) -> Mapping[str, HandlerDescription]:
        """The handlers of the simulated deployment."""
        machine = self.platform.process
        assert isinstance(machine, Machine)
        return machine.account.handler_descriptions(super().handler_descriptions)


class SimulatedTargets(TargetServices):
    """Targets of the tasks of a simulated process."""

    @cached_property
    def targets(self) -> Targets:
        """The targets; AWS is called without real threads."""
        machine = self.platform.process
        assert isinstance(machine, Machine)
        aws = InlineAwsRunner(Resources(self.platform.clients), self.settings.callable_arns)
        return machine.account.targets(machine, replace(super().targets, aws=aws))

    @cached_property
    def handler_clients(self) -> HandlerClients:
        """The factory for the clients that handlers use; a coroutine's requests are sent without real threads."""
        return replace(super().handler_clients, in_thread=_inline)


async def _inline(work: Callable[[], R]) -> R:
    with without_event_loop():
        return work()


@dataclass
class Clients:
    """A replacement for `duetime.adapters.aws_clients.Clients` that returns faulty clients for one machine."""

    machine: Machine

    def dynamodb(self) -> Any:  # noqa: ANN401 - stands in for a client
        """A DynamoDB client."""
        return FaultyClient(self.machine, self.machine.account.dynamodb, "dynamodb")

    def sqs(self, region: str | None = None) -> Any:  # noqa: ANN401 - same
        """An SQS client."""
        del region
        return FaultyClient(self.machine, self.machine.account.sqs, "sqs")

    def s3(self) -> Any:  # noqa: ANN401 - same
        """An S3 client."""
        return FaultyClient(self.machine, self.machine.account.s3, "s3")

    def lambdas(self) -> Any:  # noqa: ANN401 - same
        """A Lambda client."""
        return FaultyClient(self.machine, self.machine.account.lambdas, "lambda")

    def calling_lambdas(self, region: str | None = None) -> Any:  # noqa: ANN401 - same
        """A Lambda client that waits for responses.

        The result is `None` if a Region is given, because Lambda targets are not simulated.
        """
        if region is not None:
            return None
        return FaultyClient(self.machine, self.machine.account.lambdas, "lambda", once=True)

    def connections(self, endpoint: str) -> Any:  # noqa: ANN401 - same
        """A client for WebSocket connections."""
        del endpoint
        return FaultyClient(self.machine, self.machine.account.connections, "apigatewaymanagementapi")

    def events(self, region: str | None = None) -> Any:  # noqa: ANN401 - same
        """An EventBridge client."""
        del region
        return FaultyClient(self.machine, self.machine.account.event_bus, "events")

    def step_functions(self, region: str | None = None) -> Any:  # noqa: ANN401 - same
        """A Step Functions client for topologies or, with a Region, for executions that tasks start."""
        account = self.machine.account
        if region is None:
            return FaultyClient(self.machine, account.states, "states")
        return FaultyClient(self.machine, account.executions_of_tasks, "states", once=True)

    def jobs(self, service: str, region: str) -> Any:  # noqa: ANN401 - same
        """A client for a service that runs jobs."""
        del region
        account = self.machine.account
        client = account.ecs if service == "ecs" else account.job_services[service]
        return FaultyClient(self.machine, client, service, once=True)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return `None` as the client for any other service, because simulations do not call other services."""
        return lambda *_arguments: None


@dataclass(eq=False)
class Machine:
    """One execution environment of a function, which serves invocations one after another until it dies.

    Attributes:
        strand: the strand of the current invocation; `None` if the machine is idle.
        dead: whether the machine has died and must have no further effect.
        cut_off_until: time until which the machine's calls do not reach AWS.
        generation: the number of the machine's deployment.
        code: the code version of the deployment.
        fastest_skew: the most that the machine's clock has been ahead so far, in milliseconds.
    """

    account: Account
    function: str
    number: int
    skew: Millis
    generation: int
    environ: Mapping[str, str]
    code: Generation = Generation.PRESENT
    strand: Strand | None = None
    dead: bool = False
    cut_off_until: Millis = 0
    facts: FakeTelemetry = field(default_factory=FakeTelemetry)
    fastest_skew: Millis = 0

    def __post_init__(self) -> None:
        self.fastest_skew = self.skew

    def __str__(self) -> str:
        return f"{self.function}-{self.number}"

    @cached_property
    def clock(self) -> SkewedClock:
        """The machine's clock."""
        return SkewedClock(self.account.time, self.skew)

    @cached_property
    def composition(self) -> Composition:
        """The composition of the machine's process, which provides its use cases."""
        return Composition(
            Platform(
                environ=self.environ,
                clock=self.clock,
                random_source=NamedRandomSource(self.account.random.getrandbits(32), str(self)),
                clients=Clients(self),  # type: ignore[arg-type]  # stands in for real clients
                process=self,
                threads=Threads(self.account.time, self.clock, self._job_raised),
                telemetry=self.facts,
                substitutes={
                    CoreServices: SimulatedCore,
                    HttpServices: SimulatedHttp,
                    TargetServices: SimulatedTargets,
                },
            )
        )

    def _job_raised(self, error: Exception) -> None:
        # Exceptions that are raised while a dead process is ended are ignored.
        if not self.dead:
            self.account.job_raised(self, error)

    def step_clock(self, skew: Millis) -> None:
        """Change the skew of the machine's clock."""
        self.skew = self.clock.skew = skew
        self.fastest_skew = max(self.fastest_skew, skew)

    def end(self) -> None:
        """End the process, as a worker does when it stops itself."""
        self.account.trace(self, "ends itself")
        self.account.ends(self)
        self.die()

    def die(self) -> None:
        """Kill the strand that runs on this machine; if that strand is the caller, this method does not return."""
        self.dead = True
        if self.strand is not None:
            self.account.time.kill(self.strand)

    def live(self) -> None:
        """End the calling strand if the machine is dead, even during cleanup."""
        if self.dead:
            raise GreenletExit


def composition_of_machine() -> Composition | None:
    """The composition of the caller's machine; `None` outside virtual time."""
    time = running_time()
    if time is None:
        return None
    machine = time.process().home
    assert isinstance(machine, Machine), "only what runs on a machine is composed"
    return machine.composition


composition.use_by_process(composition_of_machine)


class NamedRandomSource(SeededRandom):
    """A seeded random source whose nonces differ between machines."""

    def __init__(self, seed: int, name: str) -> None:
        super().__init__(seed)
        self._name = name

    def nonce(self) -> str:
        """Return a string that is unique across machines."""
        return f"{self._name}.{next(self._nonces)}"
