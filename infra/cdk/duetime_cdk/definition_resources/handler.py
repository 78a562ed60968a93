"""Creates, updates and deletes schedules and topology definitions for CloudFormation, by requests to the API function.

This module is deployed separately, and imports only the standard library and boto3.
"""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any
from urllib.parse import quote

API_FUNCTION, AUTHENTICATION = "API_FUNCTION", "AUTHENTICATION"
"""Names of this function's variables."""
SCHEDULE, DEFINITION = "schedule", "definition"
NOTHING = "not-created"
"""The physical id of a resource whose creation failed, so that its deletion deletes nothing."""
_COLLECTIONS = {SCHEDULE: "/v1/schedules", DEFINITION: "/v1/topologies/definitions"}
_EXISTS = "schedule_exists"
_FAILED_FROM, _NOT_FOUND, _CONFLICT, _PRECONDITION_FAILED = 300, 404, 409, 412
_REASON_LENGTH = 1_000
"""Maximum length of an error's text, because CloudFormation accepts a response of at most 4 KB."""
_OPAQUE = ("payload", "body")
"""Fields that the API does not merge but replaces completely."""

Event = dict[str, Any]


class RequestRejected(Exception):
    """The API rejected a request."""

    def __init__(self, status: int, problem: Event) -> None:
        faults = "; ".join(f"{each.get('field')} {each.get('reason')}" for each in problem.get("errors", ()))
        super().__init__(f"{status} {problem.get('code', '')}: {problem.get('detail', '')} {faults}".strip())


class AlreadyExists(Exception):
    """An object with that name exists, and must not be taken over."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"the {kind} {name!r} exists already: choose another name, or set adopt=True to take it over")


def handler(event: Event, _context: object) -> None:
    """Handle one CloudFormation event, and send the result to the address in the event."""
    try:
        id_ = _handle(event)
        result = {"Status": "SUCCESS", "PhysicalResourceId": id_}
    except Exception as error:  # noqa: BLE001 - without a result, CloudFormation waits for an hour
        id_ = event.get("PhysicalResourceId") or NOTHING
        result = {"Status": "FAILED", "PhysicalResourceId": id_, "Reason": str(error)[:_REASON_LENGTH]}
    send(
        event["ResponseURL"],
        {**{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}, **result},
    )


def send(url: str, result: Event) -> None:
    """Send the result to CloudFormation."""
    request = urllib.request.Request(url, json.dumps(result).encode(), {"Content-Type": ""}, method="PUT")  # noqa: S310
    with urllib.request.urlopen(request, timeout=30):  # noqa: S310 - the address is CloudFormation's
        pass


def _handle(event: Event) -> str:
    """Carry out the request; returns the physical id, which consists of kind, owner and name."""
    wanted = event["ResourceProperties"]
    if event["RequestType"] == "Delete":
        _delete(event["PhysicalResourceId"])
        return str(event["PhysicalResourceId"])
    kind, owner = wanted["Kind"], wanted["Owner"]
    id_ = f"{kind} {owner} {wanted['Name']}"
    takes_over = wanted.get("Adopt") == "true" or event.get("PhysicalResourceId") == id_
    put = _put_schedule if kind == SCHEDULE else _put_definition
    put(owner, wanted, event["RequestId"], takes_over=takes_over)
    return id_


def _put_schedule(owner: str, wanted: Event, request_id: str, *, takes_over: bool) -> None:
    name, body, defaults = wanted["Name"], json.loads(wanted["Body"]), json.loads(wanted["Defaults"])
    # The event's id is the idempotency key, so a repeated event gets the same response as the first event.
    headers = {"idempotency-key": request_id}
    status, answer = call(owner, "POST", _COLLECTIONS[SCHEDULE], {**body, "name": name}, headers)
    if status != _CONFLICT or answer.get("code") != _EXISTS:
        _accepted(status, answer)
        return
    if not takes_over:
        raise AlreadyExists(SCHEDULE, name)
    path = f"{_COLLECTIONS[SCHEDULE]}/{quote(name, safe='')}"
    status, found = call(owner, "GET", path)
    _accepted(status, found)
    task = patch(found.get("task") or {}, body["task"])
    _accepted(*call(owner, "PATCH", path, {**defaults, **body, "task": task}))


def _put_definition(owner: str, wanted: Event, _request_id: str, *, takes_over: bool) -> None:
    name, body = wanted["Name"], json.loads(wanted["Body"])
    path = f"{_COLLECTIONS[DEFINITION]}/{quote(name, safe='')}"
    status, answer = call(owner, "PUT", path, body, {} if takes_over else {"if-none-match": "*"})
    if status in {_CONFLICT, _PRECONDITION_FAILED} and not takes_over:
        raise AlreadyExists("topology definition", name)
    _accepted(status, answer)


def _delete(id_: str) -> None:
    kind, _, rest = id_.partition(" ")
    if kind not in _COLLECTIONS:
        return
    owner, _, name = rest.partition(" ")
    status, answer = call(owner, "DELETE", f"{_COLLECTIONS[kind]}/{quote(name, safe='')}")
    if status != _NOT_FOUND:
        _accepted(status, answer)


def patch(before: Event, after: Event) -> Event:
    """The merge patch (RFC 7396) that turns one object into another."""
    gone = {name: None for name, value in before.items() if name not in after and value is not None}
    return {**gone, **{name: _changed(name, before.get(name), value) for name, value in after.items()}}


def _changed(name: str, before: object, after: object) -> object:
    is_object = isinstance(before, dict) and isinstance(after, dict) and name not in _OPAQUE
    return patch(before, after) if is_object else after  # type: ignore[arg-type]  # both are objects


def call(
    owner: str, method: str, path: str, body: Event | None = None, headers: Event | None = None
) -> tuple[int, Event]:
    """Send a request to the API function, as API Gateway would for the owner; returns status and body."""
    event = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "x-duetime-owner": owner, **(headers or {})},
        "requestContext": {
            "http": {"method": method, "path": path},
            "stage": "$default",
            "authorizer": _identity(owner),
        },
        "isBase64Encoded": False,
        **({} if body is None else {"body": json.dumps(body)}),
    }
    answer = invoke(os.environ[API_FUNCTION], event)
    return answer["statusCode"], json.loads(answer.get("body") or "{}")


def _identity(owner: str) -> Event:
    """The caller's identity as the gateway's authorizers pass it on."""
    if os.environ[AUTHENTICATION] == "jwt":
        return {"jwt": {"claims": {"sub": owner}}}
    account, _, resource = owner.partition(":")
    if resource.startswith("role/"):
        return {"iam": {"userArn": f"arn:aws:sts::{account}:assumed-{resource}/cloudformation"}}
    return {"iam": {"userArn": f"arn:aws:iam::{account}:{resource}"}}


def invoke(function: str, event: Event) -> Event:
    """Invoke a function and return its response."""
    import boto3  # noqa: PLC0415 - tests replace this function

    response = boto3.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event).encode())
    answer: Event = json.loads(response["Payload"].read())
    if response.get("FunctionError"):
        raise RuntimeError(f"the API function failed: {answer.get('errorMessage')}")
    return answer


def _accepted(status: int, answer: Event) -> None:
    if status >= _FAILED_FROM:
        raise RequestRejected(status, answer)
