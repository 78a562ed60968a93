"""Switches: what is stopped or limited, and the circuit breakers of HTTP hosts."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from duetime_client.lock_admin import read
from duetime_client.problems import document_of
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.transport import Transport

SWITCHES = "/v1/switches"
Scope = Literal["all", "type", "owner"]
ALL = "all"
"""The name of the switch for all tasks."""


class Switch(ResponseModel):
    """A stop or a concurrency limit for all tasks, one type or one owner."""

    scope: str
    name: str
    stopped: bool = False
    max_concurrent: int | None = None
    reason: str = ""
    updated_at: datetime
    updated_by: str = ""


class Circuit(ResponseModel):
    """An open circuit breaker: an HTTP host that fails an owner's calls gets none for a while, then one at a time."""

    owner: str = ""
    host: str
    state: str
    openings: int = 1
    reason: str = ""
    opened_at: datetime
    open_until: datetime


class StopSwitches(ResponseModel):
    """All switches; circuit breakers are for operators only."""

    switches: list[Switch]
    circuits: list[Circuit]


class Switches:
    """The client's methods for switches."""

    _transport: Transport

    def list_switches(self) -> StopSwitches:
        """All switches that apply to the caller and, for operators, the circuit breakers that are not closed."""
        response = self._transport.request("GET", SWITCHES)
        return read(StopSwitches, response, document_of(response))

    def get_switch(self, scope: Scope, name: str = ALL) -> Switch:
        """One switch."""
        response = self._transport.request("GET", _path_of(scope, name))
        return read(Switch, response, document_of(response))

    def put_switch(
        self,
        scope: Scope,
        name: str = ALL,
        *,
        stopped: bool = False,
        max_concurrent: int | None = None,
        reason: str = "",
    ) -> Switch:
        """Stop something or limit its concurrency; replaces the existing switch completely."""
        body = {"stopped": stopped, "max_concurrent": max_concurrent, "reason": reason}
        response = self._transport.request("PUT", _path_of(scope, name), body=body, repeatable=True)
        return read(Switch, response, document_of(response))

    def delete_switch(self, scope: Scope, name: str = ALL) -> Switch:
        """Delete a switch; stopped tasks start by themselves. Returns the switch as it was."""
        response = self._transport.request("DELETE", _path_of(scope, name))
        return read(Switch, response, document_of(response))


def _path_of(scope: str, name: str) -> str:
    return "/".join((SWITCHES, *(quote(part, safe="", errors="replace") for part in (scope, name))))
