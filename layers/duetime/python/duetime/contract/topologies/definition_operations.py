"""Operations on topology definitions."""

from __future__ import annotations

from duetime.contract.http.operation import IF_MATCH, KEY, KEY_LIFE, TRACEPARENT, Header, Operation, Returns
from duetime.contract.tasks.operations import KEPT_TASK, TASK
from duetime.contract.topologies.definition_bodies import (
    DefinitionDiffQuery,
    DefinitionListQuery,
    DefinitionQuery,
    TopologyDefinitionFields,
    TopologyRunCreate,
)
from duetime.contract.topologies.definition_responses import (
    DefinitionDiff,
    DefinitionPage,
    DefinitionResponse,
    VersionList,
)
from duetime.domain import errors
from duetime.domain.limits import MAX_DEFINITION_VERSIONS
from duetime.domain.topologies import errors as for_topologies

ONLY_NEW = Header("If-None-Match", "`*`: only if there is no definition of this name.", {"const": "*"})
_DEFINITION = Returns(DefinitionResponse, "The definition.", {"ETag": "Its version."})

LIST = Operation(
    "listTopologyDefinitions",
    "GET /v1/topologies/definitions",
    "List topology definitions",
    Returns(DefinitionPage, "A page of definitions."),
    description="The latest version of each, ordered by name.",
    query=DefinitionListQuery,
)
READ = Operation(
    "getTopologyDefinition",
    "GET /v1/topologies/definitions/{name}",
    "Get a topology definition",
    _DEFINITION,
    description="The latest version, or another one.",
    query=DefinitionQuery,
)
PUT = Operation(
    "putTopologyDefinition",
    "PUT /v1/topologies/definitions/{name}",
    "Create or replace a topology definition",
    _DEFINITION.but("The definition as it is now."),
    accepted=_DEFINITION.created("Path of the definition."),
    description="A graph with a name, versions and parameters. Each change makes a new version; a body that says the "
    f"same as the latest version makes none. The latest {MAX_DEFINITION_VERSIONS} versions are kept. Runs that exist "
    "keep the graph that they began with.",
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
    description="With all of its versions; refused while a schedule runs it. Runs that exist are not changed. Repeat a "
    "request that has failed: the response is 404 once the definition is gone, and what is left of it is deleted.",
    headers=(IF_MATCH,),
    errors=(for_topologies.DefinitionVersionMismatch, for_topologies.DefinitionUsed),
)
VERSIONS = Operation(
    "listTopologyDefinitionVersions",
    "GET /v1/topologies/definitions/{name}/versions",
    "List the versions of a topology definition",
    Returns(VersionList, "The versions, latest first."),
    description="All versions that are kept.",
)
DIFF = Operation(
    "getTopologyDefinitionDiff",
    "GET /v1/topologies/definitions/{name}/diff",
    "Compare two versions of a topology definition",
    Returns(DefinitionDiff, "What differs."),
    description="Field by field, as they were written.",
    query=DefinitionDiffQuery,
)
RUN = Operation(
    "runTopologyDefinition",
    "POST /v1/topologies/definitions/{name}/runs",
    "Run a topology definition",
    TASK.created("Path of the topology.").but("The topology's task; its payload is the graph with the parameters."),
    description="Creates a topology of the graph of the latest version, or of another one, with these values for its "
    'parameters. A schedule, or any task, runs a definition by its target: `{"kind": "topology", '
    '"definition": {"name": …, "parameters": {…}}}`.',
    kept=KEPT_TASK,
    body=TopologyRunCreate,
    headers=(KEY, KEY_LIFE, TRACEPARENT),
    errors=(errors.KeyReused, errors.UniqueKeyHeld),
)
