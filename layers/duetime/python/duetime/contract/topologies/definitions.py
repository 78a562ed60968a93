"""The REST API for topology definitions: bodies, queries, responses and operations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from typing_extensions import TypedDict

from duetime.contract.http.operation import (
    FOR_A_LEASE,
    IF_MATCH,
    KEY,
    KEY_LIFE,
    LEASE,
    TRACEPARENT,
    Header,
    Operation,
    Parameters,
    Returns,
)
from duetime.contract.http.request_errors import MOST_FAULTS, Fault, FaultCode, FieldsInvalid, ParametersInvalid
from duetime.contract.http.request_json import compact, path_of
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body, validated
from duetime.contract.tasks.bodies import TaskCreate, TaskLabels, TaskUniqueness
from duetime.contract.tasks.decoding import spec_of
from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN, At, DelaySeconds, TaskType, printable
from duetime.contract.tasks.operations import KEPT_TASK, TASK
from duetime.contract.tasks.queries import PageSize
from duetime.contract.tasks.responses import Instant
from duetime.contract.tasks.target_fields import DefinitionNumber, RunParameters
from duetime.contract.topologies.bodies import TYPE, TopologyGraph, as_creation
from duetime.contract.topologies.decoding import graph_from
from duetime.domain import errors
from duetime.domain import errors as for_topologies
from duetime.domain.errors import DefinitionNotFound, FieldInvalid
from duetime.domain.limits import (
    MAX_DEFINITION_VERSIONS,
    MAX_DESCRIPTION_LENGTH,
    MAX_GRAPH_BYTES,
    MAX_PAGE,
    MAX_PARAMETER_VALUES,
    MAX_PARAMETERS,
)
from duetime.domain.times import to_iso
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.maps import with_sample_items
from duetime.domain.topologies.parameters import Parameter, ParameterType, misplaced, with_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.type_defaults import TaskSpec
    from duetime.domain.topologies.definitions import Definition, Difference, VersionInfo
    from duetime.domain.topologies.graph import Graph


_NAME = re.compile(SCHEDULE_NAME_PATTERN)
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
PARAMETER_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
_PARAMETERS_EXAMPLE = {"region": {"type": "string", "default": "eu-west-1"}, "rows": {"type": "integer"}}
_Description = Annotated[
    str, Field(max_length=MAX_DESCRIPTION_LENGTH, description="Human-readable description."), AfterValidator(printable)
]


def _number(text: object) -> int:
    if not isinstance(text, str) or _NUMBER.fullmatch(text) is None:
        raise ValueError("should be the number of a version")
    return int(text)


_Version = Annotated[int, BeforeValidator(_number), WithJsonSchema({"type": "integer", "minimum": 1})]


def _as_declared(schema: dict[str, Any]) -> None:
    """Makes the default optional in the schema.

    Null cannot stand for a missing default, because null is a valid default.
    """
    schema["properties"]["default"].pop("default")


class DefinitionParameter(Body):
    """A parameter, which each run must set unless the parameter has a default."""

    model_config = ConfigDict(json_schema_extra=_as_declared)

    type: Annotated[ParameterType, Field(strict=False, description="Type of the parameter's values.")] = (
        ParameterType.STRING
    )
    default: Annotated[
        Any, Field(description="Value in runs that give no value. If left out, each run must give a value.")
    ] = None
    enum: Annotated[
        list[Any] | None,
        Field(min_length=1, max_length=MAX_PARAMETER_VALUES, description="Allowed values; null to allow all values."),
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
    """A topology definition to be created, or to replace an existing definition as its next version."""

    parameters: Annotated[
        dict[Annotated[str, Field(pattern=PARAMETER_NAME_PATTERN)], DefinitionParameter],
        Field(
            max_length=MAX_PARAMETERS,
            default_factory=dict,
            description="The definition's parameters. `<duetime.parameters.NAME>` stands for a parameter's value in a "
            "node's payload, in the `url`, `headers`, `query` and `body` of an HTTP target, in the `key` of an event, "
            "and in the `parameters` of a definition.",
            examples=[_PARAMETERS_EXAMPLE],
            json_schema_extra={"additionalProperties": False},
        ),
    ]
    description: _Description = ""
    name: Annotated[str | None, Field(description="The name in the path, which can be left out.")] = None


class TopologyRunCreate(TaskLabels, TaskUniqueness):
    """A run of a topology definition, due now unless `due_at` or `delay_seconds` is given."""

    model_config = ConfigDict(json_schema_extra=as_creation)

    type: TaskType = TYPE
    version: DefinitionNumber | None = None
    parameters: RunParameters = {}  # noqa: RUF012 - pydantic copies defaults
    due_at: Annotated[
        At,
        Field(description="When the run is due; a time in the past means now. Cannot be given with `delay_seconds`."),
    ] = None
    delay_seconds: DelaySeconds = 0


class DefinitionListQuery(Parameters):
    """Parameters of `GET /v1/topologies/definitions`."""

    limit: Annotated[PageSize, Field(description="Maximum number of definitions on a page.")] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="`next_token` from the previous page.")] = None


class DefinitionQuery(Parameters):
    """Parameters of `GET /v1/topologies/definitions/{name}`."""

    version: Annotated[_Version | None, Field(description="The version to get; the latest version if left out.")] = None


class DefinitionDiffQuery(Parameters):
    """Parameters of `GET /v1/topologies/definitions/{name}/diff`."""

    before: Annotated[_Version, Field(alias="from", description="The version to compare.")]
    after: Annotated[
        _Version | None, Field(alias="to", description="The version to compare with; the latest version if left out.")
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


_OF_THE_DEFINITION = ("version", "parameters")


def definition_content(document: Document, name: str) -> tuple[bytes, Graph]:
    """The content of a definition to store, and the graph of a run with sample values.

    The graph is validated with the parameters' defaults, and with a sample of the type for each parameter without a
    default. Each run is validated again with the values of that run.

    Raises:
        FieldsInvalid: some fields are invalid.
        FieldInvalid: a field is invalid.
    """
    value = document.value
    if isinstance(value, dict) and isinstance(nodes := value.get("nodes"), dict):
        value = {**value, "nodes": _with_samples(nodes, _declared(value))}
    body = read_body(TopologyDefinitionFields, replace(document, value=with_sample_items(value)))
    if body.name not in {None, name}:
        raise FieldsInvalid([Fault("name", f"should be {name!r}, as in the path, or be left out", FaultCode.CONFLICT)])
    graph = graph_from(body, body.parameters.keys())
    content = compact({field: each for field, each in _written(document).items() if field != "name"})
    if len(content) > MAX_GRAPH_BYTES:
        reason = f"have {len(content)} bytes together; {MAX_GRAPH_BYTES} are allowed"
        raise FieldInvalid("nodes", reason, FaultCode.TOO_LONG)
    return content, graph


def run_spec(document: Document, name: str) -> TaskSpec:
    """Decodes a run of a definition; its graph is read later.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(TopologyRunCreate, document)
    own = {field: each for field, each in _written(document).items() if field not in _OF_THE_DEFINITION}
    definition = {"name": name, "version": body.version, "parameters": body.parameters}
    target = {"kind": TYPE, "definition": definition}
    return spec_of(validated(TaskCreate, {"type": body.type, **own, "target": target}))


def _declared(value: Mapping[str, object]) -> Mapping[str, Parameter]:
    """The parameters that a definition declares; empty if they are invalid, which the caller reports later."""
    written = value.get("parameters")
    if not isinstance(written, dict):
        return {}
    try:
        declared = {name: validated(DefinitionParameter, each) for name, each in written.items()}
    except FieldsInvalid:
        return {}
    return {name: Parameter.of(each.written) for name, each in declared.items()}


def _with_samples(nodes: Mapping[str, object], declared: Mapping[str, Parameter]) -> Mapping[str, object]:
    """Returns the nodes with sample values for their parameters.

    Raises:
        FieldsInvalid: a node uses an unknown parameter, or uses a parameter where parameters are not replaced.
    """
    faults = [Fault(path_of(place), reason) for place, reason in misplaced(nodes, declared)]
    if faults:
        raise FieldsInvalid(faults[:MOST_FAULTS])
    return with_values(nodes, {name: parameter.sample for name, parameter in declared.items()})


def _written(document: Document) -> Mapping[str, object]:
    return document.value if isinstance(document.value, dict) else {}


class VersionResponse(TypedDict):
    """A version of a topology definition."""

    version: Annotated[int, Field(description="Number of the version; numbers are never reused.")]
    created_at: Annotated[Instant, Field(description="When this version was created.")]
    created_by: Annotated[str | None, Field(description="Who created the version; null for the owner.")]


class DefinitionSummary(VersionResponse):
    """The latest version of a topology definition, in a list."""

    name: Annotated[str, Field(description="Name of the definition.")]
    description: Annotated[str, Field(description="Human-readable description.")]


class ParameterResponse(TypedDict):
    """A parameter of a definition."""

    type: ParameterType
    default: Annotated[NotRequired[Any], Field(description="Default value; absent if each run must give a value.")]
    enum: Sequence[Any] | None
    description: str


class DefinitionResponse(DefinitionSummary):
    """A version of a topology definition."""

    parameters: Mapping[str, ParameterResponse]
    nodes: Annotated[Mapping[str, Any], Field(description="The nodes, as they were written.")]
    on_failure: OnFailure
    timeout_seconds: int | None
    outputs: Annotated[Sequence[str], Field(description="Nodes whose results are part of a run's result.")]


class DefinitionPage(TypedDict):
    """A page of topology definitions."""

    definitions: Sequence[DefinitionSummary]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


class VersionList(TypedDict):
    """The versions of a topology definition, latest first."""

    versions: Sequence[VersionResponse]


DifferenceResponse = TypedDict(
    "DifferenceResponse",
    {
        "path": Annotated[str, Field(description="Path of the changed field, such as `nodes.report.timeout_seconds`.")],
        "from": Annotated[
            NotRequired[Any], Field(description="The value in the first version; absent if there is none.")
        ],
        "to": Annotated[
            NotRequired[Any], Field(description="The value in the second version; absent if there is none.")
        ],
    },
)


DefinitionDiff = TypedDict(
    "DefinitionDiff",
    {
        "from": Annotated[int, Field(description="The first version.")],
        "to": Annotated[int, Field(description="The second version.")],
        "changes": Annotated[
            Sequence[DifferenceResponse], Field(description="The differences; a list counts as one value.")
        ],
    },
)


DifferenceResponse.__doc__ = "A difference between two versions of a topology definition."
DefinitionDiff.__doc__ = "The differences between two versions of a topology definition."


def version_response(info: VersionInfo) -> VersionResponse:
    """The response for a version."""
    return VersionResponse(version=info.version, created_at=to_iso(info.created_at), created_by=info.created_by or None)


def definition_entry(definition: Definition) -> DefinitionSummary:
    """A definition in a list."""
    return _entry(definition, definition.document)


def definition_response(definition: Definition) -> DefinitionResponse:
    """The response for a version of a definition."""
    document = definition.document
    return DefinitionResponse(
        **_entry(definition, document),
        parameters={name: _parameter(written) for name, written in document.get("parameters", {}).items()},
        nodes=document["nodes"],
        on_failure=OnFailure(document.get("on_failure", OnFailure.STOP)),
        timeout_seconds=document.get("timeout_seconds"),
        outputs=document.get("outputs", []),
    )


def diff_response(before: Definition, after: Definition, found: Iterable[Difference]) -> DefinitionDiff:
    """The differences between two versions."""
    changes = [
        DifferenceResponse(
            path=path_of(each.path),
            **{name: side[0] for name, side in (("from", each.before), ("to", each.after)) if side},  # type: ignore[typeddict-item]  # keywords of Python
        )
        for each in found
    ]
    return DefinitionDiff(**{"from": before.version, "to": after.version, "changes": changes})


def _entry(definition: Definition, document: Mapping[str, Any]) -> DefinitionSummary:
    return DefinitionSummary(
        **version_response(definition.info), name=definition.name, description=document.get("description", "")
    )


def _parameter(written: Mapping[str, Any]) -> ParameterResponse:
    parameter = ParameterResponse(
        type=ParameterType(written.get("type", ParameterType.STRING)),
        enum=written.get("enum"),
        description=written.get("description", ""),
    )
    if "default" in written:
        parameter["default"] = written["default"]
    return parameter


ONLY_NEW = Header("If-None-Match", "`*` to store the definition only if no definition has this name.", {"const": "*"})
_DEFINITION = Returns(DefinitionResponse, "The definition.", {"ETag": "The definition's version."})

LIST = Operation(
    "listTopologyDefinitions",
    "GET /v1/topologies/definitions",
    "List topology definitions",
    Returns(DefinitionPage, "A page of definitions."),
    description="The latest version of each definition, ordered by name.",
    query=DefinitionListQuery,
)
READ = Operation(
    "getTopologyDefinition",
    "GET /v1/topologies/definitions/{name}",
    "Get a topology definition",
    _DEFINITION,
    description="The latest version, or the given version.",
    query=DefinitionQuery,
)
PUT = Operation(
    "putTopologyDefinition",
    "PUT /v1/topologies/definitions/{name}",
    "Create or replace a topology definition",
    _DEFINITION.but("The definition after the replacement."),
    accepted=_DEFINITION.created("Path of the definition."),
    description="A graph with a name, versions and parameters. Each change creates a new version, unless the body "
    f"equals the latest version. The latest {MAX_DEFINITION_VERSIONS} versions are kept. Existing runs keep their "
    "graph.",
    body=TopologyDefinitionFields,
    nesting=2,
    headers=(IF_MATCH, ONLY_NEW),
    errors=(for_topologies.DefinitionVersionMismatch, for_topologies.DefinitionExists),
)
DELETE = Operation(
    "deleteTopologyDefinition",
    "DELETE /v1/topologies/definitions/{name}",
    "Delete a topology definition",
    _DEFINITION.but("The deleted definition."),
    description="Deletes all versions. The request is rejected while a schedule runs the definition. Existing runs "
    "are not changed. Repeat a failed request: the response is 404 once the definition is gone, and any leftover data "
    "is deleted.",
    headers=(IF_MATCH,),
    errors=(for_topologies.DefinitionVersionMismatch, for_topologies.DefinitionUsed),
)
VERSIONS = Operation(
    "listTopologyDefinitionVersions",
    "GET /v1/topologies/definitions/{name}/versions",
    "List the versions of a topology definition",
    Returns(VersionList, "The versions, latest first."),
    description="All stored versions.",
)
DIFF = Operation(
    "getTopologyDefinitionDiff",
    "GET /v1/topologies/definitions/{name}/diff",
    "Compare two versions of a topology definition",
    Returns(DefinitionDiff, "The differences."),
    description="Compares the versions field by field, as they were written.",
    query=DefinitionDiffQuery,
)
RUN = Operation(
    "runTopologyDefinition",
    "POST /v1/topologies/definitions/{name}/runs",
    "Run a topology definition",
    TASK.created("Path of the topology.").but("The topology's task; its payload is the graph with the parameters."),
    description="Creates a topology from the graph of the latest or the given version, with these parameter values. "
    'A schedule or task runs a definition through its target: `{"kind": "topology", '
    '"definition": {"name": …, "parameters": {…}}}`.',
    kept=KEPT_TASK,
    body=TopologyRunCreate,
    headers=(KEY, KEY_LIFE, TRACEPARENT, LEASE),
    errors=(errors.KeyReused, errors.UniqueKeyHeld, *FOR_A_LEASE),
)
