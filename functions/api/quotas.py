"""Handlers for quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.core import QuotaServices
from duetime.contract import quotas
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(quotas.LIST)
def list_quotas(request: Request) -> Response:
    """List the owners that have their own quotas."""
    admin = composed(QuotaServices).admin
    return answer(json_text(quotas.quota_list(admin.defaults, admin.list(request.caller))))


@route(quotas.READ)
def get_quotas(request: Request) -> Response:
    """Read the quotas of an owner."""
    found = composed(QuotaServices).admin.get(request.caller, quotas.quota_owner(request.parameters))
    return answer(json_text(quotas.quotas_response(found)))


@route(quotas.PUT)
def put_quotas(request: Request) -> Response:
    """Set the quotas of an owner."""
    wanted = quotas.quotas_of(quotas.quota_owner(request.parameters), request.document())
    return answer(json_text(quotas.quotas_response(composed(QuotaServices).admin.put(request.caller, wanted))))


@route(quotas.DELETE)
def delete_quotas(request: Request) -> Response:
    """Delete the quotas of an owner."""
    request.reject_body()
    found = composed(QuotaServices).admin.delete(quotas.quota_owner(request.parameters))
    return answer(json_text(quotas.quotas_response(found)))
