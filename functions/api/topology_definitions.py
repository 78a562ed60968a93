"""Handlers for topology definitions."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.composition.tasks import TaskServices
from duetime.contract.http import page_tokens
from duetime.contract.http.etags import etag_of
from duetime.contract.http.request_errors import FaultCode, ParametersInvalid
from duetime.contract.tasks.encoding import json_text
from duetime.contract.topologies import definitions
from duetime.contract.topologies.definitions import (
    DefinitionPage,
    VersionList,
    definition_content,
    definition_entry,
    definition_name,
    definition_response,
    diff_response,
    new_definition_name,
    run_spec,
    version_response,
)
from duetime.contract.topologies.operations import READ as READ_TOPOLOGY
from duetime.domain.errors import DefinitionNotFound, FieldInvalid
from duetime.domain.tasks.creation import IdempotencyKey, Order
from duetime.domain.topologies.definitions import differences
from duetime.services.topologies.definitions import Precondition

from .requests import admit_tasks, body_hash
from .responses import Response, answer, creation_headers, creation_status, task_response
from .routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.topologies.definitions import DefinitionDiffQuery, DefinitionListQuery, DefinitionQuery
    from duetime.domain.topologies.definitions import Definition
    from duetime.services.topologies.definitions import TopologyDefinitions

    from .requests import Request

_OF_A_TASK = "target.definition."
"""Prefix of a run's fields in errors about a task whose target is a definition."""


@route(definitions.LIST)
def list_definitions(request: Request[DefinitionListQuery]) -> Response:
    """Read a page of the owner's definitions."""
    query, scope = request.query, repr((request.owner, definitions.LIST.path))
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    found = _definitions().list(request.owner, after, query.limit)
    token = page_tokens.text_token(found[-1].name, scope) if len(found) == query.limit else None
    return answer(json_text(DefinitionPage(definitions=[definition_entry(each) for each in found], next_token=token)))


@route(definitions.READ)
def get_definition(request: Request[DefinitionQuery]) -> Response:
    """Read a version of a definition."""
    return _response(_definitions().get(request.owner, definition_name(request.name), request.query.version))


@route(definitions.PUT)
def put_definition(request: Request) -> Response:
    """Create a definition, or its next version."""
    name = new_definition_name(request.name)
    content, graph = definition_content(request.document(), name)
    composed(CoreServices).creation_rules.accept_nodes(request.owner, graph)
    by, condition = request.attributed("").name, _condition(request)
    stored = _definitions().put(request.owner, name, content, by, condition)
    if not stored.is_new:
        return _response(stored.definition)
    return _response(stored.definition, HTTPStatus.CREATED, {"Location": definitions.READ.url(name=name)})


@route(definitions.DELETE)
def delete_definition(request: Request) -> Response:
    """Delete a definition, and return the deleted definition."""
    return _response(_definitions().delete(request.owner, definition_name(request.name), request.version))


@route(definitions.VERSIONS)
def list_versions(request: Request) -> Response:
    """List the versions of a definition."""
    found = _definitions().versions(request.owner, definition_name(request.name))
    return answer(json_text(VersionList(versions=[version_response(each) for each in found])))


@route(definitions.DIFF)
def compare_versions(request: Request[DefinitionDiffQuery]) -> Response:
    """Compare two versions of a definition."""
    name, found = definition_name(request.name), _definitions()
    before = found.get(request.owner, name, request.query.before)
    after = found.get(request.owner, name, request.query.after)
    return answer(json_text(diff_response(before, after, differences(before.document, after.document))))


@route(definitions.RUN)
def run_definition(request: Request) -> Response:
    """Create a run of a definition."""
    name, document = definition_name(request.name), request.document()
    spec = run_spec(document, name)
    key = IdempotencyKey(request.key, body_hash([name, document.value]), request.key_life) if request.key else None
    admit_tasks(request, [spec])
    try:
        creation = composed(TaskServices).creator.create_once(
            request.owner, Order(spec, key, traceparent=request.traceparent, parent=request.parent)
        )
    except FieldInvalid as refusal:
        if refusal.field == f"{_OF_A_TASK}name":
            raise DefinitionNotFound(name) from None
        raise FieldInvalid(refusal.field.removeprefix(_OF_A_TASK), refusal.reason, refusal.code) from None
    headers = creation_headers(creation, READ_TOPOLOGY.url(topology_id=creation.value.id))
    task = composed(TaskServices).reader.with_contents(creation.value)
    return task_response(task, creation_status(creation), headers)


def _definitions() -> TopologyDefinitions:
    return composed(CoreServices).topology_definitions


def _condition(request: Request) -> Precondition:
    """The condition that a definition's PUT request sets.

    Raises:
        ParametersInvalid: `If-None-Match` names a version, which has no meaning for a write.
    """
    only_new = request.header(definitions.ONLY_NEW.name)
    if only_new is not None and only_new.strip() != "*":
        reason = "should be *, which replaces no definition"
        raise ParametersInvalid.of(definitions.ONLY_NEW.name, reason, FaultCode.NOT_ALLOWED)
    return Precondition(request.version, absent=only_new is not None)


def _response(
    definition: Definition, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    text = json_text(definition_response(definition))
    return answer(text, status, {"ETag": etag_of(definition.version), **(headers or {})})
