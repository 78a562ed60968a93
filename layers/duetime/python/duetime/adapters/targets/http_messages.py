"""HTTP calls and their replies as values; another function may make the calls."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, Protocol

from duetime.adapters.dynamodb.attribute_values import bytes_in, text_of
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TIMEOUT = "Timeout"
"""Kind of reply to a call that did not end in time."""
EGRESS_FAILED = "EgressFailed"
"""Kind of reply to a call that may have been forwarded, but got no response."""
EGRESS_UNAVAILABLE = "EgressUnavailable"
"""Kind of reply to a call that was not forwarded, because the egress function was not invoked."""
SIGNING_KEY_MISSING = "SigningKeyMissing"
"""Kind of reply to a call that could not be signed."""
_LARGE_BODY = 3_000_000
"""Size in bytes from which a body in base64 might, with the rest of the call, exceed one Lambda invocation."""
NOT_SENT = frozenset({EGRESS_UNAVAILABLE, SIGNING_KEY_MISSING})
"""Kinds of replies to calls that were never sent."""
OURS = NOT_SENT | {EGRESS_FAILED}
"""Kinds of failures that the endpoint did not cause."""


@frozen
class CallAuth:
    """The secret for a call, by name; the function that makes the call turns the secret into a header.

    Attributes:
        owner: owner of the task.
    """

    secret: str
    scheme: str
    header: str
    owner: str


@frozen
class Call:
    """One HTTP call to make.

    Attributes:
        id: the same for every repeat, so that receivers recognize repeats; sent as `webhook-id`.
        headers: all headers except `Host`, the length and the signature.
        seconds: timeout of the complete call.
        most: maximum bytes of the response body to read; 0 to ignore the body.
        owner: owner of the call, whose secrets sign it; the owner is not sent.
        parent: context (`traceparent`) of the call's parent span; empty if spans are not exported.
        signed: whether to sign the call; a user's own request is not signed, as a signature proves duetime's
            authorship.
        auth: secret to send with the call.
        truncates: whether a response that is too large is cut off; otherwise it is an error.
        wants_headers: whether to return the response headers.
    """

    id: str
    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 60
    most: int = 0
    owner: str = ""
    parent: str = ""
    signed: bool = True
    auth: CallAuth | None = None
    truncates: bool = False
    wants_headers: bool = False


@frozen
class HttpResponse:
    """The endpoint's response, with any status.

    Attributes:
        retry_after: requested delay in seconds; empty if none is requested.
    """

    status: int
    retry_after: str = ""
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@frozen
class NoResponse:
    """A failure without a response: the error's class and message, and whether a later call may succeed."""

    kind: str
    message: str
    retriable: bool = True


Reply = HttpResponse | NoResponse


class Caller(Protocol):
    """Makes HTTP calls."""

    def call(self, call: Call) -> Reply:
        """Make a call and wait for its end, at most for `call.seconds`. Never raises."""
        ...


def packed_call(call: Call, seconds: float) -> bytes:
    """A call as JSON, to be made within the given number of seconds."""
    facts = {
        "id": call.id,
        "method": call.method,
        "url": call.url,
        "headers": dict(call.headers),
        **packed_body(call.body),
        "seconds": seconds,
        "most": call.most,
        "owner": call.owner,
        # Default values are omitted, because an egress function of another version may not know these fields.
        **({"parent": call.parent} if call.parent else {}),
        **({} if call.signed else {"signed": False}),
        **({"auth": asdict(call.auth)} if call.auth else {}),
        **({"truncates": True} if call.truncates else {}),
        **({"wants_headers": True} if call.wants_headers else {}),
    }
    return json.dumps(facts, separators=(",", ":")).encode()


def packed_body(body: bytes) -> dict[str, str]:
    """The body of a call: base64, or compressed if it is large, which costs CPU but fits into one Lambda invocation."""
    if len(body) > _LARGE_BODY:
        return {"packed_body": text_of(body)}
    return {"body": base64.b64encode(body).decode()}


def packed_calls(calls: Sequence[bytes]) -> bytes:
    """The egress function's event with packed calls."""
    return b'{"calls":[' + b",".join(calls) + b"]}"


def calls_in(event: Mapping[str, Any]) -> list[Call]:
    """The calls in an event for the egress function."""
    return [_call(facts) for facts in event["calls"]]


def _call(facts: Mapping[str, Any]) -> Call:
    auth, packed = facts.get("auth"), facts.get("packed_body")
    body = base64.b64decode(facts["body"]) if packed is None else bytes_in(packed)
    given = {name: each for name, each in facts.items() if name != "packed_body"}
    return Call(**{**given, "body": body, "auth": None if auth is None else CallAuth(**auth)})


def packed_replies(replies: Sequence[Reply]) -> dict[str, Any]:
    """The egress function's response: a reply for each call, in order."""
    return {"replies": [_packed(reply) for reply in replies]}


def replies_in(data: bytes, expected: int) -> list[Reply]:
    """The replies in a response of the egress function.

    Raises:
        ValueError: the response does not have one reply for each call.
    """
    try:
        replies = [_reply(facts) for facts in json.loads(data)["replies"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"no replies in the answer: {error!r}") from error
    if len(replies) != expected:
        raise ValueError(f"{len(replies)} replies to {expected} calls")
    return replies


def _packed(reply: Reply) -> dict[str, object]:
    match reply:
        case HttpResponse(status, retry_after, body, headers):
            packed = {"status": status, "retry_after": retry_after, "body": base64.b64encode(body).decode()}
            return {**packed, "headers": dict(headers)} if headers else packed
        case NoResponse(kind, message, retriable):
            return {"kind": kind, "message": message, "retriable": retriable}


def _reply(facts: Mapping[str, Any]) -> Reply:
    if "kind" in facts:
        return NoResponse(facts["kind"], facts["message"], facts["retriable"])
    body = base64.b64decode(facts["body"])
    return HttpResponse(facts["status"], facts["retry_after"], body, facts.get("headers", {}))
