"""The settings of the deployment: what it allows its callers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from duetime_client.lock_admin import read
from duetime_client.problems import document_of
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.transport import Transport

SETTINGS = "/v1/settings"


class PulledType(ResponseModel):
    """A type whose tasks are leased by pull workers."""

    type: str
    may_lease: bool = False


class LogLocation(ResponseModel):
    """Where the logs of the workers are."""

    stack: str
    region: str | None = None
    log_group: str | None = None


class DeploymentSettings(ResponseModel):
    """What the deployment allows, and who the caller is to it.

    Attributes:
        owner: The caller, as the owner of its tasks.
        handler_types: Types with a Python handler; nothing if they are not known.
    """

    owner: str
    is_operator: bool
    authentication: str
    handler_types: list[str] | None = None
    pulled_types: list[PulledType] = Field(default_factory=list)
    aws_targets: list[str] = Field(default_factory=list)
    private_http_hosts: list[str] = Field(default_factory=list)
    retention_days: float
    is_archived: bool = False
    is_counted: bool = False
    precision: str
    shards: int
    look_ahead_seconds: float
    requests_per_second: int | None = None
    waiting_requests: int | None = None
    logs: LogLocation | None = None


class SettingsReader:
    """The client's method for the settings."""

    _transport: Transport

    def get_settings(self) -> DeploymentSettings:
        """What the deployment allows, how long it keeps tasks, and who the caller is to it."""
        response = self._transport.request("GET", SETTINGS)
        return read(DeploymentSettings, response, document_of(response))
