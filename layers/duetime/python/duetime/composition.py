"""The one place where use cases meet their adapters.

Each function asks here for what it needs, once a process. `use` exchanges the outside world (clock, chance,
threads, AWS clients) for another, which is how tests and the simulation run the unmodified functions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws import Clients
from duetime.adapters.contents import SplitContentStore
from duetime.adapters.dynamodb.cursors import DynamoCursorStore
from duetime.adapters.dynamodb.keys import DynamoKeyStore
from duetime.adapters.dynamodb.task_store import DynamoTaskStore
from duetime.adapters.fan_out import LambdaFanOut
from duetime.adapters.sqs.events import readable
from duetime.adapters.sqs.queues import SqsQueues
from duetime.adapters.surroundings.clock import SystemChance, SystemClock
from duetime.adapters.surroundings.telemetry import PowertoolsTelemetry
from duetime.adapters.surroundings.threads import LambdaProcess, Threads
from duetime.adapters.targets import Targets
from duetime.adapters.targets.handlers import HandlerRunner, load
from duetime.adapters.targets.http import HttpRunner
from duetime.services.attempting import Attempting
from duetime.services.burying import Burying
from duetime.services.changing import Changing
from duetime.services.closing import Closing, ClosingElsewhere, ClosingHere
from duetime.services.creating import Creating
from duetime.services.dispatching import Dispatching
from duetime.services.finishing import Finishing
from duetime.services.placing import Placing
from duetime.services.reading import Reading
from duetime.services.steering import Steering
from duetime.services.undoing import Undoing
from duetime.services.waiting import Waiting
from duetime.services.working import Working
from duetime.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.ports.queues import Delivery
    from duetime.ports.surroundings import Chance, Clock, Crew, Process


@dataclass(frozen=True)
class Outside:
    """The world around a function.

    Attributes:
        environ: the environment variables.
        clock: the time.
        chance: randomness.
        clients: of AWS.
        process: what a stuck worker ends.
        threads: what runs things concurrently; `None` for threads.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Clock = field(default_factory=SystemClock)
    chance: Chance = field(default_factory=SystemChance)
    clients: Clients = field(default_factory=Clients)
    process: Process = field(default_factory=LambdaProcess)
    threads: Crew | None = None

    @cached_property
    def crew(self) -> Crew:
        """Threads, unless something else was given."""
        return self.threads or Threads(self.clock)


class Composition:
    """The use cases of one process, each made when it is first asked for, over one set of adapters."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        self.settings = Settings(outside.environ)

    @cached_property
    def telemetry(self) -> PowertoolsTelemetry:
        """Logs and metrics; the handler flushes them."""
        return PowertoolsTelemetry(self.settings.service_name, self.settings.metrics_namespace)

    @cached_property
    def tasks(self) -> DynamoTaskStore:
        """The tasks table's records."""
        return DynamoTaskStore(self._dynamodb, self.settings.table, self.outside.crew)

    @cached_property
    def contents(self) -> SplitContentStore:
        """Payloads and results."""
        return SplitContentStore(self._dynamodb, self.settings.table, self.outside.clients.s3(), self.settings.bucket)

    @cached_property
    def queues(self) -> SqsQueues:
        """The work queues."""
        return SqsQueues(self.outside.clients.sqs(), self.settings.queue_urls, self.outside.crew)

    @cached_property
    def placing(self) -> Placing:
        """How tasks are placed."""
        settings, outside = self.settings, self.outside
        return Placing(
            self.tasks, self.queues, outside.clock, outside.chance, settings.look_ahead_ms, settings.precision
        )

    @cached_property
    def creating(self) -> Creating:
        """Accepts tasks."""
        outside = self.outside
        keys = DynamoKeyStore(self._dynamodb, self.settings.table)
        return Creating(
            self.tasks,
            self.contents,
            keys,
            self.placing,
            outside.clock,
            outside.chance,
            outside.crew,
            self.settings.shards,
        )

    @cached_property
    def reading(self) -> Reading:
        """Reads tasks."""
        return Reading(self.tasks, self.contents)

    @cached_property
    def changing(self) -> Changing:
        """Changes and cancels tasks."""
        outside = self.outside
        return Changing(
            self.tasks, self.contents, self.placing, outside.clock, outside.chance, self.settings.retention_ms
        )

    @cached_property
    def targets(self) -> Targets:
        """What tasks call."""
        return Targets(HandlerRunner(load(self.settings.handlers)), HttpRunner(self.settings.http_allow))

    @cached_property
    def steering(self) -> Steering:
        """Steers tasks that exist already."""
        outside = self.outside
        closing = ClosingElsewhere(self.queues)
        return Steering(
            self.tasks,
            self.contents,
            self.placing,
            self.changing,
            self._finishing(closing),
            closing,
            outside.clock,
            outside.chance,
        )

    @cached_property
    def waiting(self) -> Waiting:
        """Waits for tasks to end."""
        return Waiting(self.tasks, self.outside.clock)

    def _finishing(self, closing: Closing) -> Finishing:
        outside = self.outside
        return Finishing(
            tasks=self.tasks,
            contents=self.contents,
            placing=self.placing,
            closing=closing,
            clock=outside.clock,
            chance=outside.chance,
            telemetry=self.telemetry,
            retention=self.settings.retention_ms,
        )

    @cached_property
    def dispatching(self) -> Dispatching:
        """Reads minutes."""
        settings, outside = self.settings, self.outside
        function = outside.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
        return Dispatching(
            tasks=self.tasks,
            cursors=DynamoCursorStore(self._dynamodb, settings.table),
            queues=self.queues,
            fan_out=LambdaFanOut(self.outside.clients.lambdas(), function, outside.crew),
            clock=outside.clock,
            crew=outside.crew,
            telemetry=self.telemetry,
            shards=settings.shards,
            look_ahead=settings.look_ahead_ms,
            precision=settings.precision,
        )

    @cached_property
    def working(self) -> Working:
        """Works on batches of messages."""
        settings, outside = self.settings, self.outside
        closing = ClosingHere(
            tasks=self.tasks,
            contents=self.contents,
            targets=self.targets,
            clock=outside.clock,
            chance=outside.chance,
            telemetry=self.telemetry,
            retention=settings.retention_ms,
        )
        finishing = self._finishing(closing)
        attempting = Attempting(
            tasks=self.tasks,
            contents=self.contents,
            targets=self.targets,
            finishing=finishing,
            undoing=Undoing(finishing, self.placing, outside.clock, outside.chance),
            closing=closing,
            clock=outside.clock,
            chance=outside.chance,
            telemetry=self.telemetry,
            lease=settings.lease_ms,
        )
        return Working(
            tasks=self.tasks,
            queues=self.queues,
            attempting=attempting,
            clock=outside.clock,
            chance=outside.chance,
            crew=outside.crew,
            process=outside.process,
            telemetry=self.telemetry,
            lease=settings.lease_ms,
        )

    @cached_property
    def burying(self) -> Burying:
        """Looks into dead letters."""
        outside = self.outside
        closing = ClosingElsewhere(self.queues)
        finishing = self._finishing(closing)
        return Burying(self.tasks, self.queues, self.placing, finishing, closing, outside.clock, self.telemetry)

    def deliveries(self, event: Mapping[str, Any]) -> list[Delivery]:
        """The deliveries in a Lambda event from SQS; what cannot be read is noted and left out."""
        return readable(event, self.queues, self.telemetry)

    @cached_property
    def _dynamodb(self) -> DynamoDBClient:
        return self.outside.clients.dynamodb()


_outside: Outside | None = None


def use(outside: Outside | None) -> None:
    """Exchange the outside world; `None` goes back to the real one. What was composed before is forgotten."""
    global _outside  # noqa: PLW0603 - a Lambda function's process has exactly one outside
    _outside = outside
    composed.cache_clear()


@cache
def composed() -> Composition:
    """The use cases of this process."""
    return Composition(_outside or Outside())
