"""`client.quotas`: the quotas of each owner, and their usage."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - same

from duetime_client.io_operations import Request
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.responses import one
from duetime_client.session import segment
from duetime_client.task import ResponseModel

QUOTAS = "/v1/quotas"


class OwnQuotas(ResponseModel):
    """The quotas that an operator has set for an owner; `None` for the default."""

    owner: str
    own: Mapping[str, int | None]
    reason: str = ""
    updated_at: datetime | None = None
    updated_by: str = ""


class OwnerQuotas(OwnQuotas):
    """The quotas in force for an owner, and their usage."""

    limits: Mapping[str, int | None]
    used: Mapping[str, float]


class QuotaList(ResponseModel):
    """The quotas of a deployment: the defaults, and the owners with different quotas."""

    defaults: Mapping[str, int | None]
    owners: list[OwnQuotas]


class QuotaOperations(Resource):
    """Quotas."""

    @Operation
    def list(self) -> Request[QuotaList]:
        """Get the default quotas and, for operators, the owners with different quotas."""
        return Request("GET", QUOTAS, one(QuotaList))

    @Operation
    def get(self, owner: str) -> Request[OwnerQuotas]:
        """Get the quotas of an owner and their usage; callers who are not operators can read only their own quotas."""
        return Request("GET", _path_of(owner), one(OwnerQuotas))

    @Operation
    def put(self, owner: str, limits: Mapping[str, int], *, reason: str = "") -> Request[OwnerQuotas]:
        """Set the quotas of one owner, such as `{"creates_per_second": 100}`; other quotas get their defaults.

        The owner's existing quotas are replaced completely.
        """
        body = {**limits, "reason": reason}
        return Request("PUT", _path_of(owner), one(OwnerQuotas), body=body, repeatable=True)

    @Operation
    def delete(self, owner: str) -> Request[OwnerQuotas]:
        """Delete the quotas of one owner and return them; the defaults apply from then on."""
        return Request("DELETE", _path_of(owner), one(OwnerQuotas))


class Quotas(QuotaOperations, SyncResource):
    """`client.quotas` of `Client`."""


class AsyncQuotas(QuotaOperations, AsyncResource):
    """`client.quotas` of `AsyncClient`."""


def _path_of(owner: str) -> str:
    return f"{QUOTAS}/{segment(owner)}"
