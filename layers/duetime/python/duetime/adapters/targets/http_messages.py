"""HTTP calls and their replies as values, so that they can be made here or by another function."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TIMEOUT = "Timeout"
"""Kind of the reply of a call that did not end in time."""
EGRESS_FAILED = "EgressFailed"
"""Kind of the reply of a call that was handed on, perhaps, and of which nothing was heard."""
EGRESS_UNAVAILABLE = "EgressUnavailable"
"""Kind of the reply of a call that was not handed on: the function was not invoked."""
SIGNING_KEY_MISSING = "SigningKeyMissing"
"""Kind of the reply of a call that could not be signed."""
NOT_SENT = frozenset({EGRESS_UNAVAILABLE, SIGNING_KEY_MISSING})
"""Kinds of calls that never left."""
OURS = NOT_SENT | {EGRESS_FAILED}
"""Kinds for which the endpoint can do nothing."""


@dataclass(frozen=True, slots=True)
class CallAuth:
    """The secret that a call proves its sender with: by name, and made into a header by whoever makes the call.

    Attributes:
        owner: whose task it is.
    """

    secret: str
    scheme: str
    header: str
    owner: str


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP call that is to be made.

    Attributes:
        id: the same for every repeat of it, so that a receiver knows a repeat; goes out as `webhook-id`.
        headers: all but `Host`, the length and the signature.
        seconds: how long it may take in all.
        most: bytes of the answer's body that are read at most; 0 if nobody wants it.
        owner: whose it is; it stays in this process.
        parent: the context (`traceparent`) of the span that it is a part of; empty if nobody exports spans.
        signed: whether it is signed: what a user wrote is not, because the signature says that duetime wrote it.
        auth: the secret to send with it.
        truncates: whether a larger answer is cut off; otherwise there is no answer.
        wants_headers: whether the answer's headers are wanted.
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


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What the endpoint answered, whatever the status.

    Attributes:
        retry_after: how many seconds it asks for; empty if it does not.
    """

    status: int
    retry_after: str = ""
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoResponse:
    """Why there is no answer: the error's class and message, and whether a later call may bring one."""

    kind: str
    message: str
    retriable: bool = True


Reply = HttpResponse | NoResponse


class Caller(Protocol):
    """Makes HTTP calls."""

    def call(self, call: Call) -> Reply:
        """Make a call and wait for its end, no longer than its `seconds`. Never raises."""
        ...


def packed_call(call: Call, seconds: float) -> bytes:
    """A call as JSON, to be made within so many seconds."""
    facts = {
        "id": call.id,
        "method": call.method,
        "url": call.url,
        "headers": dict(call.headers),
        "body": base64.b64encode(call.body).decode(),
        "seconds": seconds,
        "most": call.most,
        # Left out if it has its default: an egress function of another version may not know it.
        **({"parent": call.parent} if call.parent else {}),
        **({} if call.signed else {"signed": False}),
        **({"auth": asdict(call.auth)} if call.auth else {}),
        **({"truncates": True} if call.truncates else {}),
        **({"wants_headers": True} if call.wants_headers else {}),
    }
    return json.dumps(facts, separators=(",", ":")).encode()


def packed_calls(calls: Sequence[bytes]) -> bytes:
    """The event of the egress function for packed calls."""
    return b'{"calls":[' + b",".join(calls) + b"]}"


def calls_in(event: Mapping[str, Any]) -> list[Call]:
    """The calls in an event of the egress function."""
    return [_call(facts) for facts in event["calls"]]


def _call(facts: Mapping[str, Any]) -> Call:
    auth = facts.get("auth")
    return Call(
        **{**facts, "body": base64.b64decode(facts["body"]), "auth": None if auth is None else CallAuth(**auth)}
    )


def packed_replies(replies: Sequence[Reply]) -> dict[str, Any]:
    """What the egress function answers: a reply for each call, in their order."""
    return {"replies": [_packed(reply) for reply in replies]}


def replies_in(data: bytes, expected: int) -> list[Reply]:
    """The replies in an answer of the egress function.

    Raises:
        ValueError: it is not an answer to so many calls.
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
            told = {"status": status, "retry_after": retry_after, "body": base64.b64encode(body).decode()}
            return {**told, "headers": dict(headers)} if headers else told
        case NoResponse(kind, message, retriable):
            return {"kind": kind, "message": message, "retriable": retriable}


def _reply(facts: Mapping[str, Any]) -> Reply:
    if "kind" in facts:
        return NoResponse(facts["kind"], facts["message"], facts["retriable"])
    body = base64.b64decode(facts["body"])
    return HttpResponse(facts["status"], facts["retry_after"], body, facts.get("headers", {}))
