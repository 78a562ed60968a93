"""What a caller says of a task: the fields of the API's requests, as typed dictionaries.

A field that is absent is left to the API: its default when a task is created, its present value when one is changed.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NotRequired, Required, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class Priority(StrEnum):
    """Which of the tasks that are due at once goes first."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class RetryPolicy(TypedDict, total=False):
    """How often and how patiently a failed task is tried again."""

    max_attempts: int
    initial_seconds: float
    multiplier: float
    max_seconds: float


class HttpTarget(TypedDict):
    """An HTTP endpoint that is called when the task is due."""

    kind: Literal["http"]
    url: str
    phases: NotRequired[Sequence[str]]
    queries: NotRequired[Sequence[str]]


class LockSpec(TypedDict):
    """A named resource that at most `limit` tasks hold while they run, for all phases (`task`) or for `run` only."""

    key: str
    limit: NotRequired[int]
    scope: NotRequired[Literal["task", "run"]]


class PullTarget(TypedDict):
    """Workers of one's own that lease the tasks of a type; the deployment's settings declare which types."""

    kind: Literal["pull"]


class AwsTarget(TypedDict):
    """A resource of AWS that is called with the task; the deployment's settings say which ones may be.

    `mode` is for Lambda functions, `detail_type` for event buses.
    """

    kind: Literal["lambda", "sqs", "sns", "eventbridge", "step_functions"]
    arn: str
    mode: NotRequired[Literal["sync", "async"]]
    detail_type: NotRequired[str]


Target = HttpTarget | PullTarget | AwsTarget


class TaskFields(TypedDict, total=False):
    """Everything about a task that its creator chooses, except its type.

    `allow_unknown_type`, which only a creation takes, accepts a type whose handler a later deployment brings.
    """

    payload: object
    at: datetime | str
    delay_seconds: float
    priority: Priority | str
    retry: RetryPolicy
    timeout_seconds: int
    deadline_seconds: int
    rollback: bool
    lock: LockSpec | None
    target: Target
    callback_url: str | None
    tags: Mapping[str, str]
    name: str
    allow_unknown_type: bool


class NewTask(TaskFields, total=False):
    """One task of a batch."""

    type: Required[str]


class TaskFilter(TypedDict, total=False):
    """Which tasks to list, in which order; several fields narrow the list together, `parent` names a topology."""

    state: str
    parent: str
    type: str
    name: str
    tags: Mapping[str, str]
    due_from: datetime | str
    due_to: datetime | str
    order: Literal["asc", "desc"]
    ids: Sequence[str]


class BulkFilter(TypedDict, total=False):
    """Which tasks to cancel or to change; several fields narrow it together."""

    state: str
    type: str
    name: str
    tags: Mapping[str, str]
    due_from: datetime | str
    due_to: datetime | str


class DeadLetterFilter(TypedDict, total=False):
    """Which failed tasks to try again; several fields narrow it together, `error` is the class of the last error."""

    type: str
    name: str
    tags: Mapping[str, str]
    due_from: datetime | str
    due_to: datetime | str
    error: str


class ListedDeadLetters(DeadLetterFilter, total=False):
    """Which failed tasks to list, in which order."""

    order: Literal["asc", "desc"]


class BulkOptions(TypedDict, total=False):
    """How to go through many tasks: `all` says that an empty filter is meant; with `limit`, piece by piece."""

    all: bool
    order: Literal["asc", "desc"]
    limit: int
    per_second: float
    dry_run: bool


class TimeWithoutZone(ValueError):
    """A time was given that means a different moment in every time zone."""

    def __init__(self, moment: datetime) -> None:
        super().__init__(f"{moment.isoformat()} has no time zone: give it one, such as datetime.UTC")


def body_of(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields as the API's JSON carries them."""
    return {name: encoded(value) for name, value in fields.items()}


def query_of(filters: Mapping[str, object], limit: int | None) -> Iterator[tuple[str, str]]:
    """The filter as the parameters of a list's address."""
    for name, value in filters.items():
        yield from parameters_of(name, value)
    if limit is not None:
        yield "limit", str(limit)


def parameters_of(name: str, value: object) -> Iterable[tuple[str, str]]:
    """One filter as parameters: a tag each, the ids as one list."""
    match name, value:
        case "tags", dict() as tags:
            return [("tag", f"{key}:{tag}") for key, tag in tags.items()]
        case "ids", [*ids]:
            return [("ids", ",".join(map(str, ids)))]
        case _:
            return [(name, str(encoded(value)))]


def encoded(value: object) -> object:
    """A time as RFC 3339 text with its own offset, anything else as it is.

    Raises:
        TimeWithoutZone: The time does not say which moment it means.
    """
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise TimeWithoutZone(value)
    return value.isoformat()
