"""Request bodies and queries of topology definitions."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from duetime.contract.http.query_parameters import Parameters
from duetime.contract.http.request_errors import FaultCode, ParametersInvalid
from duetime.contract.http.request_model import Body
from duetime.contract.tasks.bodies import TaskLabels, TaskUniqueness
from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN, At, DelaySeconds, TaskType, printable
from duetime.contract.tasks.queries import PageSize
from duetime.contract.tasks.target_fields import (
    DefinitionNumber,
    RunParameters,
)
from duetime.contract.topologies.bodies import TYPE, TopologyGraph, as_creation
from duetime.domain.limits import MAX_DESCRIPTION_LENGTH, MAX_PAGE, MAX_PARAMETER_VALUES, MAX_PARAMETERS
from duetime.domain.topologies.errors import DefinitionNotFound
from duetime.domain.topologies.parameters import Parameter, ParameterType

_NAME = re.compile(SCHEDULE_NAME_PATTERN)
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
PARAMETER_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
_PARAMETERS_EXAMPLE = {"region": {"type": "string", "default": "eu-west-1"}, "rows": {"type": "integer"}}
_Description = Annotated[
    str, Field(max_length=MAX_DESCRIPTION_LENGTH, description="A description for people."), AfterValidator(printable)
]


def _number(text: object) -> int:
    if not isinstance(text, str) or _NUMBER.fullmatch(text) is None:
        raise ValueError("should be the number of a version")
    return int(text)


_Version = Annotated[int, BeforeValidator(_number), WithJsonSchema({"type": "integer", "minimum": 1})]


def _as_declared(schema: dict[str, Any]) -> None:
    """Writes an omitted default as optional, not as null, which is a valid value."""
    schema["properties"]["default"].pop("default")


class DefinitionParameter(Body):
    """A parameter. Each run must set it, unless it has a default."""

    model_config = ConfigDict(json_schema_extra=_as_declared)

    type: Annotated[ParameterType, Field(strict=False, description="Type of its values.")] = ParameterType.STRING
    default: Annotated[
        Any, Field(description="Its value in runs that give none. If it is left out, each run must give one.")
    ] = None
    enum: Annotated[
        list[Any] | None,
        Field(min_length=1, max_length=MAX_PARAMETER_VALUES, description="Its possible values; null for all."),
    ] = None
    description: _Description = ""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        parameter = Parameter.of(self.written)
        values = [*(parameter.enum or ()), *(() if parameter.is_required else (parameter.default,))]
        for value in values:
            if (fault := parameter.fault(value)) is not None:
                raise ValueError(f"has a value that cannot be one of its own, which {fault[0]}")
        return self

    @property
    def written(self) -> dict[str, Any]:
        """The fields that are set."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class TopologyDefinitionFields(TopologyGraph):
    """A topology definition to be created; it replaces an existing one as a whole, as its next version."""

    parameters: Annotated[
        dict[Annotated[str, Field(pattern=PARAMETER_NAME_PATTERN)], DefinitionParameter],
        Field(
            max_length=MAX_PARAMETERS,
            default_factory=dict,
            description="Its parameters. `<duetime.parameters.NAME>` stands for the value of one in a node's payload, "
            "and in the `url`, `headers`, `query` and `body` of an HTTP target.",
            examples=[_PARAMETERS_EXAMPLE],
            json_schema_extra={"additionalProperties": False},
        ),
    ]
    description: _Description = ""
    name: Annotated[str | None, Field(description="Optional; must be the name in the path.")] = None


class TopologyRunCreate(TaskLabels, TaskUniqueness):
    """A run of a topology definition; without `due_at` and `delay_seconds` it is due now."""

    model_config = ConfigDict(json_schema_extra=as_creation)

    type: TaskType = TYPE
    version: DefinitionNumber | None = None
    parameters: RunParameters = {}  # noqa: RUF012 - pydantic copies defaults
    due_at: Annotated[
        At, Field(description="When it is due; a time in the past means now. Cannot be given with `delay_seconds`.")
    ] = None
    delay_seconds: DelaySeconds = 0


class DefinitionListQuery(Parameters):
    """Parameters of `GET /v1/topologies/definitions`."""

    limit: Annotated[PageSize, Field(description="Maximum number of definitions on a page.")] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="`next_token` of the previous page.")] = None


class DefinitionQuery(Parameters):
    """Parameters of `GET /v1/topologies/definitions/{name}`."""

    version: Annotated[_Version | None, Field(description="The version to get; the latest if left out.")] = None


class DefinitionDiffQuery(Parameters):
    """Parameters of `GET /v1/topologies/definitions/{name}/diff`."""

    before: Annotated[_Version, Field(alias="from", description="The version to compare.")]
    after: Annotated[
        _Version | None, Field(alias="to", description="The version to compare it with; the latest if left out.")
    ] = None


def definition_name(text: str) -> str:
    """Parses the name in a path.

    Raises:
        DefinitionNotFound: the text cannot be a name.
    """
    if _NAME.fullmatch(text) is None:
        raise DefinitionNotFound(text)
    return text


def new_definition_name(text: str) -> str:
    """Parses the name in the path of a definition to be stored.

    Raises:
        ParametersInvalid: the text cannot be a name.
    """
    if _NAME.fullmatch(text) is None:
        reason = "should be letters, digits and _ . : -, and begin with a letter, a digit or _"
        raise ParametersInvalid.of("name", reason, FaultCode.PATTERN)
    return text
