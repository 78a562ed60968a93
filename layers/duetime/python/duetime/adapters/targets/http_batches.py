"""Makes HTTP calls for several tasks, with one signed request and a response that contains each task's outcome.

This module is imported for the first task whose target has a `batch`.
"""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from duetime.adapters.targets.envelope import audience_of, compact, envelope
from duetime.adapters.targets.http_messages import Call, Caller, HttpResponse, NoResponse
from duetime.adapters.targets.http_target import (
    ACCEPTED,
    OK,
    USER_AGENT,
    asking_for,
    auth_of,
    refused,
    unanswered,
    with_headers,
    with_query,
)
from duetime.adapters.targets.shared_calls import share_call
from duetime.domain.json_values import check_kept
from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.tasks.attempt_results import Deferred, Failed, Succeeded, TargetEnding, failure
from duetime.domain.tasks.placeholders import filled_url
from duetime.domain.times import DAY, SECOND, to_iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duetime.domain.tasks.targets import HttpTarget
    from duetime.ports.targets import Work

MAX_REQUEST_BYTES = 3_000_000
"""Maximum bytes of items per request. In base64, these items and the rest of the call fit into one Lambda invocation (6
MB)."""
MAX_RESPONSE_BYTES = 2_000_000
"""Maximum bytes of a response. Two responses fit into one response from the egress function, whose calls may share an
invocation."""
_STATUSES = range(200, 600)


def run_in_batch(caller: Caller, target: HttpTarget, work: Work) -> TargetEnding:
    """Call an endpoint for attempts with the same type, owner, URL and headers, and return this attempt's ending."""
    call, item = _call(target, work), envelope(work)
    together = partial(_endings, caller)
    if work.batch_groups is None or target.batch is None:
        (ending,) = together([(work, (call, item))], work.seconds)
        return ending
    return share_call(
        work.batch_groups(),
        work,
        (call, item),
        together,
        key=(work.task.owner, work.task.type, call.url, tuple(call.headers.items()), call.auth, target.batch),
        max_size=target.batch.max_size,
        max_wait_seconds=target.batch.max_wait_seconds,
    )


Member = tuple["Work", tuple[Call, bytes]]
"""An attempt, its call without a body, and its item for the body."""


def _call(target: HttpTarget, work: Work) -> Call:
    """The call for an attempt, without the parts that depend on all attempts in a request."""
    task, request = work.task, target.request
    return Call(
        id=f"{task.id}-{task.fence}-batch",
        method="PUT",
        url=asking_for(with_query(filled_url(target.url, task), request, task), work.phase),
        headers=with_headers({**USER_AGENT, "Content-Type": "application/json"}, request, task),
        most=MAX_RESPONSE_BYTES,
        owner=task.owner,
        auth=auth_of(request, task),
    )


def _endings(caller: Caller, members: Sequence[Member], seconds: float) -> Sequence[TargetEnding]:
    """Call the endpoint, and return the ending of each attempt."""
    endings: list[TargetEnding] = []
    for part in _parts(members):
        for work, _ in part[1:]:
            work.shares_call()
        reply = caller.call(_request(part, seconds))
        endings += [unanswered(reply)] * len(part) if isinstance(reply, NoResponse) else _ended(reply, len(part))
    return endings


def _parts(members: Sequence[Member]) -> Iterator[Sequence[Member]]:
    """Divide attempts among requests that are small enough. An item that is too large is sent alone."""
    first, size = 0, 0
    for number, (_, (_, item)) in enumerate(members):
        if number > first and size + len(item) > MAX_REQUEST_BYTES:
            yield members[first:number]
            first, size = number, 0
        size += len(item)
    yield members[first:]


def _request(members: Sequence[Member], seconds: float) -> Call:
    """The request for several attempts."""
    _, (first, _) = members[0]
    deadline = to_iso(min(work.deadline for work, _ in members))
    facts = {"owner": first.owner, "audience": audience_of(first.url), "deadline": deadline}
    items = b", ".join(item for _, (_, item) in members)
    return Call(
        id=first.id,
        method=first.method,
        url=first.url,
        headers={"Duetime-Deadline": deadline, "Duetime-Batch": str(len(members)), **first.headers},
        body=json.dumps(facts).encode()[:-1] + b', "items": [' + items + b"]}",
        seconds=seconds,
        most=first.most,
        owner=first.owner,
        auth=first.auth,
    )


def _ended(answer: HttpResponse, size: int) -> Sequence[TargetEnding]:
    """The endings of all attempts in a request, from the response."""
    if answer.status == ACCEPTED:
        return [Deferred()] * size
    if answer.status not in OK:
        text = answer.body[:200].decode("utf-8", "replace")
        return [refused(answer, f"the endpoint answered {answer.status}: {text}")] * size
    if not answer.body.strip():
        return [Succeeded(b"null")] * size
    try:
        outcomes = check_kept(answer.body.decode(json.detect_encoding(answer.body)))
    except (ValueError, RecursionError) as error:
        return [_invalid(f"the response is not valid JSON: {error}")] * size
    results = outcomes.get("results") if isinstance(outcomes, dict) else None
    if not isinstance(results, list) or len(results) != size:
        return [_invalid(f"the response should be {{'results': […]}} with {size} outcomes")] * size
    return [_ending(number, outcome) for number, outcome in enumerate(results)]


def _ending(number: int, outcome: object) -> TargetEnding:
    """The ending of one attempt, from its outcome in the response."""
    status = outcome.get("status") if isinstance(outcome, dict) else None
    if isinstance(status, bool) or not isinstance(status, int) or status not in _STATUSES:
        return _invalid(f"results[{number}] should be an object with a `status` from 200 to 599")
    given = cast("Mapping[str, Any]", outcome)
    if status == ACCEPTED:
        return Deferred()
    if status in OK:
        result = compact(given.get("result"))
        if len(result) > MAX_RESULT_BYTES:
            return failure("AnswerTooLarge", f"the result has more than {MAX_RESULT_BYTES} bytes", retriable=False)
        return Succeeded(result)
    message = str(given.get("error") or f"the endpoint answered {status} for this task")
    return refused(HttpResponse(status, _retry_after(given.get("retry_after_seconds"))), message)


def _retry_after(seconds: object) -> str:
    """A requested delay in the form of `Retry-After`.

    Values that are not a number of seconds up to a day are ignored.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= DAY / SECOND:
        return ""
    return str(math.ceil(seconds))


def _invalid(message: str) -> Failed:
    """The ending for a response without valid outcomes. The work may have been done, so it is not repeated."""
    return failure("BatchResultInvalid", message, retriable=False)
