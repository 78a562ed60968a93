"""`client.signing_secrets`: the secrets that sign HTTP calls for the caller, and the public keys of all owners."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - same

from duetime_client.io_operations import Request
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.responses import one
from duetime_client.task import ResponseModel


class SigningKey(ResponseModel):
    """The current or the previous public key, in the format of Standard Webhooks."""

    public_key: str
    is_current: bool


class SigningSecret(SigningKey):
    """A secret in the format of Standard Webhooks, with its public key."""

    secret: str


class SigningSecrets(ResponseModel):
    """The live secrets, current secret first; empty if the deployment does not sign calls."""

    secrets: Sequence[SigningSecret]
    rotates_at: datetime | None = None


class SigningKeys(ResponseModel):
    """The live public keys of an owner, current key first; empty if the deployment does not sign calls."""

    owner: str
    keys: Sequence[SigningKey]
    rotates_at: datetime | None = None


class SigningSecretOperations(Resource):
    """The secrets with which an endpoint verifies calls."""

    @Operation
    def list(self) -> Request[SigningSecrets]:
        """List the live secrets of the caller, current secret first."""
        return Request("GET", "/v1/signing-secrets", one(SigningSecrets))

    @Operation
    def list_public_keys(self, owner: str) -> Request[SigningKeys]:
        """List the live public keys that verify calls for an owner, current key first."""
        return Request("GET", "/v1/signing-keys", one(SigningKeys), query=(("owner", owner),))


class SigningSecretsResource(SigningSecretOperations, SyncResource):
    """`client.signing_secrets` of `Client`."""


class AsyncSigningSecretsResource(SigningSecretOperations, AsyncResource):
    """`client.signing_secrets` of `AsyncClient`."""
