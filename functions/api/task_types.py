"""Handlers for task types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.contract import task_types
from duetime.contract.http import page_tokens
from duetime.contract.task_types import TypePage, new_type_name, type_name, type_response
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from duetime.contract.task_types import TypeListQuery, TypeResponse
    from duetime.domain.tasks.type_defaults import TypeStatus

    from .requests import Request


@route(task_types.LIST)
def list_types(request: Request[TypeListQuery]) -> Response:
    """Read a page of the types that the caller can use."""
    query, scope = request.query, repr((request.owner, task_types.LIST.path))
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    found = composed(CoreServices).type_admin.list(request.owner, after, query.limit)
    token = page_tokens.text_token(found[-1].type, scope) if len(found) == query.limit else None
    return answer(json_text(TypePage(types=[_shown(each) for each in found], next_token=token)))


@route(task_types.READ)
def get_type(request: Request) -> Response:
    """Read one type."""
    found = composed(CoreServices).type_admin.get(request.owner, type_name(request.parameters["name"]))
    return answer(json_text(_shown(found)))


@route(task_types.PUT)
def put_type(request: Request) -> Response:
    """Set the defaults of a type."""
    name, options = new_type_name(request.parameters["name"]), task_types.defaults_of(request.document())
    return answer(json_text(_shown(composed(CoreServices).type_admin.put(request.owner, name, options))))


@route(task_types.DELETE)
def delete_type(request: Request) -> Response:
    """Delete the defaults of a type."""
    request.reject_body()
    found = composed(CoreServices).type_admin.delete(request.owner, type_name(request.parameters["name"]))
    return answer(json_text(_shown(found)))


def _shown(found: TypeStatus) -> TypeResponse:
    settings = composed().settings
    return type_response(found, settings.retention, settings.redaction)
