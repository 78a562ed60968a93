"""Responses about topology definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic requires it before Python 3.12

from duetime.contract.http.request_json import path_of
from duetime.contract.tasks.responses import Instant
from duetime.domain.times import to_iso
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.parameters import ParameterType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.topologies.definitions import Definition, Difference, VersionInfo


class VersionResponse(TypedDict):
    """A version of a topology definition."""

    version: Annotated[int, Field(description="Number of the version; a number is never used again.")]
    created_at: Annotated[Instant, Field(description="When this version was created.")]
    created_by: Annotated[str | None, Field(description="Who created it; null for the owner.")]


class DefinitionSummary(VersionResponse):
    """The latest version of a topology definition, in a list."""

    name: Annotated[str, Field(description="Name of the definition.")]
    description: Annotated[str, Field(description="Its description for people.")]


class ParameterResponse(TypedDict):
    """A parameter of a definition."""

    type: ParameterType
    default: Annotated[NotRequired[Any], Field(description="Its default; left out if each run must give a value.")]
    enum: Sequence[Any] | None
    description: str


class DefinitionResponse(DefinitionSummary):
    """A version of a topology definition."""

    parameters: Mapping[str, ParameterResponse]
    nodes: Annotated[Mapping[str, Any], Field(description="The nodes, as they were written.")]
    on_failure: OnFailure
    timeout_seconds: int | None
    outputs: Annotated[Sequence[str], Field(description="Nodes whose results are a part of a run's result.")]


class DefinitionPage(TypedDict):
    """A page of topology definitions."""

    definitions: Sequence[DefinitionSummary]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last one.")]


class VersionList(TypedDict):
    """The versions of a topology definition, latest first."""

    versions: Sequence[VersionResponse]


DifferenceResponse = TypedDict(
    "DifferenceResponse",
    {
        "path": Annotated[str, Field(description="Where it is, such as `nodes.report.timeout_seconds`.")],
        "from": Annotated[NotRequired[Any], Field(description="The value before; left out if there was none.")],
        "to": Annotated[NotRequired[Any], Field(description="The value after; left out if there is none.")],
    },
)


DefinitionDiff = TypedDict(
    "DefinitionDiff",
    {
        "from": Annotated[int, Field(description="The first version.")],
        "to": Annotated[int, Field(description="The second version.")],
        "changes": Annotated[Sequence[DifferenceResponse], Field(description="What differs; a list is one value.")],
    },
)


DifferenceResponse.__doc__ = "A difference between two versions of a topology definition."
DefinitionDiff.__doc__ = "What differs between two versions of a topology definition."


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
