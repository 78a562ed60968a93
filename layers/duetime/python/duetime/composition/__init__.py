"""Connects the use cases with their adapters.

The use cases are composed by subject, as in `composed(TaskServices).creator`. Each use case is created once per
process. `prepare` creates the use cases that most invocations need; the other use cases are created at first use. A
function imports only the subjects that it uses. An object that few invocations need is imported within the property
that composes it. Its users receive a function that returns the object (`lambda: core.rate_limiter`), and call this
function when they need the object. `use` replaces the platform (clock, randomness, threads, AWS clients), so that tests
and the simulation run the unmodified functions.
"""
# ruff: noqa: E402 - garbage collection is postponed before AWS's library and the use cases are imported

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
        """Let the process attribute its log lines and printed lines to attempts."""
        ...

    def flush(self) -> None:
        """Write all counts and measurements since the last call, and export the spans."""
        ...

    def write_metrics(self) -> None:
        """Write all counts and measurements since the last call."""
        ...


@frozen
class Platform:
    """The platform of a process, which tests can replace.

    Attributes:
        environ: the environment variables.
        clock: returns the time.
        random_source: returns random values.
        clients: the AWS clients.
        process: the process, which the worker ends if a target is stuck.
        threads: the executor; `None` to use threads.
        telemetry: writes metrics and logs; `None` to use Powertools.
        substitutes: the classes of parts that replace other parts.
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
    """The parts of one process. Each part is created at first use."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.settings = Settings(with_settings_module(platform.environ))
        self._parts: dict[type[Part], Any] = {}

    @cached_property
    def telemetry(self) -> FlushedTelemetry:
        """Writes logs and metrics, which the Lambda handler flushes."""
        settings = self.settings
        return self.platform.telemetry or PowertoolsTelemetry(
            settings.service_name, settings.metrics_namespace, settings.metric_values, self.tracer
        )

    @cached_property
    def tracer(self) -> Tracer:
        """Creates spans, if the settings turn on span export."""
        if not self.settings.exports_spans:
            return UNTRACED
        # The module is imported only if needed, because without the setting, functions are deployed without its
        # libraries.
        from duetime.adapters.runtime.otlp_tracer import OtlpTracer

        return OtlpTracer(self.settings.service_name)

    @cached_property
    def runtime(self) -> Runtime:
        """The runtime that all use cases share."""
        platform = self.platform
        executor = platform.threads or Threads(platform.clock)
        epochs = self._epoch if self.region is None else self.region.epoch
        return Runtime(platform.clock, platform.random_source, executor, self.telemetry, self.tracer, epochs)

    def _epoch(self) -> int:
        return self.settings.epoch

    @cached_property
    def region(self) -> RegionGate | None:
        """The object that knows the active Region; `None` for a deployment in one Region, which has no such record."""
        if not self.settings.regions:
            return None
        from duetime.adapters.dynamodb.regions import DynamoRegionStore
        from duetime.services.regions import RegionGate

        settings, platform = self.settings, self.platform
        store = DynamoRegionStore(platform.clients.dynamodb(), settings.table)
        return RegionGate(store, platform.clock, settings.region, settings.regions[0], settings.epoch)

    @property
    def is_standby(self) -> bool:
        """Whether another Region is active, which means that this process must not change anything."""
        return self.region is not None and not self.region.is_active()

    def part(self, kind: type[P]) -> P:
        """Return the part with this class, and create it at first use."""
        if kind not in self._parts:
            made = self.platform.substitutes.get(kind, kind)(self)
            self._parts.setdefault(kind, made)
        return cast("P", self._parts[kind])


class Part:
    """The use cases for one subject. Each use case is created at first use."""

    def __init__(self, composition: Composition) -> None:
        self.part = composition.part
        self.platform = composition.platform
        self.settings = composition.settings
        self.telemetry = composition.telemetry
        self.runtime = composition.runtime


_platform: Platform | None = None


def use(platform: Platform | None) -> None:
    """Replace this process's platform, and discard all composed objects; `None` restores the real platform."""
    global _platform  # noqa: PLW0603 - a Lambda function's process has exactly one
    _platform = platform
    _only.cache_clear()


def use_by_process(find: Callable[[], Composition | None]) -> None:
    """Let `find` return each caller's composition, so that one process can simulate several processes.

    If `find` returns `None`, the caller receives the composition of the real process.
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
    """Compose while Lambda initializes the function; outside Lambda, the first invocation composes.

    Lambda gives a function a full vCPU during initialization, but later only the share for its memory setting. Work
    that takes 60 ms here would take 200 ms in the first invocation with 512 MB. Errors are ignored here, because the
    first invocation composes again and reports the error.

    Args:
        compose: creates the objects that most invocations need, without calling AWS.
    """
    if Variable.FUNCTION_NAME in os.environ:
        with suppress(Exception):
            compose()


@cache
def _only() -> Composition:
    garbage_collection.resume()
    return Composition(_platform or Platform())


_find: Callable[[], Composition | None] = _only
