"""Composes packages of handlers with separate functions, and the function that they report to."""

from __future__ import annotations

from functools import cached_property
from threading import Timer
from typing import TYPE_CHECKING

from duetime.adapters.targets.egress import LambdaInvocation
from duetime.adapters.targets.package_function import AttemptChannel, PackageFunction
from duetime.adapters.targets.python_handlers import HandlerRunner, HandlersPackage
from duetime.composition import Part
from duetime.handlers import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.adapters.targets.attempt_function import AttemptFunction
    from duetime.ports.targets import Work


class PackageServices(Part):
    """Runs the handlers of one package."""

    @cached_property
    def function(self) -> PackageFunction:
        """Runs the phases that workers send."""
        package = HandlersPackage(self.settings.handlers, self.runtime.clock)
        # Loggers keep the stream that they find when the package creates them.
        self.telemetry.attribute_output()
        # Imported with the function, while Lambda gives it a whole processor.
        package.why_broken()

        def runner_for(channel: AttemptChannel) -> HandlerRunner:
            return HandlerRunner(REGISTRY, package, clients=lambda work: self._clients_of(work, channel))

        invocation = LambdaInvocation(self.platform.clients.calling_lambdas(), self.settings.attempts_function)
        return PackageFunction(runner_for, invocation, self.runtime.clock, self.platform.process, _after)

    def _clients_of(self, work: Work, channel: AttemptChannel) -> Callable[[], object]:
        # Most handlers use no client, so the client and httpx are imported only for those that do.
        from duetime.adapters.targets.handler_client import HandlerClients

        return HandlerClients(channel.request, self.runtime).of(work)


class AttemptServices(Part):
    """Handles the reports of packages."""

    @cached_property
    def function(self) -> AttemptFunction:
        """Answers the requests of packages."""
        from duetime.adapters.targets.attempt_function import AttemptFunction
        from duetime.composition.attempts import OutcomeServices
        from duetime.composition.core import CoreServices
        from duetime.services.tasks.attempt_reports import PackagedAttempts

        stores, runtime = self.part(CoreServices).stores, self.runtime
        steps = self.part(OutcomeServices).attempt_steps
        attempts = PackagedAttempts(stores.tasks, stores.contents, steps, runtime)
        api = LambdaInvocation(self.platform.clients.calling_lambdas(), self.settings.api_function)
        return AttemptFunction(attempts, api, runtime.random_source, runtime.clock)


def _after(seconds: float, call: Callable[[], None]) -> Callable[[], None]:
    timer = Timer(seconds, call)
    timer.daemon = True
    timer.start()
    return timer.cancel
