"""Switches over REST: the body, the query, the answers and the operations."""

from __future__ import annotations

import re
from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations for the OpenAPI document
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.http.request_errors import Fault, FieldsInvalid
from duetime.contract.http.validation_errors import read_body
from duetime.contract.tasks.bodies import Body
from duetime.contract.tasks.fields import OWNER_PATTERN, OWNER_RULE, TYPE_PATTERN, printable
from duetime.contract.tasks.queries import Parameters
from duetime.contract.tasks.responses import Instant  # noqa: TC001 - same
from duetime.domain import errors
from duetime.domain.limits import MAX_LOCK_HOLDERS, MAX_SWITCH_REASON_LENGTH
from duetime.domain.switches import Switch, SwitchKey, SwitchScope
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.circuit_breakers import Circuit, CircuitState

_TYPE = re.compile(TYPE_PATTERN.removesuffix("$"))
_OWNER = re.compile(OWNER_PATTERN)
_NAME_RULES = {
    SwitchScope.EVERYTHING: "belongs to the scopes 'type' and 'owner'",
    SwitchScope.TYPE: "should be a type of tasks",
    SwitchScope.OWNER: OWNER_RULE,
}
_Scope = Annotated[SwitchScope, Field(strict=False, description="What it is about.")]
_Name = Annotated[str, Field(description="Of the type or the owner; none for everything.", examples=["report"])]


def _as_switch(schema: dict[str, Any]) -> None:
    """A name belongs to a type or an owner, and everything together cannot be capped."""
    everything = {"properties": {"scope": {"const": "everything"}}}
    schema |= {
        "if": everything,
        "then": {"properties": {"name": {"const": ""}, "max_concurrent": {"type": "null"}}},
        "else": {"required": ["name"], "properties": {"name": {"minLength": 1}}},
    }


class SwitchFields(Body):
    """A switch as it shall be; the one that was there is replaced as a whole."""

    model_config = ConfigDict(json_schema_extra=_as_switch)

    scope: _Scope
    name: _Name = ""
    stopped: Annotated[bool, Field(description="Nothing of it begins; what runs goes on.")] = False
    max_concurrent: Annotated[
        int | None,
        Field(ge=1, le=MAX_LOCK_HOLDERS, description="Most of its tasks that run at once; null for no limit."),
    ] = None
    reason: Annotated[
        str,
        Field(max_length=MAX_SWITCH_REASON_LENGTH, description="Why; shown with each task that is held back."),
        AfterValidator(printable),
    ] = ""


class SwitchQuery(Parameters):
    """Parameters of `DELETE /v1/switches`."""

    scope: _Scope
    name: _Name = ""

    @property
    def key(self) -> SwitchKey:
        """The switch that they name."""
        return SwitchKey(self.scope, self.name)

    def contradictions(self) -> Sequence[Fault]:
        """A name that no switch of the scope can have."""
        fault = _fault_of(self.key)
        return () if fault is None else (fault,)


class SwitchResponse(TypedDict):
    """What is stopped or capped, and by whom."""

    scope: SwitchScope
    name: str
    stopped: bool
    max_concurrent: int | None
    reason: str
    changed_at: Instant
    changed_by: str


class CircuitResponse(TypedDict):
    """An HTTP host that keeps failing an owner's calls, and is left alone by that owner."""

    owner: str
    host: str
    state: Annotated[
        Literal["open", "half_open"], Field(description="`half_open`: one call at a time finds out whether it is well.")
    ]
    openings: Annotated[int, Field(description="How often in a row it was opened.")]
    reason: Annotated[str, Field(description="Class of the error that opened it last.")]
    opened_at: Annotated[Instant, Field(description="When it was opened first.")]
    open_until: Annotated[Instant, Field(description="When the host is called again, once.")]


class SwitchesResponse(TypedDict):
    """What is held back."""

    switches: Sequence[SwitchResponse]
    circuits: Annotated[Sequence[CircuitResponse], Field(description="For operators only; at most 100.")]


def switch_of(document: Document) -> Switch:
    """The switch that a body asks for.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
    """
    body = read_body(SwitchFields, document)
    key = SwitchKey(body.scope, body.name)
    if fault := _fault_of(key):
        raise FieldsInvalid([fault])
    if body.max_concurrent is not None and body.scope is SwitchScope.EVERYTHING:
        # One lock for all tasks of all owners would be one item that each of them writes.
        raise FieldsInvalid([Fault("max_concurrent", "belongs to the scopes 'type' and 'owner'")])
    return Switch(key, body.stopped, body.max_concurrent, body.reason)


def switch_response(switch: Switch) -> SwitchResponse:
    """A switch."""
    return SwitchResponse(
        scope=switch.key.scope,
        name=switch.key.name,
        stopped=switch.stopped,
        max_concurrent=switch.max_concurrent,
        reason=switch.reason,
        changed_at=to_iso(switch.changed_at),
        changed_by=switch.changed_by,
    )


def switches_response(switches: Sequence[Switch], circuits: Sequence[tuple[Circuit, CircuitState]]) -> SwitchesResponse:
    """What is held back."""
    return SwitchesResponse(
        switches=[switch_response(switch) for switch in switches],
        circuits=[_circuit(circuit, state) for circuit, state in circuits],
    )


def _circuit(circuit: Circuit, state: CircuitState) -> CircuitResponse:
    return CircuitResponse(
        owner=circuit.owner,
        host=circuit.host,
        state="open" if state == "open" else "half_open",
        openings=circuit.openings,
        reason=circuit.reason,
        opened_at=to_iso(circuit.opened_at),
        open_until=to_iso(circuit.open_until),
    )


def _fault_of(key: SwitchKey) -> Fault | None:
    """What is wrong with the name of a switch."""
    fits = {
        SwitchScope.EVERYTHING: key.name == "",
        SwitchScope.TYPE: _TYPE.fullmatch(key.name) is not None,
        SwitchScope.OWNER: _OWNER.fullmatch(key.name) is not None,
    }
    if fits[key.scope]:
        return None
    return Fault("name", _NAME_RULES[key.scope] if key.name or key.scope is SwitchScope.EVERYTHING else "is required")


_WHO = "Operators may do this for all; others for the tasks of their own, unless an operator has."
LIST = Operation(
    "listSwitches",
    "GET /v1/switches",
    "See what is stopped or capped, and which HTTP hosts are left alone",
    Returns(SwitchesResponse, "All there is to see."),
    description="Operators see all; others see the switches that concern them.",
)
PUT = Operation(
    "putSwitch",
    "PUT /v1/switches",
    "Stop or cap a type, an owner or everything",
    Returns(SwitchResponse, "The switch."),
    description="What is held back is `waiting`, and comes again by itself within 90 seconds after the switch "
    f"is lifted. A switch that neither stops nor caps is removed. {_WHO}",
    body=SwitchFields,
    errors=(errors.OperatorRequired, errors.SwitchesFull),
)
REMOVE = Operation(
    "removeSwitch",
    "DELETE /v1/switches",
    "Lift a switch",
    Returns(SwitchResponse, "The switch as it was."),
    description=_WHO,
    query=SwitchQuery,
    errors=(errors.OperatorRequired, errors.SwitchNotFound),
)
