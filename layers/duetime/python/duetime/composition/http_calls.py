"""Composes HTTP calls."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.adapters.targets.egress import Egress, EgressCaller, LambdaInvocation, SpanPassingCaller, TracedCaller
from duetime.adapters.targets.http_client import DirectCaller
from duetime.adapters.targets.signing import Signer, SigningKeyMissing, StoredSigningKeys
from duetime.composition import Part
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.adapters.targets.credentials import Credentials
    from duetime.adapters.targets.http_messages import Caller
    from duetime.adapters.targets.signing import OwnerSecret
    from duetime.domain.times import Millis


class HttpServices(Part):
    """Makes HTTP calls, directly or through the egress function."""

    @cached_property
    def caller(self) -> Caller:
        """Makes HTTP calls: through the egress function if there is one, else from this process."""
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
        settings = self.settings
        caller = DirectCaller(settings.http_allow, self._signer, self.runtime.clock, self._credentials)
        return TracedCaller(caller, self.runtime.tracer) if settings.exports_spans else caller

    @cached_property
    def _signer(self) -> Signer | None:
        secret, clock = self.settings.signing_secret, self.runtime.clock
        return Signer(StoredSigningKeys(self.platform.clients.secrets(), secret, clock), clock) if secret else None

    def secrets_of(self, owner: str) -> tuple[Sequence[OwnerSecret], Millis | None]:
        """The live secrets that sign an owner's calls, the current one first, and when a schedule replaces it.

        There are none in a deployment without a signing secret.

        Raises:
            Unavailable: the secret of the deployment cannot be read.
        """
        if self._signer is None:
            return (), None
        try:
            return self._signer.secrets_of(owner), self._signer.rotates_at(owner)
        except SigningKeyMissing as error:
            raise Unavailable(str(error)) from error

    def _credentials(self) -> Credentials:
        """Credentials of calls; created for the first call that names a secret."""
        return self._kept_credentials

    @cached_property
    def _kept_credentials(self) -> Credentials:
        # Imported when needed: most deployments have no such secrets.
        from duetime.adapters.targets.credentials import Credentials

        settings = self.settings
        return Credentials(
            self.platform.clients.secrets, settings.http_secrets, settings.http_allow, self.runtime.clock
        )

    def passing(self, caller: Caller) -> Caller:
        """The same caller, which passes the spans of its calls to the egress function if spans are exported."""
        return SpanPassingCaller(caller, self.runtime.tracer) if self.settings.exports_spans else caller
