"""Locks over REST: the paths' keys, the list's query, the answers and the operations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http import routes
from duetime.contract.http.operation import OWNED, OWNER, Operation
from duetime.contract.tasks.bodies import Body
from duetime.contract.tasks.fields import LOCK_KEY_PATTERN
from duetime.contract.tasks.queries import page_size, read_query
from duetime.domain import errors
from duetime.domain.errors import LockNotFound
from duetime.domain.limits import MAX_PAGE
from duetime.domain.locks import RESERVED
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.locks import Holder, Lock, Waiter

_KEY = re.compile(LOCK_KEY_PATTERN)


class HolderResponse(TypedDict):
    """A task that holds a lock."""

    task_id: str
    fence: Annotated[int | None, Field(description="Of its attempt; null while the lock waits for it to come.")]
    until: Annotated[str, Field(description="When the hold ends, unless a heartbeat renews it.")]


class WaiterResponse(TypedDict):
    """A task in a lock's line."""

    task_id: str
    due_at: str


class LockEntry(TypedDict):
    """A lock as lists show it."""

    key: str
    holders: list[HolderResponse]


class LockResponse(LockEntry):
    """A lock, with the first of its line, in the order in which they will be let in."""

    waiters: list[WaiterResponse]


class LockPage(TypedDict):
    """Some of an owner's locks."""

    locks: list[LockEntry]
    next_token: Annotated[str | None, Field(description="Asks for the next page; null on the last one.")]


class LockListQuery(Body):
    """Parameters of `GET /v1/locks`."""

    limit: Annotated[
        int,
        BeforeValidator(page_size),
        WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_PAGE}),
        Field(description="Most locks on a page."),
    ] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="Of the page before.")] = None


def lock_list_query(raw: str) -> LockListQuery:
    """Read the query of a list of locks.

    Raises:
        ParametersInvalid: a parameter is unknown, repeated, or has no acceptable value.
    """
    return read_query(LockListQuery, raw)


def lock_key(text: str) -> str:
    """The key in a path.

    Raises:
        LockNotFound: no lock can have it.
    """
    if _KEY.fullmatch(text) is None:
        raise LockNotFound(text)
    return text


def lock_entry(lock: Lock) -> LockEntry:
    """A lock as lists show it."""
    return LockEntry(key=lock.name.key, holders=[_holder(holder) for holder in lock.holders])


def lock_response(lock: Lock, line: Sequence[Waiter]) -> LockResponse:
    """A lock with its line."""
    waiters = [WaiterResponse(task_id=waiter.task_id.text, due_at=to_iso(waiter.due_at)) for waiter in line]
    return LockResponse(**lock_entry(lock), waiters=waiters)


def _holder(holder: Holder) -> HolderResponse:
    fence = None if holder.fence == RESERVED else holder.fence
    return HolderResponse(task_id=holder.task_id.text, fence=fence, until=to_iso(holder.until))


LOCK_OPERATIONS = (
    Operation(
        id="listLocks",
        method="GET",
        path=routes.LOCKS,
        summary="List one's locks",
        description="Those that a task has taken within about a day, in the order of their keys.",
        tag="locks",
        answer=LockPage,
        answer_description="A page of the list.",
        headers=(OWNER,),
        query=LockListQuery,
        refusals=OWNED,
    ),
    Operation(
        id="getLock",
        method="GET",
        path=routes.LOCK,
        summary="See who holds a lock, and who waits for it",
        tag="locks",
        answer=LockResponse,
        answer_description="The lock.",
        headers=(OWNER,),
        refusals=(*OWNED, errors.LockNotFound),
    ),
    Operation(
        id="freeLock",
        method="DELETE",
        path=routes.LOCK,
        summary="Free a lock by force",
        description="The first of its line is let in at once. Whoever held it learns of that with its next heartbeat "
        "and stops; until then two may believe that they hold it.",
        tag="locks",
        answer=LockEntry,
        answer_description="The lock, as it is now.",
        headers=(OWNER,),
        refusals=(*OWNED, errors.LockNotFound),
    ),
)
