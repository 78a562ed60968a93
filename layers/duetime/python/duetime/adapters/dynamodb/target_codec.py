"""How what a task calls is stored; a form that is `None` leaves the attribute out, which means the type's handler."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.attribute_values import packed, unpacked
from duetime.domain.tasks.arns import AwsService, service_of
from duetime.domain.tasks.http_requests import (
    Auth,
    AuthScheme,
    BodyKind,
    HttpRequest,
    Keep,
    RequestBody,
    ResponseOptions,
)
from duetime.domain.tasks.targets import (
    ApprovalTarget,
    AwsTarget,
    CallbackTarget,
    DefinitionRef,
    HandlerTarget,
    HttpTarget,
    OnTimeout,
    Phase,
    PullTarget,
    Query,
    TopologyTarget,
)

if TYPE_CHECKING:
    from duetime.adapters.dynamodb.attribute_values import Value
    from duetime.domain.tasks.targets import Target

TOPOLOGY = "topology"
"""Of all targets, only topologies have it in their map."""
_HTTP = "http"
_PULL = "pull"
_APPROVAL = "approval"
_ARN = "arn:"
_CALLBACK = "callback"
_NOTIFIES = "async"
_PHASES = {Phase.PREPARE: "P", Phase.RUN: "R", Phase.CLEAN: "C", Phase.ROLLBACK: "B"}
_QUERIES = {Query.STATUS: "S", Query.PROGRESS: "O", Query.SUMMARY: "M"}


def target(value: Target) -> Value | None:
    """What a task calls: the kind with what it offers, then its address; nothing for the default.

    The name of an AWS resource says the kind; how it is called stands behind it. A request that is not duetime's own is
    an element of its own, and so is what a job is run with. A topology is a map, so that a condition can ask for it.
    """
    if isinstance(value, HandlerTarget):
        return None
    if isinstance(value, HttpTarget):
        return _http_target(value)
    if isinstance(value, TopologyTarget):
        return _topology_target(value)
    if isinstance(value, AwsTarget) and value.is_job:
        return {"L": [{"S": value.arn}, _packed_job(value)]}
    return {"S": _text(value)}


def _text(value: PullTarget | ApprovalTarget | CallbackTarget | AwsTarget) -> str:
    if isinstance(value, PullTarget):
        return _PULL
    if isinstance(value, ApprovalTarget):
        return f"{_APPROVAL} {value.timeout_seconds} {value.on_timeout}"
    if isinstance(value, CallbackTarget):
        return f"{_CALLBACK} {value.url}"
    option = value.detail_type if value.waits else _NOTIFIES
    return f"{value.arn} {option}" if option else value.arn


def _http_target(value: HttpTarget) -> Value:
    letters = [_PHASES[phase] for phase in value.phases] + [_QUERIES[query] for query in value.queries]
    address: Value = {"S": f"{_HTTP}{''.join(sorted(letters))} {value.url}"}
    if value.request == HttpRequest():
        return address
    return {"L": [address, _packed_request(value.request)]}


def read_target(value: Value) -> Target:
    """Read what a task calls."""
    if "M" in value:
        return _read_topology_target(value["M"][TOPOLOGY])
    if "L" in value:
        address, more = value["L"]
        if address["S"].startswith(_ARN):
            return _read_job(address["S"], more)
        return _read_http_target(address["S"], _read_request(more))
    return _read_text(value["S"])


def _read_text(text: str) -> Target:
    if text == _PULL:
        return PullTarget()
    if text.startswith(_APPROVAL):
        _, seconds, on_timeout = text.split(" ")
        return ApprovalTarget(int(seconds), OnTimeout(on_timeout))
    if text.startswith(_ARN):
        return _read_aws_target(text)
    if text.startswith(_CALLBACK):
        return CallbackTarget(text.partition(" ")[2])
    return _read_http_target(text, HttpRequest())


def _topology_target(value: TopologyTarget) -> Value:
    """A topology, with its definition if it is a run of one: name, version and parameters; 0 is the latest version."""
    ref = value.definition
    text = "" if ref is None else f"{ref.name} {ref.version or 0} {ref.parameters}"
    return {"M": {TOPOLOGY: packed(text.encode())}}


def _read_topology_target(value: Value) -> TopologyTarget:
    if not (text := unpacked(value).decode()):
        return TopologyTarget()
    name, version, parameters = text.split(" ", 2)
    return TopologyTarget(DefinitionRef(name, int(version) or None, parameters))


def _read_http_target(text: str, request: HttpRequest) -> HttpTarget:
    kind, address = text.split(" ", 1)
    offered = kind.removeprefix(_HTTP)
    return HttpTarget(
        address,
        phases=frozenset(phase for phase, letter in _PHASES.items() if letter in offered),
        queries=frozenset(query for query, letter in _QUERIES.items() if letter in offered),
        request=request,
    )


def _packed_request(request: HttpRequest) -> Value:
    """A request as compact JSON; what has its default is left out."""
    body, auth, response = request.body, request.auth, request.response
    form: dict[str, Any] = {
        "m": request.method,
        "h": request.headers,
        "q": request.query,
        "b": body and [body.kind.value, body.text],
        "s": request.success,
        "a": auth and [auth.secret, auth.scheme.value, auth.header],
        "r": response != ResponseOptions() and [response.keep.value, response.max_bytes, response.truncates],
    }
    given = {name: value for name, value in form.items() if value}
    return packed(json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode())


def _read_request(value: Value) -> HttpRequest:
    """Read a request."""
    form: dict[str, Any] = json.loads(unpacked(value))
    body, auth, response = form.get("b"), form.get("a"), form.get("r")
    return HttpRequest(
        method=form.get("m", ""),
        headers=tuple((name, text) for name, text in form.get("h", ())),
        query=tuple((name, text) for name, text in form.get("q", ())),
        body=RequestBody(BodyKind(body[0]), body[1]) if body else None,
        success=tuple(form.get("s", ())),
        auth=Auth(auth[0], AuthScheme(auth[1]), auth[2]) if auth else None,
        response=ResponseOptions(Keep(response[0]), response[1], response[2]) if response else ResponseOptions(),
    )


def _read_aws_target(text: str) -> AwsTarget:
    arn, _, option = text.partition(" ")
    service = AwsService(service_of(arn) or "")
    if service is AwsService.LAMBDA:
        return AwsTarget(service, arn, waits=option != _NOTIFIES)
    return AwsTarget(service, arn, detail_type=option)


def _packed_job(value: AwsTarget) -> Value:
    form = {"c": value.place, "n": value.container, "p": value.parameters}
    given = {name: text for name, text in form.items() if text}
    return packed(json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode())


def _read_job(arn: str, value: Value) -> AwsTarget:
    form: dict[str, str] = json.loads(unpacked(value))
    return AwsTarget(
        AwsService(service_of(arn) or ""),
        arn,
        is_job=True,
        place=form.get("c", ""),
        container=form.get("n", ""),
        parameters=form.get("p", ""),
    )
