"""Query parameters for lists of tasks: filters, order and page."""

# This module does not use `from __future__ import annotations`, because pydantic would then parse each annotation's
# text at every start.

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from duetime.contract.http.operation import Flag, Parameters, whole_number
from duetime.contract.http.request_errors import Fault, FaultCode
from duetime.contract.http.request_model import Body
from duetime.contract.http.timestamps import ends_after
from duetime.contract.tasks.fields import (
    At,
    ErrorType,
    GroupId,
    Reason,
    ScheduleName,
    TaskType,
    WantedErrorText,
    WantedName,
)
from duetime.contract.tasks.responses import AppliedList, TaskCount
from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.limits import (
    MAX_BATCH,
    MAX_EXAMINED,
    MAX_EXPANDED_BYTES,
    MAX_EXPANDED_PAGE,
    MAX_PAGE,
    MAX_TAGS,
    MAX_WAIT_SECONDS,
)
from duetime.domain.tasks.filters import MatchCount, Range, TaskFilter
from duetime.domain.tasks.states import State
from duetime.domain.times import Millis, to_iso


def states_of(given: object) -> tuple[State, ...]:
    """Parses the names of states, without repeats.

    Raises:
        ValueError: a name is invalid, or no state is given.
    """
    texts: list[Any] = given if isinstance(given, list) else [given]
    try:
        states = tuple(sorted({State(str(text)) for text in texts}))
    except ValueError:
        states = ()
    if not states:
        raise ValueError(f"should be one or several of {', '.join(State)}")
    return states


_STATE_SCHEMA: dict[str, Any] = {"type": "string", "enum": [state.value for state in State]}
STATES_SCHEMA: dict[str, Any] = {"type": "array", "items": _STATE_SCHEMA, "minItems": 1}
States = Annotated[
    tuple[State, ...], BeforeValidator(states_of), WithJsonSchema({"anyOf": [_STATE_SCHEMA, STATES_SCHEMA]})
]
"""One or several states."""
WantedErrorType = Annotated[
    ErrorType | None, Field(description="Only tasks whose last failed attempt ended with an error of this type.")
]
WantedSchedule = Annotated[ScheduleName | None, Field(description="Only runs of this schedule.")]
FinishedAfter = Annotated[At, Field(description="Only tasks finished at this time or later.")]
FinishedBefore = Annotated[At, ends_after("finished_after"), Field(description="Only tasks finished before this time.")]


class TaskConditions(Body):
    """Filter conditions that tasks in any state can meet."""

    type: Annotated[TaskType | None, Field(description="Only tasks of this type.")] = None
    name: Annotated[WantedName | None, Field(description="Only tasks of this name.")] = None
    name_contains: Annotated[
        WantedName | None,
        Field(
            description="Only tasks with this text in their name, ignoring case; faster with `created_after`.",
            examples=["close"],
        ),
    ] = None
    error_contains: Annotated[
        WantedErrorText | None,
        Field(
            description="Only tasks with this text in their last error, `type: message`, ignoring case.",
            examples=["timed out"],
        ),
    ] = None
    due_after: Annotated[At, Field(description="Only tasks due at this time or later.")] = None
    due_before: Annotated[At, ends_after("due_after"), Field(description="Only tasks due before this time.")] = None
    created_after: Annotated[At, Field(description="Only tasks created at this time or later.")] = None
    created_before: Annotated[
        At, ends_after("created_after"), Field(description="Only tasks created before this time.")
    ] = None
    group: Annotated[GroupId | None, Field(description="Only members of this group.")] = None

    @property
    def conditions(self) -> TaskFilter:
        """The filter that these fields describe."""
        return TaskFilter(
            type=self.type,
            name=self.name,
            name_contains=self.name_contains,
            error_contains=self.error_contains,
            due=Range(self.due_after, self.due_before),
            created=Range(self.created_after, self.created_before),
            group=self.group,
        )


def _page_size(text: object) -> int:
    return whole_number(text, 1, MAX_PAGE)


PageSize = Annotated[
    int, BeforeValidator(_page_size), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_PAGE})
]
"""Maximum number of entries on a page."""


def _wait_seconds(text: object) -> int:
    return whole_number(text, 0, MAX_WAIT_SECONDS)


def parts_of(texts: object) -> list[str]:
    """Parses a parameter that may be repeated or contain comma-separated values."""
    return [part for text in texts for part in str(text).split(",")] if isinstance(texts, list) else []


def _states(texts: object) -> tuple[State, ...]:
    return states_of(parts_of(texts))


def _ids(given: object) -> tuple[TaskId, ...]:
    texts = parts_of(given)
    if len(texts) > MAX_BATCH:
        raise ValueError(f"names more than {MAX_BATCH} tasks")
    try:
        return tuple(map(_parsed, texts))
    except InvalidTaskId:
        raise ValueError("should be task ids, separated by commas") from None


def _parsed(text: str) -> TaskId:
    """Parses an id in upper or lower case, because Crockford's base 32 is case-insensitive."""
    return TaskId.parse(text.upper() if text.isascii() else text)


def _id(text: object) -> TaskId:
    try:
        return _parsed(str(text))
    except InvalidTaskId:
        raise ValueError("should be a task id") from None


def _tags(texts: object) -> dict[str, str]:
    pairs = [text.partition(":") for text in texts] if isinstance(texts, list) else []
    if not all(key and colon for key, colon, _ in pairs):
        raise ValueError("should be a key and a value, separated by a colon")
    tags = {key: value for key, _, value in pairs}
    if len(tags) != len(pairs) or len(pairs) > MAX_TAGS:
        raise ValueError(f"should name each of at most {MAX_TAGS} keys once")
    return tags


WaitSeconds = Annotated[
    int,
    BeforeValidator(_wait_seconds),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS}),
    Field(description="Maximum wait for the task to end, in seconds."),
]
_IDS_SCHEMA: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_BATCH}
_TAGS_SCHEMA: dict[str, Any] = {"type": "array", "items": {"type": "string", "pattern": ":"}, "maxItems": MAX_TAGS}
Expandable = Literal["payload", "result"]
_NO_FILTERS = {"expand", "limit", "next_token", "order", "order_by", "count"}
"""Names of parameters that are not filters."""


def _texts(value: object) -> list[str]:
    """A filter's value as strings, in the parameter's format."""
    match value:
        case int():
            return [to_iso(value)]
        case dict():
            return [f"{key}:{each}" for key, each in value.items()]
        case tuple():
            return [str(each) for each in value]
        case _:
            return [str(value)]


WantedTags = Annotated[dict[str, str], BeforeValidator(_tags), WithJsonSchema(_TAGS_SCHEMA)]
"""Tags as `key:value`, one per parameter."""


class ListedQuery(Parameters, TaskConditions):
    """Parameters of every list of tasks; several filters narrow the list together."""

    repeatable: ClassVar[frozenset[str]] = frozenset({"state", "tag"})

    state: Annotated[
        tuple[State, ...],
        BeforeValidator(_states),
        WithJsonSchema(STATES_SCHEMA),
        Field(description="Only tasks in one of these states. The parameter may be repeated."),
    ] = ()
    tag: Annotated[
        WantedTags,
        Field(description="Only tasks with this tag, as `key:value`; if repeated, a task must have all of the tags."),
    ] = Field(default_factory=dict)
    finished_after: FinishedAfter = None
    finished_before: FinishedBefore = None
    order: Annotated[
        Literal["asc", "desc"], Field(description="Earliest first (`asc`) or latest first (`desc`), by `order_by`.")
    ] = "desc"
    order_by: Annotated[
        Literal["due_at", "finished_at"] | None,
        Field(
            description="`due_at`: by the due time at creation. `finished_at`: by end time, ended tasks only; "
            "the default with `finished_after` or `finished_before`."
        ),
    ] = None
    limit: Annotated[PageSize, Field(description="Maximum number of tasks on a page.")] = MAX_PAGE
    count: Annotated[
        Flag,
        Field(
            description="Whether `applied` contains the number of matching tasks on all pages. At most "
            f"{MAX_EXAMINED} tasks are examined; with more, the number is a lower bound."
        ),
    ] = False
    next_token: Annotated[
        str | None, Field(description="`next_token` from the previous page. All other parameters must be the same.")
    ] = None

    @property
    def filter(self) -> TaskFilter:
        """The filter that these fields describe."""
        finished = Range(self.finished_after, self.finished_before)
        return replace(self.conditions, states=self.state, tags=self.tag, finished=finished)

    @property
    def by_end(self) -> bool:
        """Whether the list is ordered by end time."""
        if self.order_by is None:
            return self.finished_after is not None or self.finished_before is not None
        return self.order_by == "finished_at"

    @property
    def with_nodes(self) -> bool:
        """Whether topology nodes are also listed."""
        return False

    def scope(self, owner: str) -> str:
        """The scope for which the list's page tokens are valid."""
        return repr((owner, self.order, self.by_end, self.with_nodes, self.filter))

    @property
    def page_size(self) -> int:
        """Maximum number of tasks on a page."""
        return self.limit

    def applied(
        self,
        examined: int,
        after: TaskId | None,
        changed_at: Millis | None = None,
        count: MatchCount | None = None,
    ) -> AppliedList:
        """The filters of the list, and how much of the list was read.

        Args:
            examined: number of tasks that were read for the page.
            after: the last task that was read; `None` if there are no more.
            changed_at: time of the latest change that the lists contain; `None` if the page was read from records.
            count: how many tasks match; `None` if the count was not requested.
        """
        names = sorted(self.model_fields_set - _NO_FILTERS)
        filters = {name: _texts(getattr(self, name)) for name in names}
        return AppliedList(
            filters=filters,
            order=self.order,
            order_by="finished_at" if self.by_end else "due_at",
            limit=self.page_size,
            examined=examined,
            examined_to=None if after is None else to_iso(after.home),
            last_change_at=None if changed_at is None else to_iso(changed_at),
            count=None
            if count is None
            else TaskCount(tasks=count.tasks, is_exact=count.is_exact, cost_dollars=count.dollars),
        )


class TaskListQuery(ListedQuery):
    """Parameters of `GET /v1/tasks`."""

    repeatable: ClassVar[frozenset[str]] = frozenset({"expand", "ids", "state", "tag"})

    expand: Annotated[
        tuple[Expandable, ...],
        BeforeValidator(parts_of),
        Field(
            strict=False,
            description="Contents to include. The parameter may be repeated. A page then has at most "
            f"{MAX_EXPANDED_PAGE} tasks and {MAX_EXPANDED_BYTES} bytes of content.",
        ),
    ] = ()
    error_type: WantedErrorType = None
    schedule: WantedSchedule = None
    parent: Annotated[
        TaskId | None,
        BeforeValidator(_id),
        WithJsonSchema({"type": "string"}),
        Field(description="Only nodes of this topology, from all of its runs."),
    ] = None
    parent_task_id: Annotated[
        TaskId | None,
        BeforeValidator(_id),
        WithJsonSchema({"type": "string"}),
        Field(description="Only tasks that this task started: its children."),
    ] = None
    include_nodes: Annotated[
        Flag,
        Field(description="Whether to list topology nodes, too. Nodes are always listed with `state` or `parent`."),
    ] = False
    ids: Annotated[
        tuple[TaskId, ...],
        BeforeValidator(_ids),
        WithJsonSchema(_IDS_SCHEMA),
        Field(
            description="Only the tasks with these ids. The parameter may be repeated. Unknown ids are left out. "
            "Cannot be given with other parameters."
        ),
    ] = ()

    @property
    def filter(self) -> TaskFilter:
        """The filter that these fields describe."""
        return replace(
            super().filter,
            error_type=self.error_type,
            schedule=self.schedule,
            parent=self.parent,
            parent_task_id=self.parent_task_id,
        )

    @property
    def with_nodes(self) -> bool:
        """Whether topology nodes are also listed."""
        return self.include_nodes or self.parent is not None or bool(self.state)

    @property
    def page_size(self) -> int:
        """Maximum number of tasks on a page; lower with `expand`."""
        return min(self.limit, MAX_EXPANDED_PAGE) if self.expand else self.limit

    def contradictions(self) -> Sequence[Fault]:
        """Rejects `ids` with other parameters, and `expand` with a large `limit`."""
        faults = []
        if self.ids and len(self.model_fields_set) > 1:
            faults.append(Fault("ids", "cannot be given together with other parameters", FaultCode.CONFLICT))
        if self.expand and "limit" in self.model_fields_set and self.limit > MAX_EXPANDED_PAGE:
            reason = f"should be at most {MAX_EXPANDED_PAGE} together with expand"
            faults.append(Fault("limit", reason, FaultCode.OUT_OF_RANGE))
        return faults


class TaskQuery(Parameters):
    """Parameters of `GET /v1/tasks/{task_id}`."""

    wait_seconds: WaitSeconds = 0


class UpdateQuery(Parameters):
    """Parameters of `PATCH /v1/tasks/{task_id}`."""

    reason: Reason = ""


class EstimateQuery(Parameters):
    """Parameters of requests that create many tasks at once or over time."""

    estimate: Annotated[
        Flag,
        Field(description="Whether the response contains a cost estimate (`estimate`), which is not stored."),
    ] = False


class CreationQuery(EstimateQuery):
    """Parameters of `POST /v1/tasks`."""

    wait_seconds: WaitSeconds = 0
