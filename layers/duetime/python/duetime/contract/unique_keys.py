"""The REST API for unique keys: keys in paths, responses and operations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Parameters, Returns
from duetime.contract.tasks.queries import PageSize
from duetime.contract.tasks.responses import Instant
from duetime.domain.errors import UniqueKeyNotFound
from duetime.domain.limits import MAX_PAGE, MAX_UNIQUE_KEY_LENGTH
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Until, unique_of
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task

UNIQUE_KEY_PATTERN = rf"^[!-~]{{1,{MAX_UNIQUE_KEY_LENGTH}}}$"
_KEY = re.compile(UNIQUE_KEY_PATTERN)
_KEPT_ESCAPE = "%25"
"""The only escape sequence in a path that the gateway does not decode (Source: observed in `rawPath` of HTTP APIs)."""


class UniqueKeyHolderResponse(TypedDict):
    """The task that holds a unique key."""

    task_id: str
    state: State
    due_at: Instant


class HeldUniqueKeyResponse(TypedDict):
    """A unique key that a task holds."""

    key: str
    kind: Annotated[Literal["unique", "debounce"], Field(description="The field that set the task's key.")]
    until: Annotated[Until, Field(description="Whether the task holds the key until it starts or until it ends.")]
    holders: Annotated[list[UniqueKeyHolderResponse], Field(description="The task that holds the key.")]


class UniqueKeyPage(TypedDict):
    """A page of unique keys."""

    unique_keys: Annotated[
        list[HeldUniqueKeyResponse], Field(description="The keys, ordered by the due times of their tasks.")
    ]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


class UniqueKeyListQuery(Parameters):
    """Parameters of `GET /v1/unique-keys`."""

    limit: Annotated[PageSize, Field(description="Maximum number of keys on a page.")] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="`next_token` from the previous page.")] = None


def unique_key(text: str) -> str:
    """Parses the key in a path.

    Raises:
        UniqueKeyNotFound: the text cannot be a key.
    """
    if (key := decoded_key(text)) is None:
        raise UniqueKeyNotFound(text)
    return key


def decoded_key(text: str) -> str | None:
    """A key of visible ASCII characters, as the caller wrote it; `None` if the text cannot be a key."""
    key = text.replace(_KEPT_ESCAPE, "%")
    return key if _KEY.fullmatch(key) else None


def key_response(task: Task) -> HeldUniqueKeyResponse:
    """The response for the unique key that a task holds."""
    unique = unique_of(task.unique, task.debounce)
    if unique is None:
        raise UniqueKeyNotFound("")
    holder = UniqueKeyHolderResponse(task_id=task.id.text, state=task.state, due_at=to_iso(task.due_at))
    kind: Literal["unique", "debounce"] = "unique" if task.debounce is None else "debounce"
    return HeldUniqueKeyResponse(key=unique.key, kind=kind, until=unique.until, holders=[holder])


LIST = Operation(
    "listUniqueKeys",
    "GET /v1/unique-keys",
    "List unique keys",
    Returns(UniqueKeyPage, "A page of keys."),
    description=(
        "The `unique` and `debounce` keys that your tasks hold, ordered by the due times of these tasks. A page "
        "reads up to 1,000 open tasks, so it can be short or empty and still have a next page."
    ),
    query=UniqueKeyListQuery,
)
READ = Operation(
    "getUniqueKey",
    "GET /v1/unique-keys/{unique_key}",
    "Get a unique key",
    Returns(HeldUniqueKeyResponse, "The key and the task that holds it."),
    description="The response is 404 if no task holds the key.",
    has_open_path=True,
)
