"""The REST API for ordered keys: keys in paths, responses and operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Parameters, Returns
from duetime.contract.tasks.queries import PageSize
from duetime.contract.tasks.responses import Instant
from duetime.contract.unique_keys import decoded_key
from duetime.domain.errors import OrderedKeyNotFound
from duetime.domain.limits import MAX_PAGE
from duetime.domain.tasks.states import State
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.domain.order_lines import OrderedKey
    from duetime.domain.tasks.task import Task


class OrderedTaskResponse(TypedDict):
    """A task in the queue for an ordered key."""

    task_id: str
    state: State
    due_at: Instant


class OrderedKeySummary(TypedDict):
    """An ordered key, as shown in lists."""

    key: str
    turn: Annotated[
        OrderedTaskResponse | None,
        Field(
            description="The task that the other tasks wait for, which runs, will run, or has failed and blocks the "
            "queue. Null if no task has the turn; the first task in the queue takes the turn when it is due."
        ),
    ]


class OrderedKeyLineResponse(OrderedKeySummary):
    """An ordered key with the first tasks in its queue, in order."""

    waiting: Annotated[list[OrderedTaskResponse], Field(description="The first 100 tasks behind `turn`.")]


class OrderedKeyPage(TypedDict):
    """A page of ordered keys."""

    ordered_keys: Annotated[list[OrderedKeySummary], Field(description="The keys, in order.")]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


class OrderedKeyListQuery(Parameters):
    """Parameters of `GET /v1/ordered-keys`."""

    limit: Annotated[PageSize, Field(description="Maximum number of keys on a page.")] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="`next_token` from the previous page.")] = None


def ordered_key(text: str) -> str:
    """Parses the key in a path.

    Raises:
        OrderedKeyNotFound: the text cannot be a key.
    """
    if (key := decoded_key(text)) is None:
        raise OrderedKeyNotFound(text)
    return key


def key_summary(found: OrderedKey) -> OrderedKeySummary:
    """An ordered key in a list."""
    return OrderedKeySummary(key=found.key, turn=None if found.turn is None else _task(found.turn))


def key_response(found: OrderedKey) -> OrderedKeyLineResponse:
    """An ordered key with its queue."""
    return OrderedKeyLineResponse(**key_summary(found), waiting=[_task(task) for task in found.waiting])


def _task(task: Task) -> OrderedTaskResponse:
    return OrderedTaskResponse(task_id=task.id.text, state=task.state, due_at=to_iso(task.due_at))


LIST = Operation(
    "listOrderedKeys",
    "GET /v1/ordered-keys",
    "List ordered keys",
    Returns(OrderedKeyPage, "A page of keys."),
    description="The `order` keys that your tasks have used within about a year, ordered by key.",
    query=OrderedKeyListQuery,
)
READ = Operation(
    "getOrderedKey",
    "GET /v1/ordered-keys/{ordered_key}",
    "Get an ordered key",
    Returns(OrderedKeyLineResponse, "The key and its queue."),
    description="The task that has the turn, and the first tasks that wait behind that task.",
    has_open_path=True,
)
