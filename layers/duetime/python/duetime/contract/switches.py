"""The REST API for switches: keys in paths, bodies, responses and operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid, ParametersInvalid
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.mapping import response_of, value_of
from duetime.contract.tasks import fields
from duetime.contract.tasks.fields import OWNER_PATTERN, OWNER_RULE, TYPE_PATTERN, printable
from duetime.contract.tasks.responses import Instant
from duetime.domain import errors
from duetime.domain.limits import MAX_LOCK_HOLDERS, MAX_SWITCH_REASON_LENGTH
from duetime.domain.switches import ALL_TASKS, Switch, SwitchKey, SwitchScope
from duetime.domain.tasks.task_options import Rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.request_json import Document
    from duetime.domain.circuit_breakers import Circuit, CircuitState

_TYPE = re.compile(TYPE_PATTERN.removesuffix("$"))
_OWNER = re.compile(OWNER_PATTERN)
_NAME_RULES = {
    SwitchScope.ALL: "should be 'all', because the scope is 'all'",
    SwitchScope.TYPE: "should be a type of tasks",
    SwitchScope.OWNER: OWNER_RULE,
}
_SCOPES = ", ".join(repr(scope.value) for scope in SwitchScope)
_KEPT_ESCAPE = "%25"
"""The only escape sequence in a path that the gateway does not decode (Source: observed in `rawPath` of HTTP APIs)."""


class SwitchRate(Body):
    """How often attempts of a switch's tasks can start."""

    limit: fields.RateLimit
    per_seconds: fields.RateSeconds = 1
    burst: fields.RateBurst = 0


class SwitchPut(Body):
    """A switch to be set, which completely replaces an existing switch."""

    scope: Annotated[
        SwitchScope | None, Field(strict=False, description="The scope in the path, which can be left out.")
    ] = None
    name: Annotated[str | None, Field(description="The name in the path, which can be left out.")] = None
    stopped: Annotated[
        bool, Field(description="Whether the switch prevents tasks from starting; running tasks continue.")
    ] = False
    max_concurrent: Annotated[
        int | None,
        Field(
            ge=1,
            le=MAX_LOCK_HOLDERS,
            description="Maximum number of the switch's tasks that run at once; null for no limit. Not for scope "
            "`all`.",
        ),
    ] = None
    rate: Annotated[
        SwitchRate | None,
        Field(
            description="How often attempts of the switch's tasks can start; null for no limit. Not for scope `all`."
        ),
    ] = None
    reason: Annotated[
        str,
        Field(max_length=MAX_SWITCH_REASON_LENGTH, description="Reason for the switch, shown on each held-back task."),
        AfterValidator(printable),
    ] = ""


class SwitchRateResponse(TypedDict):
    """How often attempts of a switch's tasks can start."""

    limit: int
    per_seconds: int
    burst: int


class SwitchResponse(TypedDict):
    """A switch that stops or limits the dispatch of tasks."""

    scope: SwitchScope
    name: Annotated[str, Field(description="The type or owner that the switch applies to; `all` for the scope `all`.")]
    stopped: bool
    max_concurrent: int | None
    rate: SwitchRateResponse | None
    reason: str
    updated_at: Instant
    updated_by: str


class CircuitResponse(TypedDict):
    """The circuit breaker for an owner's failing calls to an HTTP host."""

    owner: str
    host: str
    state: Annotated[
        Literal["open", "half_open"],
        Field(
            description="`open`: the host is not called. `half_open`: one call at a time tests whether the host works."
        ),
    ]
    openings: Annotated[int, Field(description="How many times in a row the circuit has opened.")]
    reason: Annotated[str, Field(description="Type of the error that last opened the circuit.")]
    opened_at: Annotated[Instant, Field(description="When the circuit opened for the first time in this series.")]
    open_until: Annotated[Instant, Field(description="When a single test call to the host is made.")]


class SwitchList(TypedDict):
    """The switches and circuits that hold tasks back."""

    switches: Sequence[SwitchResponse]
    circuits: Annotated[Sequence[CircuitResponse], Field(description="The circuits, for operators only; at most 100.")]


def switch_key(parameters: Mapping[str, str]) -> SwitchKey:
    """Parses the switch in a path.

    Raises:
        ParametersInvalid: the scope or the name is invalid.
    """
    name = parameters["name"].replace(_KEPT_ESCAPE, "%")
    try:
        key = SwitchKey(SwitchScope(parameters["scope"]), name)
    except ValueError:
        raise ParametersInvalid.of("scope", f"should be one of {_SCOPES}", FaultCode.NOT_ALLOWED) from None
    fits = {
        SwitchScope.ALL: key == ALL_TASKS,
        SwitchScope.TYPE: _TYPE.fullmatch(name) is not None,
        SwitchScope.OWNER: _OWNER.fullmatch(name) is not None,
    }
    if not fits[key.scope]:
        raise ParametersInvalid.of("name", _NAME_RULES[key.scope], FaultCode.PATTERN)
    return key


def switch_of(key: SwitchKey, document: Document) -> Switch:
    """Decodes a switch.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(SwitchPut, document)
    given = (("scope", body.scope, key.scope), ("name", body.name, key.name))
    faults = [
        Fault(field, f"is not the {field} in the path", FaultCode.CONFLICT)
        for field, value, own in given
        if value not in (None, own)
    ]
    if key.scope is SwitchScope.ALL:
        # A lock or rate for all tasks of all owners is not supported, because every task would write the same item.
        limits = (("max_concurrent", body.max_concurrent), ("rate", body.rate))
        why = "is allowed for the scopes 'type' and 'owner' only"
        faults += [Fault(name, why, FaultCode.CONFLICT) for name, value in limits if value is not None]
    if faults:
        raise FieldsInvalid(faults)
    rate = value_of(Rate, body.rate, key=key.resource)
    return Switch(key, body.stopped, body.max_concurrent, body.reason, rate=rate)


def switch_response(switch: Switch) -> SwitchResponse:
    """The response for a switch."""
    rate = response_of(SwitchRateResponse, switch.rate)
    return response_of(SwitchResponse, switch, scope=switch.key.scope, name=switch.key.name, rate=rate)


def switches_response(switches: Sequence[Switch], circuits: Sequence[tuple[Circuit, CircuitState]]) -> SwitchList:
    """The response with switches and circuits."""
    return SwitchList(
        switches=[switch_response(switch) for switch in switches],
        circuits=[_circuit(circuit, state) for circuit, state in circuits],
    )


def _circuit(circuit: Circuit, state: CircuitState) -> CircuitResponse:
    return response_of(CircuitResponse, circuit, state="open" if state == "open" else "half_open")


_WHO = (
    "Operators can do this for all tasks. Other callers can do this for their own tasks, unless an operator has set "
    "the switch."
)
LIST = Operation(
    "listSwitches",
    "GET /v1/switches",
    "List switches and circuits",
    Returns(SwitchList, "The switches and circuits."),
    description="Operators see all switches and circuits; other callers see the switches that affect them.",
)
READ = Operation(
    "getSwitch",
    "GET /v1/switches/{scope}/{name}",
    "Get a switch",
    Returns(SwitchResponse, "The switch."),
    description="Unless the caller is an operator, a switch that does not affect the caller is not found.",
    errors=(errors.SwitchNotFound,),
    has_open_path=True,
)
PUT = Operation(
    "putSwitch",
    "PUT /v1/switches/{scope}/{name}",
    "Set a switch",
    Returns(SwitchResponse, "The switch."),
    description="Stops or limits the dispatch of a type's tasks, an owner's tasks or all tasks. A held-back task is "
    "`waiting`, and is dispatched within 90 seconds after the switch is deleted. A switch that neither stops nor "
    f"limits anything is deleted. {_WHO}",
    body=SwitchPut,
    errors=(errors.OperatorRequired, errors.SwitchesFull),
    has_open_path=True,
)
DELETE = Operation(
    "deleteSwitch",
    "DELETE /v1/switches/{scope}/{name}",
    "Delete a switch",
    Returns(SwitchResponse, "The deleted switch."),
    description=_WHO,
    errors=(errors.OperatorRequired, errors.SwitchNotFound),
    has_open_path=True,
)
