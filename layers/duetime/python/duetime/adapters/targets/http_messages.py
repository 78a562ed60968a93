"""Defines HTTP calls and their replies, and encodes them for the egress function, which may make the calls."""

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
"""Kind of reply to a call that may have been forwarded but received no response."""
EGRESS_UNAVAILABLE = "EgressUnavailable"
"""Kind of reply to a call that was not forwarded, because the egress function was not invoked."""
SIGNING_KEY_MISSING = "SigningKeyMissing"
"""Kind of reply to a call that could not be signed."""
_LARGE_BODY = 3_000_000
"""Size of a body in bytes above which the call, with the body in base64, might be too large for a Lambda invocation."""
NOT_SENT = frozenset({EGRESS_UNAVAILABLE, SIGNING_KEY_MISSING})
"""Kinds of replies to calls that were never sent."""
OURS = NOT_SENT | {EGRESS_FAILED}
"""Kinds of failures that the endpoint did not cause."""


@frozen
class CallAuth:
    """Names the secret for a call. The function that makes the call turns the secret into a header.

    Attributes:
        owner: the task's owner.
    """

    secret: str
    scheme: str
    header: str
    owner: str


@frozen
class Call:
    """One HTTP call to make.

    Attributes:
        id: an id that is the same for every repeat, so that receivers recognize repeats; sent as `webhook-id`.
        headers: all headers except `Host`, the length and the signature.
        seconds: the timeout for the complete call.
        most: maximum number of bytes to read from the response body; 0 to ignore the body.
        owner: the owner whose secrets sign the call; the owner is not sent.
        parent: the context (`traceparent`) of the call's parent span; empty if spans are not exported.
        signed: whether to sign the call. Custom requests are not signed, because a signature proves that duetime wrote
            the request.
        auth: the secret to send with the call.
        truncates: whether to truncate a response that is too large; otherwise, the call fails.
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
    """The endpoint's response, regardless of its status.

    Attributes:
        retry_after: the requested delay in seconds; empty if no delay is requested.
    """

    status: int
    retry_after: str = ""
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@frozen
class NoResponse:
    """A failed call without a response, with the error's class and message, and whether a later call may succeed."""

    kind: str
    message: str
    retriable: bool = True


Reply = HttpResponse | NoResponse


class Caller(Protocol):
    """Makes HTTP calls."""

    def call(self, call: Call) -> Reply:
        """Make a call, and wait for its end for at most `call.seconds`. This method never raises."""
        ...


def packed_call(call: Call, seconds: float) -> bytes:
    """Encode a call, which must end within the given number of seconds, as JSON."""
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
    """The body of a call in base64.

    A large body is compressed, which costs CPU but makes it fit into one invocation.
    """
    if len(body) > _LARGE_BODY:
        return {"packed_body": text_of(body)}
    return {"body": base64.b64encode(body).decode()}


def packed_calls(calls: Sequence[bytes]) -> bytes:
    """The event for the egress function with the given packed calls."""
    return b'{"calls":[' + b",".join(calls) + b"]}"


def calls_in(event: Mapping[str, Any]) -> list[Call]:
    """Decode the calls in an event for the egress function."""
    return [_call(facts) for facts in event["calls"]]


def _call(facts: Mapping[str, Any]) -> Call:
    auth, packed = facts.get("auth"), facts.get("packed_body")
    body = base64.b64decode(facts["body"]) if packed is None else bytes_in(packed)
    given = {name: each for name, each in facts.items() if name != "packed_body"}
    return Call(**{**given, "body": body, "auth": None if auth is None else CallAuth(**auth)})


def packed_replies(replies: Sequence[Reply]) -> dict[str, Any]:
    """The egress function's response, with a reply for each call, in order."""
    return {"replies": [_packed(reply) for reply in replies]}


def replies_in(data: bytes, expected: int) -> list[Reply]:
    """Decode the replies in a response from the egress function.

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
