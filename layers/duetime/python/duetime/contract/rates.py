"""The REST API for rates: keys in paths, bodies, responses and operations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Parameters, Returns
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.mapping import response_of, value_of
from duetime.contract.tasks.encoding import instant
from duetime.contract.tasks.fields import LOCK_KEY_PATTERN, RateBurst, RateLimit, RateSeconds, Reason
from duetime.contract.tasks.operations import TaskAction
from duetime.contract.tasks.queries import PageSize
from duetime.contract.tasks.responses import Instant
from duetime.domain.errors import RateNotFound
from duetime.domain.limits import MAX_PAGE
from duetime.domain.tasks.task_options import Rate
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.contract.http.request_json import Document
    from duetime.domain.rates import RateStatus, RateWaiter

_KEY = re.compile(LOCK_KEY_PATTERN)


class RatePin(Body):
    """A limit that overrides the limits that tasks request."""

    limit: RateLimit
    per_seconds: RateSeconds = 1
    burst: RateBurst = 0
    reason: Reason = ""


class RateLimitResponse(TypedDict):
    """The limit on how often attempts can start."""

    limit: int
    per_seconds: int
    burst: int


class RateSummary(TypedDict):
    """A rate, as shown in lists."""

    key: str
    limit: Annotated[
        int | None,
        Field(
            description="The limit in force, which is pinned or was requested by the latest task; null if the rate is "
            "unused."
        ),
    ]
    per_seconds: Annotated[int | None, Field(description="The window in force, in seconds.")]
    burst: int | None
    pinned: Annotated[RateLimitResponse | None, Field(description="The pinned limit; null if there is none.")]
    asked: Annotated[
        RateLimitResponse | None,
        Field(description="The limit that the latest task requested; null if the rate is unused."),
    ]
    paused_at: Annotated[Instant | None, Field(description="When the rate was paused; null if it is not paused.")]
    used: Annotated[
        int,
        Field(
            description=(
                "Number of recent starts that still count against the number of starts that are possible at once "
                "(`burst` + 1, or more for limits above 250 per second)."
            )
        ),
    ]
    available: Annotated[
        int, Field(description="Number of starts that are possible right now; 0 while the rate is paused.")
    ]
    waiting: Annotated[
        int | None,
        Field(
            description="Number of places taken in the queue, including places of tasks that have been cancelled; null "
            "while the rate is paused, because tasks then take no places."
        ),
    ]
    next_free_at: Annotated[
        Instant | None,
        Field(description="When a new task of normal priority could start; null while the rate is paused."),
    ]


class RateWaiterResponse(TypedDict):
    """A task that waits for a rate."""

    task_id: str
    due_at: Instant
    next_at: Annotated[
        Instant,
        Field(description="When the task's turn comes; while the rate is paused, when the task is checked again."),
    ]


class RateResponse(RateSummary):
    """A rate with its first waiting tasks, in order."""

    waiters: Annotated[
        list[RateWaiterResponse],
        Field(description="At most 100 tasks, found among the first 1,000 of your waiting tasks."),
    ]


class RatePage(TypedDict):
    """A page of rates."""

    rates: Annotated[list[RateSummary], Field(description="The rates, by key.")]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


class RateListQuery(Parameters):
    """Parameters of `GET /v1/rates`."""

    limit: Annotated[PageSize, Field(description="Maximum number of rates on a page.")] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="`next_token` from the previous page.")] = None


def rate_key(text: str) -> str:
    """Parses the key in a path.

    Raises:
        RateNotFound: the text cannot be a key.
    """
    if _KEY.fullmatch(text) is None:
        raise RateNotFound(text)
    return text


def pinned_rate(key: str, document: Document) -> tuple[Rate, str]:
    """Decodes a pinned rate, and the reason for it.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(RatePin, document)
    return value_of(Rate, body, key=key), body.reason


def rate_entry(status: RateStatus) -> RateSummary:
    """A rate in a list."""
    rate = status.rate
    return RateSummary(
        key=status.key,
        limit=None if rate is None else rate.limit,
        per_seconds=None if rate is None else rate.per_seconds,
        burst=None if rate is None else rate.burst,
        pinned=response_of(RateLimitResponse, status.control.pin),
        asked=response_of(RateLimitResponse, status.asked),
        paused_at=instant(status.control.paused_at),
        used=status.used,
        available=status.available,
        waiting=status.waiting,
        next_free_at=instant(status.next_free_at),
    )


def rate_response(status: RateStatus, line: Sequence[RateWaiter]) -> RateResponse:
    """A rate with its waiting tasks."""
    waiters = [
        RateWaiterResponse(task_id=each.task_id.text, due_at=to_iso(each.due_at), next_at=to_iso(each.next_at))
        for each in line
    ]
    return RateResponse(**rate_entry(status), waiters=waiters)


_RATE = Returns(RateSummary, "The rate after the change.")
_CHECKED = "The first 100 waiting tasks are checked again at once, others at their scheduled times."
LIST = Operation(
    "listRates",
    "GET /v1/rates",
    "List rates",
    Returns(RatePage, "A page of rates."),
    description="Your rates that tasks have used in the last seven days, and all paused or pinned rates, ordered by "
    "key. A rate with only one start so far is not listed yet.",
    query=RateListQuery,
)
READ = Operation(
    "getRate",
    "GET /v1/rates/{key}",
    "Get a rate",
    Returns(RateResponse, "The rate."),
    description="The rate's limit and use, and the first tasks that wait for the rate.",
)
PIN = Operation(
    "pinRate",
    "PUT /v1/rates/{key}",
    "Pin the limit of a rate",
    _RATE,
    description=f"The pinned limit overrides the limits that tasks request, until it is unpinned. {_CHECKED}",
    body=RatePin,
)
UNPIN = Operation(
    "unpinRate",
    "DELETE /v1/rates/{key}",
    "Unpin the limit of a rate",
    _RATE,
    description=f"The limits that tasks request apply again. A rate without a pinned limit does not change. {_CHECKED}",
)


def _action(id_: str, name: str, summary: str, description: str) -> Operation:
    """Declares a user action on a rate, whose only field is the reason."""
    return Operation(id_, f"POST /v1/rates/{{key}}/{name}", summary, _RATE, description=description, body=TaskAction)


PAUSE = _action(
    "pauseRate",
    "pause",
    "Pause a rate",
    "No attempt with this rate starts until the rate is resumed; running attempts continue. A rate can be paused "
    "before any task uses it. Repeating the request changes nothing.",
)
RESUME = _action(
    "resumeRate",
    "resume",
    "Resume a paused rate",
    "The first 100 waiting tasks are checked at once, others within 85 seconds.",
)
RESET = _action(
    "resetRate",
    "reset",
    "Reset a rate",
    "Forgets counted starts and the queue: the full limit and burst are available again at once, so up to twice as "
    f"many attempts can start in one window. A pause and a pinned limit are kept. {_CHECKED}",
)
