"""Composes what tasks call."""

from __future__ import annotations

from collections import ChainMap
from functools import cached_property

from duetime.adapters.targets import Targets
from duetime.adapters.targets.aws_resource_clients import Resources
from duetime.adapters.targets.aws_target import AwsRunner
from duetime.adapters.targets.http_target import HttpRunner
from duetime.adapters.targets.python_handlers import HandlerRunner
from duetime.adapters.targets.topology_target import TopologyRunner
from duetime.canary_task import BUILT_IN
from duetime.composition.core import CoreServices
from duetime.composition.deferred_imports import deferred
from duetime.composition.deferred_topologies import topology_rollback, topology_services
from duetime.composition.http_calls import HttpServices
from duetime.composition.root import Part
from duetime.composition.start_gates import StartGateServices
from duetime.handlers import REGISTRY
from duetime.services.worker.circuit_breaker import CircuitBreakers


class TargetServices(Part):
    """Calling the targets of tasks."""

    @cached_property
    def targets(self) -> Targets:
        """What tasks call."""
        topologies = TopologyRunner(
            deferred(lambda: topology_services(self).state_machine), deferred(lambda: topology_rollback(self))
        )
        package = self.part(StartGateServices).handlers_package
        # Imported before its first task, while Lambda gives a starting process more of a processor.
        package.why_broken()
        handlers = HandlerRunner(ChainMap(REGISTRY, dict(BUILT_IN)), package)
        return Targets(handlers, HttpRunner(self.part(HttpServices).caller), self.aws_runner, topologies)

    @cached_property
    def aws_runner(self) -> AwsRunner:
        """Calls the AWS resources that are targets, and those that notices are sent to."""
        return AwsRunner(Resources(self.platform.clients), self.settings.callable_arns)

    @cached_property
    def circuit_breakers(self) -> CircuitBreakers:
        """What tasks call, with a circuit breaker for each HTTP host."""
        return CircuitBreakers(self.targets, self.part(CoreServices).stores.circuit_breakers, self.runtime)
