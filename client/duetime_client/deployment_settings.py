"""`client.settings`: the deployment's limits and allowed targets, for its callers."""

from __future__ import annotations

from pydantic import Field

from duetime_client.io_operations import Request
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.responses import one
from duetime_client.task import ResponseModel

SETTINGS = "/v1/settings"


class PulledType(ResponseModel):
    """A type whose tasks are leased by pull workers."""

    type: str
    may_lease: bool = False


class UsableSecret(ResponseModel):
    """A secret that HTTP targets may use, and the hosts it may be sent to."""

    name: str
    hosts: list[str] = Field(default_factory=list)


class TypeRetention(ResponseModel):
    """Retention, in days, of ended tasks whose type matches the pattern `types`."""

    types: str
    days: float


class LogLocation(ResponseModel):
    """The location of the workers' logs."""

    stack: str
    region: str | None = None
    log_group: str | None = None


class OwnQuota(ResponseModel):
    """A quota of the caller and its usage; both numbers are either per second or counts."""

    quota: str
    limit: int
    used: float = 0


class DeploymentSettings(ResponseModel):
    """What the deployment allows, and how it identifies the caller.

    Attributes:
        owner: The owner that the caller acts for; by default, the caller's own identity.
        owners: All owners that the caller may act for.
        roles: The caller's roles.
        handler_types: Types with a Python handler; `None` if unknown.
        quotas: The quotas that limit the caller; `None` if the deployment has no quotas.
    """

    owner: str
    owners: list[str] = Field(default_factory=list)
    roles: list[str] = Field(default_factory=list)
    is_operator: bool
    authentication: str
    handler_types: list[str] | None = None
    pulled_types: list[PulledType] = Field(default_factory=list)
    aws_targets: list[str] = Field(default_factory=list)
    private_http_hosts: list[str] = Field(default_factory=list)
    http_secrets: list[UsableSecret] = Field(default_factory=list)
    retention_days: float
    retention_by_type: list[TypeRetention] = Field(default_factory=list)
    is_archived: bool = False
    is_counted: bool = False
    precision: str
    shards: int
    look_ahead_seconds: float
    requests_per_second: int | None = None
    waiting_requests: int | None = None
    quotas: list[OwnQuota] | None = None
    logs: LogLocation | None = None


class SettingsOperations(Resource):
    """The settings of the deployment."""

    @Operation
    def get(self) -> Request[DeploymentSettings]:
        """Get the allowed targets, retention periods and the caller's owner name."""
        return Request("GET", SETTINGS, one(DeploymentSettings))


class SettingsResource(SettingsOperations, SyncResource):
    """`client.settings` of `Client`."""


class AsyncSettingsResource(SettingsOperations, AsyncResource):
    """`client.settings` of `AsyncClient`."""
