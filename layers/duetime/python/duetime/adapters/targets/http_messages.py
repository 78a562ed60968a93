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
"""Kind of the reply to a call that did not end in time."""
EGRESS_FAILED = "EgressFailed"
"""Kind of the reply to a call that may have been forwarded, without any response."""
EGRESS_UNAVAILABLE = "EgressUnavailable"
"""Kind of the reply to a call that was not forwarded: the function was not invoked."""
SIGNING_KEY_MISSING = "SigningKeyMissing"
"""Kind of the reply to a call that could not be signed."""
_LARGE_BODY = 3_000_000
"""Bytes of a body whose base64 might, with the rest of the call, exceed one invocation of Lambda."""
NOT_SENT = frozenset({EGRESS_UNAVAILABLE, SIGNING_KEY_MISSING})
"""Kinds of calls that were never sent."""
OURS = NOT_SENT | {EGRESS_FAILED}
"""Kinds of failures that the endpoint did not cause."""


@frozen
class CallAuth:
    """The secret of a call, by name; the function that makes the call turns it into a header.

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
        id: the same for every repeat, for receivers to recognize repeats; sent as `webhook-id`.
        headers: all headers except `Host`, the length and the signature.
        seconds: timeout of the whole call.
        most: maximum bytes of the response's body to read; 0 to ignore it.
        owner: owner of the call, whose secrets sign it; not sent.
        parent: context (`traceparent`) of its parent span; empty if spans are not exported.
        signed: whether to sign it; a user's own request is not signed, as a signature proves duetime's authorship.
        auth: secret to send with it.
        truncates: whether a larger response is cut off; otherwise it is an error.
        wants_headers: whether to return the response's headers.
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
        retry_after: requested delay in seconds; empty if there is none.
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
        """Make a call and wait for its end, at most for its `seconds`. Never raises."""
        ...


def packed_call(call: Call, seconds: float) -> bytes:
    """A call as JSON, to be made within the given seconds."""
    facts = {
        "id": call.id,
        "method": call.method,
        "url": call.url,
        "headers": dict(call.headers),
        **packed_body(call.body),
        "seconds": seconds,
        "most": call.most,
        "owner": call.owner,
        # Omitted if it has its default: an egress function of another version may not know it.
        **({"parent": call.parent} if call.parent else {}),
        **({} if call.signed else {"signed": False}),
        **({"auth": asdict(call.auth)} if call.auth else {}),
        **({"truncates": True} if call.truncates else {}),
        **({"wants_headers": True} if call.wants_headers else {}),
    }
    return json.dumps(facts, separators=(",", ":")).encode()


def packed_body(body: bytes) -> dict[str, str]:
    """The body of a call; a large one takes more time to pack, and less room."""
    if len(body) > _LARGE_BODY:
        return {"packed_body": text_of(body)}
    return {"body": base64.b64encode(body).decode()}


def packed_calls(calls: Sequence[bytes]) -> bytes:
    """The event of the egress function for packed calls."""
    return b'{"calls":[' + b",".join(calls) + b"]}"


def calls_in(event: Mapping[str, Any]) -> list[Call]:
    """The calls in an event of the egress function."""
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
        ValueError: it does not have one reply for each call.
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
