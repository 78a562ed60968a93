"""Handlers for groups."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.composition.api import GroupServices, read_bulk_request
from duetime.contract import groups
from duetime.contract.http import page_tokens
from duetime.contract.http.validation_errors import read_body
from duetime.contract.tasks.encoding import json_text
from duetime.domain.bulk import BulkKind
from duetime.domain.times import SECOND
from duetime.services.group_admin import ClosingRequest

from .filter_actions import begin
from .requests import admit_tasks, body_hash
from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(groups.LIST)
def list_groups(request: Request[groups.GroupListQuery]) -> Response:
    """Read a page of the owner's groups."""
    query, scope = request.query, repr((request.owner, groups.LIST.path))
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    found = composed(GroupServices).manager.list(request.owner, after, query.limit)
    token = page_tokens.text_token(found[-1].id, scope) if len(found) == query.limit else None
    page = groups.GroupPage(groups=[groups.group_summary(each) for each in found], next_token=token)
    return answer(json_text(page))


@route(groups.READ)
def get_group(request: Request[groups.GroupQuery]) -> Response:
    """Read one group and, if requested, wait until the group is complete."""
    wait = request.query.wait_seconds * SECOND
    status = composed(GroupServices).manager.get(request.owner, _id(request), wait)
    return answer(json_text(groups.group_response(status)))


@route(groups.CLOSE)
def close_group(request: Request) -> Response:
    """Close a group, and create the task, if any, that runs after its members."""
    group_id, document = groups.new_group_id(request.parameters["group_id"]), request.document()
    closing = groups.closing_of(document, group_id)
    if closing.spec is not None:
        admit_tasks(request, [closing.spec])
    wanted = ClosingRequest(closing.spec, closing.rule, body_hash(document.value), request.traceparent)
    return answer(
        json_text(groups.group_response(composed(GroupServices).manager.close(request.owner, group_id, wanted)))
    )


@route(groups.CANCEL)
def cancel_group(request: Request) -> Response:
    """Cancel the group's members that have not ended."""
    body = read_body(groups.GroupCancel, request.document()) if request.has_body else groups.GroupCancel()
    return _act(request, BulkKind.CANCEL, body, force=body.force)


@route(groups.RETRY)
def retry_group(request: Request) -> Response:
    """Retry the group's failed members."""
    body = read_body(groups.GroupRetry, request.document()) if request.has_body else groups.GroupRetry()
    return _act(request, BulkKind.RETRY, body)


def _act(request: Request, kind: BulkKind, action: groups.GroupRetry, **more: Any) -> Response:  # noqa: ANN401 - JSON
    """Carry out an action on the members of an existing group, using a filter for the group."""
    group_id = _id(request)
    composed(GroupServices).manager.require(request.owner, group_id)
    body = {"filter": {"group": group_id}, "reason": action.reason, "per_second": action.per_second, **more}
    wanted = read_bulk_request(kind, json.dumps(body).encode())
    return begin(request, replace(wanted, by=request.attributed(action.reason)), body)


def _id(request: Request) -> str:
    return groups.group_id(request.parameters["group_id"])
