"""Connects the use cases with their adapters.

The use cases are composed by subject: `composed(TaskServices).creator`. Each use case is created once per process:
`prepare` creates the use cases that most invocations need, and the others are created at first use. A function imports
only the subjects that it uses. Objects that few invocations need are imported within the property that composes them,
and given to other objects as a function (`lambda: core.rate_limiter`), which is called when they are needed. `use`
replaces the platform (clock, randomness, threads, AWS clients), so that tests and the simulation run the unmodified
functions.
"""
# ruff: noqa: E402 - the garbage collector is postponed before the imports of AWS's library and the use cases

from __future__ import annotations

from duetime.adapters.runtime import garbage_collection

garbage_collection.postpone()

import os
from contextlib import suppress
from dataclasses import field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, overload

from duetime.adapters.aws_clients import Clients
from duetime.adapters.runtime.process import LambdaProcess, SystemClock, SystemRandom, Threads
from duetime.adapters.runtime.telemetry import PowertoolsTelemetry
from duetime.environment_variables import Variable
from duetime.ports.runtime import UNTRACED, Runtime, Telemetry
from duetime.settings import Settings, with_settings_module
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.ports.runtime import Clock, Executor, Process, RandomSource, Tracer
    from duetime.services.regions import RegionGate

P = TypeVar("P", bound="Part")


class FlushedTelemetry(Telemetry, Protocol):
    """Telemetry that a function flushes when its invocation ends."""

    def attribute_output(self) -> None:
        """Make the process attribute log and print lines to attempts."""
        ...

    def flush(self) -> None:
        """Write all counts and measurements since the last call."""
        ...


@frozen
class Platform:
    """The platform of a process.

    Attributes:
        environ: the environment variables.
        clock: the time.
        random_source: randomness.
        clients: AWS clients.
        process: the process, which is ended if a worker is stuck.
        threads: executor; `None` to use threads.
        telemetry: counts and logs; `None` to use Powertools.
        substitutes: parts that replace other parts.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Clock = field(default_factory=SystemClock)
    random_source: RandomSource = field(default_factory=SystemRandom)
    clients: Clients = field(default_factory=Clients)
    process: Process = field(default_factory=LambdaProcess)
    threads: Executor | None = None
    telemetry: FlushedTelemetry | None = None
    substitutes: Mapping[type[Part], type[Part]] = field(default_factory=dict)


class Composition:
    """The parts of one process, each created at first use."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.settings = Settings(with_settings_module(platform.environ))
        self._parts: dict[type[Part], Any] = {}

    @cached_property
    def telemetry(self) -> FlushedTelemetry:
        """Logs and metrics; the handler flushes them."""
        settings = self.settings
        return self.platform.telemetry or PowertoolsTelemetry(
            settings.service_name, settings.metrics_namespace, settings.metric_values, self.tracer
        )

    @cached_property
    def tracer(self) -> Tracer:
        """Creates spans, if the settings ask for their export."""
        if not self.settings.exports_spans:
            return UNTRACED
        # Imported only when needed, because functions without the setting are deployed without these libraries.
        from duetime.adapters.runtime.otlp_tracer import OtlpTracer

        return OtlpTracer(self.settings.service_name)

    @cached_property
    def runtime(self) -> Runtime:
        """The runtime of every use case."""
        platform = self.platform
        executor = platform.threads or Threads(platform.clock)
        epochs = self._epoch if self.region is None else self.region.epoch
        return Runtime(platform.clock, platform.random_source, executor, self.telemetry, self.tracer, epochs)

    def _epoch(self) -> int:
        return self.settings.epoch

    @cached_property
    def region(self) -> RegionGate | None:
        """Knows the active Region; `None` if the deployment has one Region, whose functions need no record."""
        if not self.settings.regions:
            return None
        from duetime.adapters.dynamodb.regions import DynamoRegionStore
        from duetime.services.regions import RegionGate

        settings, platform = self.settings, self.platform
        store = DynamoRegionStore(platform.clients.dynamodb(), settings.table)
        return RegionGate(store, platform.clock, settings.region, settings.regions[0], settings.epoch)

    @property
    def is_standby(self) -> bool:
        """Whether another Region is active, so that this process must change nothing."""
        return self.region is not None and not self.region.is_active()

    def part(self, kind: type[P]) -> P:
        """The part of this class."""
        if kind not in self._parts:
            made = self.platform.substitutes.get(kind, kind)(self)
            self._parts.setdefault(kind, made)
        return cast("P", self._parts[kind])


class Part:
    """The use cases of one subject, each created at first use."""

    def __init__(self, composition: Composition) -> None:
        self.part = composition.part
        self.platform = composition.platform
        self.settings = composition.settings
        self.telemetry = composition.telemetry
        self.runtime = composition.runtime


_platform: Platform | None = None


def use(platform: Platform | None) -> None:
    """Replace the platform of a process; `None` restores the real platform. Discards everything composed so far."""
    global _platform  # noqa: PLW0603 - a Lambda function's process has exactly one
    _platform = platform
    _only.cache_clear()


def use_by_process(find: Callable[[], Composition | None]) -> None:
    """Let `find` return the composition of the caller, for a simulation of several processes in one process.

    If `find` returns `None`, the caller gets the composition of the real process.
    """
    global _find  # noqa: PLW0603 - same
    _find = find


@overload
def composed() -> Composition: ...


@overload
def composed(part: type[P]) -> P: ...


def composed(part: type[P] | None = None) -> Composition | P:
    """The composition of this process, or one part of it."""
    composition = _find() or _only()
    return composition if part is None else composition.part(part)


def prepare(compose: Callable[[], object]) -> None:
    """Compose while Lambda initializes the function; elsewhere, the first invocation composes.

    During initialization Lambda gives a function a full vCPU, afterwards only the share that its memory setting buys:
    what takes 60 ms here would take 200 ms in the first invocation with 512 MB. An error is left to the first
    invocation, which composes again and reports the error.

    Args:
        compose: creates what most invocations need, without calling AWS.
    """
    if Variable.FUNCTION_NAME in os.environ:
        with suppress(Exception):
            compose()


@cache
def _only() -> Composition:
    garbage_collection.resume()
    return Composition(_platform or Platform())


_find: Callable[[], Composition | None] = _only
