"""`client.signing_secrets`: the secrets that sign HTTP calls for the caller."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations when the class is made

from duetime_client.io_operations import Request
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.responses import one
from duetime_client.task import ResponseModel


class SigningSecret(ResponseModel):
    """A secret in the form of Standard Webhooks; the current one, or the one before."""

    secret: str
    is_current: bool


class SigningSecrets(ResponseModel):
    """The live secrets, the current one first; none if the deployment does not sign."""

    secrets: Sequence[SigningSecret]


class SigningSecretOperations(Resource):
    """The secrets with which an endpoint verifies calls."""

    @Operation
    def list(self) -> Request[SigningSecrets]:
        """The live secrets of the caller, the current one first."""
        return Request("GET", "/v1/signing-secrets", one(SigningSecrets))


class SigningSecretsResource(SigningSecretOperations, SyncResource):
    """`client.signing_secrets` of `Client`."""


class AsyncSigningSecretsResource(SigningSecretOperations, AsyncResource):
    """`client.signing_secrets` of `AsyncClient`."""
