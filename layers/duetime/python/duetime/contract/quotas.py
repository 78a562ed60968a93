"""The REST API for quotas: bodies, responses and operations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.http.request_errors import FaultCode, ParametersInvalid
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.mapping import response_of, value_of
from duetime.contract.tasks.fields import OWNER_PATTERN, OWNER_RULE, printable
from duetime.contract.tasks.responses import Instant
from duetime.domain import errors
from duetime.domain.callers import Role
from duetime.domain.limits import MAX_QUOTA, MAX_SWITCH_REASON_LENGTH
from duetime.domain.quotas import OwnerQuotas, Quotas
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.quotas import Quota, QuotaStatus

_OWNER = re.compile(OWNER_PATTERN)
_KEPT_ESCAPE = "%25"
"""The only escape sequence in a path that the gateway does not decode (Source: observed in `rawPath` of HTTP APIs)."""
_Limit: TypeAlias = Annotated[int | None, Field(ge=1, le=MAX_QUOTA)]
_CREATES = "Tasks, topologies and schedules that the owner's requests create per second."
_BYTES = "Total size of uploads and of request bodies that create tasks, topologies or schedules, in bytes per second."
_READS = "Read requests (GET) per second."
_OPEN = "Tasks that have not ended; at the limit, requests that create tasks are rejected."
_ATTEMPTS = "Attempts that worker functions run at once; at the limit, due tasks wait."
_NODES = "Total nodes of the topologies that run at once; at the limit, due topologies wait."
_POLLS = "Requests that wait (`wait_seconds`) at the same time."
_LEASES = "Tasks that the owner, as a pull worker, leases at once."


class QuotasPut(Body):
    """An owner's quotas, which replace all earlier quotas of the owner. Null means the deployment's default."""

    creates_per_second: Annotated[_Limit, Field(description=_CREATES)] = None
    payload_bytes_per_second: Annotated[_Limit, Field(description=_BYTES)] = None
    reads_per_second: Annotated[_Limit, Field(description=_READS)] = None
    open_tasks: Annotated[_Limit, Field(description=_OPEN)] = None
    concurrent_attempts: Annotated[_Limit, Field(description=_ATTEMPTS)] = None
    schedules: Annotated[_Limit, Field(description="Number of schedules.")] = None
    topology_nodes: Annotated[_Limit, Field(description=_NODES)] = None
    long_polls: Annotated[_Limit, Field(description=_POLLS)] = None
    pull_leases: Annotated[_Limit, Field(description=_LEASES)] = None
    reason: Annotated[
        str,
        Field(max_length=MAX_SWITCH_REASON_LENGTH, description="Reason for the quotas."),
        AfterValidator(printable),
    ] = ""


class QuotaLimits(TypedDict):
    """The limit for each quota; null for no limit."""

    creates_per_second: Annotated[int | None, Field(description=_CREATES)]
    payload_bytes_per_second: Annotated[int | None, Field(description=_BYTES)]
    reads_per_second: Annotated[int | None, Field(description=_READS)]
    open_tasks: Annotated[int | None, Field(description=_OPEN)]
    concurrent_attempts: Annotated[int | None, Field(description=_ATTEMPTS)]
    schedules: Annotated[int | None, Field(description="Number of schedules.")]
    topology_nodes: Annotated[int | None, Field(description=_NODES)]
    long_polls: Annotated[int | None, Field(description=_POLLS)]
    pull_leases: Annotated[int | None, Field(description=_LEASES)]


class OwnQuotas(TypedDict):
    """The quotas that an operator has set for an owner."""

    owner: str
    own: Annotated[QuotaLimits, Field(description="The owner's own quotas; null means the default.")]
    reason: str
    updated_at: Annotated[
        Instant | None, Field(description="When the owner's quotas were set; null if they were never set.")
    ]
    updated_by: str


class OwnerQuotasResponse(OwnQuotas):
    """An owner's quotas and current use."""

    limits: Annotated[
        QuotaLimits, Field(description="The quotas in force: the owner's own quotas, otherwise the defaults.")
    ]
    used: Annotated[
        Mapping[str, float],
        Field(
            description="Current use of each limited quota: the rate per second, averaged over five seconds, or the "
            "current number."
        ),
    ]


class QuotaList(TypedDict):
    """The quotas of a deployment."""

    defaults: Annotated[QuotaLimits, Field(description="Quotas that apply to owners without their own quotas.")]
    owners: Annotated[Sequence[OwnQuotas], Field(description="The owners with their own quotas, by name.")]


def quota_owner(parameters: Mapping[str, str]) -> str:
    """Parses the owner in a path.

    Raises:
        ParametersInvalid: the text is not a valid owner.
    """
    owner = parameters["owner"].replace(_KEPT_ESCAPE, "%")
    if _OWNER.fullmatch(owner) is None:
        raise ParametersInvalid.of("owner", OWNER_RULE, FaultCode.PATTERN)
    return owner


def quotas_of(owner: str, document: Document) -> OwnerQuotas:
    """Decodes the quotas of an owner.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(QuotasPut, document)
    return OwnerQuotas(owner, value_of(Quotas, body), body.reason)


def limits_response(quotas: Quotas) -> QuotaLimits:
    """The response for quota limits."""
    return response_of(QuotaLimits, quotas)


def used_response(used: Mapping[Quota, float]) -> Mapping[str, float]:
    """The response for an owner's use of quotas."""
    return {quota.value: number for quota, number in used.items()}


def quotas_response(status: QuotaStatus) -> OwnerQuotasResponse:
    """The response for the quotas of an owner."""
    limits, used = limits_response(status.limits), used_response(status.used)
    return OwnerQuotasResponse(**_own(status.own), limits=limits, used=used)


def quota_list(defaults: Quotas, owners: Sequence[OwnerQuotas]) -> QuotaList:
    """The response with the quotas of a deployment."""
    return QuotaList(defaults=limits_response(defaults), owners=[_own(each) for each in owners])


def _own(quotas: OwnerQuotas) -> OwnQuotas:
    at = to_iso(quotas.updated_at) if quotas.updated_at else None
    return response_of(OwnQuotas, quotas, own=limits_response(quotas.own), updated_at=at)


_OFF = (errors.QuotasOff,)
LIST = Operation(
    "listQuotas",
    "GET /v1/quotas",
    "List quotas",
    Returns(QuotaList, "The defaults, and the owners with their own quotas."),
    description="Operators see the quotas of all owners; other callers see only their own quotas.",
    errors=_OFF,
)
READ = Operation(
    "getQuotas",
    "GET /v1/quotas/{owner}",
    "Get the quotas of an owner",
    Returns(OwnerQuotasResponse, "The owner's quotas and current use."),
    description="Operators can see every owner's quotas; other callers can see only their own quotas.",
    errors=(*_OFF, errors.QuotasNotFound),
    has_open_path=True,
)
PUT = Operation(
    "putQuotas",
    "PUT /v1/quotas/{owner}",
    "Set the quotas of an owner",
    Returns(OwnerQuotasResponse, "The owner's quotas and current use."),
    description="For operators. Replaces all earlier quotas of the owner within ten seconds. A body without limits "
    "deletes the owner's quotas.",
    body=QuotasPut,
    role=Role.OPERATOR,
    errors=(*_OFF, errors.QuotasFull),
    has_open_path=True,
)
DELETE = Operation(
    "deleteQuotas",
    "DELETE /v1/quotas/{owner}",
    "Delete the quotas of an owner",
    Returns(OwnerQuotasResponse, "The deleted quotas."),
    description="For operators. The defaults apply within ten seconds.",
    role=Role.OPERATOR,
    errors=(*_OFF, errors.QuotasNotFound),
    has_open_path=True,
)
