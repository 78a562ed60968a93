"""`client.switches`: stops and limits, and the circuit breakers of HTTP hosts."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - same
from typing import Any, Literal

from duetime_client.io_operations import Request
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.responses import one
from duetime_client.session import segment
from duetime_client.task import ResponseModel

SWITCHES = "/v1/switches"
Scope = Literal["all", "type", "owner"]
ALL = "all"
"""The name of the switch for all tasks."""


class Switch(ResponseModel):
    """A stop, a concurrency limit or a rate for all tasks, one type or one owner."""

    scope: str
    name: str
    stopped: bool = False
    max_concurrent: int | None = None
    rate: Mapping[str, int] | None = None
    reason: str = ""
    updated_at: datetime
    updated_by: str = ""


class Circuit(ResponseModel):
    """An open circuit breaker: an owner's calls to a failing HTTP host are blocked, and later allowed one at a time."""

    owner: str = ""
    host: str
    state: str
    openings: int = 1
    reason: str = ""
    opened_at: datetime
    open_until: datetime


class StopSwitches(ResponseModel):
    """The switches that apply to the caller; for operators, all switches and the circuit breakers."""

    switches: list[Switch]
    circuits: list[Circuit]


class SwitchOperations(Resource):
    """Switches."""

    @Operation
    def list(self) -> Request[StopSwitches]:
        """List the switches that apply to the caller; for operators, all switches and the open circuit breakers."""
        return Request("GET", SWITCHES, one(StopSwitches))

    @Operation
    def get(self, scope: Scope, name: str = ALL) -> Request[Switch]:
        """One switch."""
        return Request("GET", _path_of(scope, name), one(Switch))

    @Operation
    def put(
        self,
        scope: Scope,
        name: str = ALL,
        *,
        stopped: bool = False,
        max_concurrent: int | None = None,
        rate: Mapping[str, int] | None = None,
        reason: str = "",
    ) -> Request[Switch]:
        """Stop the tasks of a type or an owner, or all tasks, or limit their concurrency or rate.

        The fields of `rate` are `limit`, `per_seconds` and `burst`. An existing switch is replaced completely.
        """
        body: dict[str, Any] = {"stopped": stopped, "max_concurrent": max_concurrent, "reason": reason}
        if rate is not None:
            body["rate"] = dict(rate)
        return Request("PUT", _path_of(scope, name), one(Switch), body=body, repeatable=True)

    @Operation
    def delete(self, scope: Scope, name: str = ALL) -> Request[Switch]:
        """Delete a switch and return it; stopped tasks start automatically."""
        return Request("DELETE", _path_of(scope, name), one(Switch))


class Switches(SwitchOperations, SyncResource):
    """`client.switches` of `Client`."""


class AsyncSwitches(SwitchOperations, AsyncResource):
    """`client.switches` of `AsyncClient`."""


def _path_of(scope: str, name: str) -> str:
    return f"{SWITCHES}/{segment(scope)}/{segment(name)}"
