"""Switches: what is stopped or capped, and which HTTP hosts are left alone."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from typing import TYPE_CHECKING, Literal

from duetime_client.lock_admin import read
from duetime_client.problems import document_of
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.transport import Transport

SWITCHES = "/v1/switches"
Scope = Literal["everything", "type", "owner"]


class Switch(ResponseModel):
    """What an operator has decided about everything, about one type of tasks, or about one owner's."""

    scope: str
    name: str = ""
    stopped: bool = False
    max_concurrent: int | None = None
    reason: str = ""
    changed_at: datetime
    changed_by: str = ""


class Circuit(ResponseModel):
    """An HTTP host that keeps failing an owner's calls: it calls it not until then, and then by one call at a time."""

    owner: str = ""
    host: str
    state: str
    openings: int = 1
    reason: str = ""
    opened_at: datetime
    open_until: datetime


class StopSwitches(ResponseModel):
    """What is held back; circuits are for operators only."""

    switches: list[Switch]
    circuits: list[Circuit]


class Switches:
    """The part of the client that sets switches."""

    _transport: Transport

    def list_switches(self) -> StopSwitches:
        """All switches that concern the caller, and for operators the circuits that are not closed."""
        response = self._transport.request("GET", SWITCHES)
        return read(StopSwitches, response, document_of(response))

    def put_switch(
        self,
        scope: Scope,
        name: str = "",
        *,
        stopped: bool = False,
        max_concurrent: int | None = None,
        reason: str = "",
    ) -> Switch:
        """Stop or cap something; the switch that was there is replaced as a whole."""
        body = {"scope": scope, "name": name, "stopped": stopped, "max_concurrent": max_concurrent, "reason": reason}
        response = self._transport.request("PUT", SWITCHES, body=body, repeatable=True)
        return read(Switch, response, document_of(response))

    def remove_switch(self, scope: Scope, name: str = "") -> Switch:
        """Lift a switch: what it held back comes again by itself. Answers the switch as it was."""
        query = [("scope", scope), *([("name", name)] if name else [])]
        response = self._transport.request("DELETE", SWITCHES, query=query)
        return read(Switch, response, document_of(response))
