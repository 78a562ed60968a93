"""Composes the HTTP calls."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.adapters.targets.egress import Egress, EgressCaller, LambdaInvocation
from duetime.adapters.targets.http_client import DirectCaller
from duetime.adapters.targets.signing import Signer, SigningSecrets
from duetime.composition.root import Part

if TYPE_CHECKING:
    from duetime.adapters.targets.http_messages import Caller


class HttpServices(Part):
    """Making HTTP calls, and having them made."""

    @cached_property
    def caller(self) -> Caller:
        """Makes HTTP calls: through the egress function if there is one, else from this process."""
        if function := self.settings.egress_function:
            return EgressCaller(LambdaInvocation(self.platform.clients.calling_lambdas(), function))
        return self._direct_caller

    @cached_property
    def egress(self) -> Egress:
        """Makes the HTTP calls that other functions hand on."""
        return Egress(self._direct_caller, self.runtime.executor)

    @cached_property
    def _direct_caller(self) -> DirectCaller:
        settings, clock = self.settings, self.runtime.clock
        signer = None
        if secret := settings.signing_secret:
            signer = Signer(SigningSecrets(self.platform.clients.secrets(), secret, clock), clock)
        return DirectCaller(settings.http_allow, signer)
