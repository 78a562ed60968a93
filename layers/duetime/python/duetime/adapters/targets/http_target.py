"""Calls HTTP endpoints.

`PUT {url}?action={phase}` runs a phase, and `GET {url}?action={query}` sends a query. A target can define another
request, which replaces the `PUT`.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from duetime.adapters.targets.envelope import audience_of, compact, envelope, result_of
from duetime.adapters.targets.http_messages import (
    NOT_SENT,
    OURS,
    TIMEOUT,
    Call,
    CallAuth,
    Caller,
    HttpResponse,
    NoResponse,
)
from duetime.domain.errors import TargetSilent, TargetUnreachable, Unavailable
from duetime.domain.ids import TRACEPARENT
from duetime.domain.limits import MAX_QUERY_ANSWER_BYTES, MAX_RESULT_BYTES, QUERY_TIMEOUT
from duetime.domain.tasks.attempt_results import Deferred, Ending, Failed, NotSent, Succeeded, TargetEnding, failure
from duetime.domain.tasks.placeholders import filled_payload, filled_text, filled_url
from duetime.domain.tasks.targets import PAYLOAD_METHODS, BodyKind, Keep, Phase, form_fields
from duetime.domain.times import DAY, SECOND, to_iso
from duetime.ports.targets import QueryResponse
from duetime_common.frozen_classes import frozen
from duetime_common.payload_codecs import binary_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.targets import CallbackTarget, HttpRequest, HttpTarget, Query, RequestBody
    from duetime.domain.tasks.task import Task
    from duetime.ports.targets import Work


OK = range(200, 300)
ACCEPTED = 202
_CLIENT_ERRORS = range(400, 500)
_RETRIABLE = frozenset({408, 425, 429})
"""Client errors after which a later call may succeed (Source: RFC 9110, RFC 8470, RFC 6585)."""
USER_AGENT = {"User-Agent": "duetime"}


@frozen
class HttpRunner:
    """Calls HTTP endpoints.

    Attributes:
        caller: makes the calls.
    """

    caller: Caller

    def run(self, target: HttpTarget, work: Work) -> TargetEnding:
        """Call the endpoint.

        The attempt fails unless the status is 2xx or, if the target lists its own success statuses, one of these.
        """
        reply = self.caller.call(_call(target, work))
        if isinstance(reply, NoResponse):
            return unanswered(reply)
        return _ending(reply, work.phase, target.request)

    def call_back(self, target: CallbackTarget, work: Work) -> TargetEnding:
        """Post the payload, which is the event for an outcome. Any status other than 2xx fails the attempt."""
        task = work.task
        reply = self.caller.call(
            Call(
                id=task.id.text,
                method="POST",
                url=target.url,
                headers={**USER_AGENT, **trace_header(task), "Content-Type": "application/json"},
                body=work.payload,
                seconds=work.seconds,
                owner=task.owner,
            )
        )
        if isinstance(reply, NoResponse):
            return unanswered(reply)
        if reply.status in OK:
            return Succeeded(b"null")
        return refused(reply, f"the callback returned the status {reply.status}")

    def ask(self, target: HttpTarget, task: Task, query: Query, nonce: str) -> QueryResponse:
        """Send a query about a task to the endpoint; a response with any status is a valid answer.

        Raises:
            TargetSilent: the endpoint did not respond in time.
            TargetUnreachable: the endpoint must not be called, cannot be reached, or its response is too large.
            Unavailable: the call could not be forwarded or signed.
        """
        request = target.request
        reply = self.caller.call(
            Call(
                # A repeated query needs a new answer, so no two queries share an id.
                id=f"{task.id}-{task.fence}-{query}-{nonce}",
                method="GET",
                url=asking_for(with_query(filled_url(target.url, task), request, task), query),
                headers=with_headers(_facts(task), request, task),
                seconds=QUERY_TIMEOUT / SECOND,
                most=MAX_QUERY_ANSWER_BYTES,
                owner=task.owner,
                auth=auth_of(request, task),
            )
        )
        if isinstance(reply, HttpResponse):
            return QueryResponse(reply.status, result_of(reply.body))
        if reply.kind == TIMEOUT:
            raise TargetSilent(reply.message)
        if reply.kind in OURS:
            raise Unavailable(f"{reply.kind}: {reply.message}")
        raise TargetUnreachable(f"{reply.kind}: {reply.message}")


def _call(target: HttpTarget, work: Work) -> Call:
    """The call for a phase, which is duetime's own request or the user's request."""
    task, request = work.task, target.request
    url = with_query(filled_url(target.url, task), request, task)
    if request.is_custom:
        method = request.sent_method
        content, body = content_of(request, task, work.payload)
    else:
        method, url = "PUT", asking_for(url, work.phase)
        content, body = {"Content-Type": "application/json"}, envelope(work, audience_of(url))
    ours = {
        **_facts(task),
        **content,
        "Idempotency-Key": task.id.text,
        "Duetime-Deadline": to_iso(work.deadline),
    }
    return Call(
        id=f"{task.id}-{task.fence}-{work.phase}",
        method=method,
        url=url,
        headers=with_headers(ours, request, task),
        body=body,
        seconds=work.seconds,
        most=0 if request.response.keep is Keep.NONE else request.response.max_bytes,
        owner=task.owner,
        # Custom requests are not signed; otherwise, users could send signed requests with any content to other
        # endpoints.
        signed=not request.is_custom,
        auth=auth_of(request, task),
        truncates=request.response.truncates,
        wants_headers=request.response.keep is Keep.ALL,
    )


def auth_of(request: HttpRequest, task: Task) -> CallAuth | None:
    """The secret that a task's request names."""
    auth = request.auth
    return None if auth is None else CallAuth(auth.secret, auth.scheme, auth.header, task.owner)


def asking_for(url: str, action: Phase | Query) -> str:
    """The URL with the action in its query. A fragment is removed, because fragments are never sent."""
    url = url.partition("#")[0]
    return f"{url}{'&' if '?' in url else '?'}action={action}"


def _facts(task: Task) -> dict[str, str]:
    return {
        **USER_AGENT,
        **trace_header(task),
        "Duetime-Task": task.id.text,
        "Duetime-Attempt": str(task.attempt),
        "Duetime-Fence": str(task.fence),
        "Duetime-Due-At": to_iso(task.due_at),
        **_parents(task),
    }


def _parents(task: Task) -> dict[str, str]:
    """The headers with a task's schedule and topology, whose names contain only visible ASCII characters."""
    run, node = task.schedule_run, task.node_ref
    schedule = {} if run is None else {"Duetime-Schedule": run.schedule, "Duetime-Scheduled-At": to_iso(run.nominal)}
    topology = {} if node is None else {"Duetime-Topology": node.topology.text, "Duetime-Node": node.key}
    return schedule | topology


def trace_header(task: Task) -> dict[str, str]:
    """The header with the trace context of the task's creation, if any."""
    return {} if task.traceparent is None else {TRACEPARENT: task.traceparent}


def _ending(answer: HttpResponse, phase: Phase, request: HttpRequest) -> Ending:
    status = answer.status
    is_listed = status in request.success
    if status == ACCEPTED and phase is Phase.RUN and not (is_listed or request.is_custom):
        return Deferred()
    if is_listed or (not request.success and status in OK):
        return Succeeded(_result(answer, request))
    text = answer.body[:200].decode("utf-8", "replace")
    return refused(answer, f"the endpoint answered {status}: {text}")


def refused(answer: HttpResponse, message: str) -> Failed:
    """The failure for an unsuccessful status. If a 2xx status is unsuccessful, the work is not done yet."""
    status, wait = answer.status, _retry_after(answer.retry_after)
    is_retriable = status in OK or passes_with_time(status)
    return failure(f"Http{status}", message, retriable=is_retriable, wait_at_least=wait)


def unanswered(reply: NoResponse) -> TargetEnding:
    """The ending of an attempt whose call received no response."""
    if reply.kind in NOT_SENT:
        return NotSent(f"{reply.kind}: {reply.message}")
    return failure(reply.kind, reply.message, retriable=reply.retriable)


def _result(answer: HttpResponse, request: HttpRequest) -> bytes:
    result = _result_with(answer.body, answer, request)
    if len(result) <= MAX_RESULT_BYTES or not request.response.truncates:
        return result
    # A string is larger in JSON than in the body, so the string is truncated to the maximum size of a result.
    text = answer.body.decode("utf-8", "replace")
    fits = bisect_right(
        range(len(text)), MAX_RESULT_BYTES, key=lambda end: len(_result_with(text[:end].encode(), answer, request))
    )
    return _result_with(text[: fits - 1].encode(), answer, request)


def _result_with(data: bytes, answer: HttpResponse, request: HttpRequest) -> bytes:
    body = result_of(data)
    return whole_response(answer.status, answer.headers, body) if request.response.keep is Keep.ALL else body


def passes_with_time(status: int) -> bool:
    """Whether a later call may succeed. Redirects never succeed, because they are not followed."""
    return status in _RETRIABLE or status >= _CLIENT_ERRORS.stop


def _retry_after(text: str) -> int:
    """Convert a `Retry-After` in whole seconds to a delay in milliseconds, at most a day. Other forms are ignored."""
    if not (text.isascii() and text.isdigit()):
        return 0
    return min(int(text) * SECOND, DAY)


_JSON = "application/json"
_TYPES = {
    BodyKind.JSON: _JSON,
    BodyKind.FORM: "application/x-www-form-urlencoded",
    BodyKind.TEXT: "text/plain; charset=utf-8",
    BodyKind.BASE64: "application/octet-stream",
}


def with_query(url: str, request: HttpRequest, task: Task) -> str:
    """A URL with a request's query parameters, in which placeholders are replaced."""
    if not request.query:
        return url
    added = urlencode([(name, filled_text(text, task)) for name, text in request.query])
    url = url.partition("#")[0]
    return f"{url}{'&' if '?' in url else '?'}{added}"


def with_headers(ours: Mapping[str, str], request: HttpRequest, task: Task) -> dict[str, str]:
    """Merge duetime's headers with the request's headers, which replace duetime's headers with the same name."""
    given = {name.lower() for name, _ in request.headers}
    kept = {name: text for name, text in ours.items() if name.lower() not in given}
    return kept | {name: filled_text(text, task) for name, text in request.headers}


def content_of(request: HttpRequest, task: Task, payload: bytes) -> tuple[dict[str, str], bytes]:
    """The content-type header and the body of a request, which are both empty for a request without a body.

    Args:
        request: the custom request.
        task: the claimed record.
        payload: JSON text with placeholders replaced.
    """
    if request.body is not None:
        return {"Content-Type": _TYPES[request.body.kind]}, _body(request.body, task)
    if request.sent_method in PAYLOAD_METHODS and payload != b"null":
        binary = binary_in(payload)
        return ({"Content-Type": _JSON}, payload) if binary is None else ({"Content-Type": binary.content_type}, binary)
    return {}, b""


def whole_response(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """A result with the complete response, as JSON with its status, headers and body."""
    return compact({"status": status, "headers": dict(headers), "body": json.loads(body)})


def _body(body: RequestBody, task: Task) -> bytes:
    match body.kind:
        case BodyKind.JSON:
            return filled_payload(body.text.encode(), task)
        case BodyKind.FORM:
            return urlencode([(name, filled_text(text, task)) for name, text in form_fields(body)]).encode()
        case BodyKind.TEXT:
            return filled_text(body.text, task).encode()
        case BodyKind.BASE64:
            return base64.b64decode(body.text)
