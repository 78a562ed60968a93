"""Composes the egress function, the functions of handler packages, and the function to which handler packages report.

Modules that only one of these functions needs are imported within its properties.
"""

from __future__ import annotations

from functools import cached_property
from threading import Timer
from typing import TYPE_CHECKING

from duetime.adapters.targets.egress import Egress, EgressCaller, LambdaInvocation, SpanPassingCaller, TracedCaller
from duetime.composition import Part
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.adapters.targets.attempt_function import AttemptFunction
    from duetime.adapters.targets.credentials import Credentials
    from duetime.adapters.targets.http_messages import Caller
    from duetime.adapters.targets.package_function import AttemptChannel, PackageFunction
    from duetime.adapters.targets.python_handlers import HandlerRunner
    from duetime.adapters.targets.signing import OwnerSecret, Signer
    from duetime.domain.times import Millis
    from duetime.ports.targets import Work


class HttpServices(Part):
    """Makes HTTP calls, directly or through the egress function."""

    @cached_property
    def caller(self) -> Caller:
        """Makes HTTP calls through the egress function, or from this process if there is no egress function."""
        if function := self.settings.egress_function:
            caller = EgressCaller(LambdaInvocation(self.platform.clients.calling_lambdas(), function))
            return self.passing(caller)
        return self._direct_caller

    @cached_property
    def egress(self) -> Egress:
        """Makes the HTTP calls that other functions forward."""
        return Egress(self._direct_caller, self.runtime.executor)

    @cached_property
    def _direct_caller(self) -> Caller:
        from duetime.adapters.targets.http_client import DirectCaller

        settings = self.settings
        caller = DirectCaller(settings.http_allow, self._signer, self.runtime.clock, self._credentials)
        return TracedCaller(caller, self.runtime.tracer) if settings.exports_spans else caller

    @cached_property
    def _signer(self) -> Signer | None:
        secret, clock = self.settings.signing_secret, self.runtime.clock
        if not secret:
            return None
        from duetime.adapters.targets.signing import Signer, StoredSigningKeys

        return Signer(StoredSigningKeys(self.platform.clients.secrets(), secret, clock), clock)

    def secrets_of(self, owner: str) -> tuple[Sequence[OwnerSecret], Millis | None]:
        """The secrets that sign an owner's calls, the current one first, and the time of the next scheduled rotation.

        The result is empty in a deployment without a signing secret.

        Raises:
            Unavailable: the deployment's secret cannot be read.
        """
        if self._signer is None:
            return (), None
        from duetime.adapters.targets.signing import SigningKeyMissing

        try:
            return self._signer.secrets_of(owner), self._signer.rotates_at(owner)
        except SigningKeyMissing as error:
            raise Unavailable(str(error)) from error

    def _credentials(self) -> Credentials:
        """The credentials for calls, which are created for the first call that names a secret."""
        return self._kept_credentials

    @cached_property
    def _kept_credentials(self) -> Credentials:
        # Most deployments have no secrets for calls, so the module is imported only if needed.
        from duetime.adapters.targets.credentials import Credentials

        settings = self.settings
        return Credentials(
            self.platform.clients.secrets, settings.http_secrets, settings.http_allow, self.runtime.clock
        )

    def passing(self, caller: Caller) -> Caller:
        """Let a caller pass its calls' spans to the egress function, if spans are exported."""
        return SpanPassingCaller(caller, self.runtime.tracer) if self.settings.exports_spans else caller


class PackageServices(Part):
    """Runs the handlers of one package."""

    @cached_property
    def function(self) -> PackageFunction:
        """Runs the handler phases that workers send."""
        from duetime.adapters.targets.package_function import PackageFunction
        from duetime.adapters.targets.python_handlers import HandlerRunner, HandlersPackage
        from duetime.handlers import REGISTRY

        package = HandlersPackage(self.settings.handlers, self.runtime.clock)
        # Output is attributed before the package is imported, because the package's loggers keep the output stream
        # that is in place when they are created.
        self.telemetry.attribute_output()
        # This call imports the package during initialization, while Lambda gives the function a full vCPU.
        package.why_broken()

        def runner_for(channel: AttemptChannel) -> HandlerRunner:
            return HandlerRunner(REGISTRY, package, clients=lambda work: self._clients_of(work, channel))

        invocation = LambdaInvocation(self.platform.clients.calling_lambdas(), self.settings.attempts_function)
        return PackageFunction(runner_for, invocation, self.runtime.clock, self.platform.process, _after)

    def _clients_of(self, work: Work, channel: AttemptChannel) -> Callable[[], object]:
        # Most handlers use no client, so the client and httpx are imported only for handlers that use one.
        from duetime.adapters.targets.handler_client import HandlerClients

        return HandlerClients(channel.request, self.runtime).of(work)


class AttemptServices(Part):
    """Handles reports from handler packages."""

    @cached_property
    def function(self) -> AttemptFunction:
        """Answers requests from handler packages."""
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
