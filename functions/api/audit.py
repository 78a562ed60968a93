"""Records requests and the results of their responses in the audit log."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.composition.api import AuditServices, LinkServices
from duetime.contract import links
from duetime.contract.audit import AuditRecord, is_recorded, record_text
from duetime.contract.http.operation import operation_at, path_within
from duetime.contract.http.request_errors import BodyUnreadable
from duetime.contract.http.request_json import text_of
from duetime.domain.errors import RequestError, Unavailable
from duetime.domain.limits import MAX_ACTION_REASON_LENGTH

from . import requests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .responses import Response

_MOST_OF_A_NAME = 256
"""Maximum number of characters that are recorded of a user agent, because callers can send any text."""


def record(event: Mapping[str, Any], response: Response) -> None:
    """Record a request that controls or administers something, or that reads another owner's data.

    The response is sent even if the log does not respond, because the caller's change is already made, and an error
    would make the caller repeat the request. In this case, the function's log has the record, and a metric counts it.
    """
    path = path_within(event["rawPath"])
    try:
        operation, parameters = operation_at(event["requestContext"]["http"]["method"].upper(), path)
    except RequestError:
        return
    if not is_recorded(operation) and not _reads_for_another(event):
        return
    found = _record(event, response, operation.id, path)
    if "token" in parameters:
        link = composed(LinkServices).holders.find(parameters["token"])
        if link is None:
            # Requests with wrong tokens are not recorded, because anyone can send them and fill the log.
            return
        # The record names the link by its id, because the token is a secret.
        subject = links.DELETE.url(task_id=link.task_id, link_id=link.id)
        found = replace(found, owner=link.owner, caller=f"link {link.id}", subject=subject)
    try:
        composed(AuditServices).log.add(found.at, record_text(found))
    except Unavailable as error:
        telemetry = composed().telemetry
        telemetry.count("audit_records_lost")
        telemetry.note("an audit record could not be stored", record=record_text(found), error=str(error))


def _record(event: Mapping[str, Any], response: Response, operation: str, path: str) -> AuditRecord:
    source: Mapping[str, Any] = event["requestContext"]["http"]
    owner, caller = _identity(event)
    return AuditRecord(
        at=composed().runtime.now(),
        owner=owner,
        caller=caller,
        operation=operation,
        subject=path,
        reason=_reason(event),
        status=int(response.status),
        code=_code(response),
        location=response.headers.get("Location", ""),
        source_ip=str(source.get("sourceIp", "")),
        user_agent=str(source.get("userAgent", ""))[:_MOST_OF_A_NAME],
        request_id=requests.request_id(event),
    )


def _identity(event: Mapping[str, Any]) -> tuple[str, str]:
    """The request's owner and caller, each empty if unknown.

    The owner is also empty if the caller may not act for the owner.
    """
    handler = (event["requestContext"].get("authorizer") or {}).get(requests.HANDLER)
    if handler is not None:
        return handler["owner"], f"handler of {handler['task_id']}"
    settings = composed().settings
    owner, actor = "", ""
    with suppress(RequestError):
        actor = requests.identity_of(event, settings).actor
        owner = requests.caller_of(event, settings).owner
    return owner, actor


def _reads_for_another(event: Mapping[str, Any]) -> bool:
    """Whether an administrator reads another owner's data."""
    with suppress(RequestError):
        named = requests.header_of(event, requests.OWNER_HEADER) is not None
        return named and not requests.caller_of(event, composed().settings).is_own
    return False


def _reason(event: Mapping[str, Any]) -> str:
    """The `reason` from the body or an update's query; empty if it is missing or the request is unreadable."""
    found: object = (event.get("queryStringParameters") or {}).get("reason")
    with suppress(BodyUnreadable, RequestError, ValueError, RecursionError):
        text = text_of(event.get("body") or "", is_base64=bool(event.get("isBase64Encoded")))
        document = json.loads(text) if text else None
        found = document.get("reason", found) if isinstance(document, dict) else found
    return found[:MAX_ACTION_REASON_LENGTH] if isinstance(found, str) else ""


def _code(response: Response) -> str:
    """The code of a problem response; empty for other responses."""
    if response.status < 400:  # noqa: PLR2004 - where HTTP's errors begin
        return ""
    with suppress(ValueError, TypeError):
        return str(json.loads(response.text).get("code", ""))
    return ""
