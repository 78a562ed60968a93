"""`client.api_keys`: the API keys of a deployment, for its administrators."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from duetime_client.io_operations import Request
from duetime_client.pages import pages
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one, read
from duetime_client.session import segment
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.io_operations import Items

API_KEYS = "/v1/keys"
Role = Literal["reader", "writer", "worker", "operator", "admin"]


class ApiKey(ResponseModel):
    """An API key without its secret.

    Attributes:
        owner: The owner that requests with the key act for.
        roles: The roles that requests with the key have.
        state: `active`, `expired` or `revoked`.
        used_at: When the key was last used, accurate to the hour; `None` if it was never used.
    """

    id: str
    name: str
    owner: str
    roles: Sequence[str]
    state: str
    created_at: datetime
    created_by: str = ""
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None


class CreatedApiKey(ApiKey):
    """A new key. The secret text in `key` is returned only once."""

    key: str


class ApiKeyOperations(Resource):
    """API keys."""

    @Operation
    def create(
        self,
        name: str,
        roles: Sequence[Role],
        *,
        owner: str | None = None,
        expires_at: datetime | str | None = None,
    ) -> Request[CreatedApiKey]:
        """Create a key for `owner`, or for the caller by default.

        The request is not retried if its response is lost.
        """
        body: dict[str, Any] = {"name": name, "roles": [*roles]}
        if owner is not None:
            body["owner"] = owner
        if expires_at is not None:
            body["expires_at"] = expires_at.isoformat() if isinstance(expires_at, datetime) else expires_at
        return Request("POST", API_KEYS, one(CreatedApiKey), body=body)

    @Stream
    def list(self) -> Items[ApiKey]:
        """List the keys of all owners in order of creation; pages are fetched as needed."""
        return pages(self._session, API_KEYS, "keys", partial(read, ApiKey))

    @Operation
    def revoke(self, id: str) -> Request[ApiKey]:  # noqa: A002 - the API's name
        """Revoke a key; requests that use it are rejected from then on."""
        return Request("DELETE", f"{API_KEYS}/{segment(id)}", one(ApiKey), repeatable=True)


class ApiKeys(ApiKeyOperations, SyncResource):
    """`client.api_keys` of `Client`."""


class AsyncApiKeys(ApiKeyOperations, AsyncResource):
    """`client.api_keys` of `AsyncClient`."""
