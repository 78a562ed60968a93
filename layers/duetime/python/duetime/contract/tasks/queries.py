"""The query of a list: which of one's tasks, in which order, from where on."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar
from urllib.parse import parse_qsl

from pydantic import BeforeValidator, Field, WithJsonSchema

from duetime.contract.http.json_paths import shown
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid, ParametersInvalid
from duetime.contract.http.validation_errors import validated
from duetime.contract.tasks.bodies import Body
from duetime.contract.tasks.conditions import (
    STATES_SCHEMA,
    FinishedAfter,
    FinishedBefore,
    TaskConditions,
    WantedErrorType,
    WantedSchedule,
    states_of,
)
from duetime.contract.tasks.fields import Reason  # noqa: TC001 - pydantic reads the annotations
from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.limits import MAX_BATCH, MAX_PAGE, MAX_TAGS, MAX_WAIT_SECONDS
from duetime.domain.tasks.filters import Range, TaskFilter
from duetime.domain.tasks.states import State  # noqa: TC001 - pydantic reads the annotations

if TYPE_CHECKING:
    from collections.abc import Sequence

P = TypeVar("P", bound="Parameters")
_MOST_PARAMETERS = 100
_WHOLE = re.compile(r"[0-9]{1,3}")


def _whole(text: object, least: int, most: int) -> int:
    number = int(text) if isinstance(text, str) and _WHOLE.fullmatch(text) else -1
    if not least <= number <= most:
        raise ValueError(f"should be a whole number from {least} to {most}")
    return number


def _page_size(text: object) -> int:
    return _whole(text, 1, MAX_PAGE)


PageSize = Annotated[
    int, BeforeValidator(_page_size), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_PAGE})
]
"""How many entries a page may have."""


def _wait_seconds(text: object) -> int:
    return _whole(text, 0, MAX_WAIT_SECONDS)


def _parts(texts: object) -> list[str]:
    """What a parameter names that may be repeated, and may name several with commas."""
    return [part for text in texts for part in str(text).split(",")] if isinstance(texts, list) else []


def _states(texts: object) -> tuple[State, ...]:
    return states_of(_parts(texts))


def _ids(given: object) -> tuple[TaskId, ...]:
    texts = _parts(given)
    if len(texts) > MAX_BATCH:
        raise ValueError(f"names more than {MAX_BATCH} tasks")
    try:
        return tuple(TaskId.parse(part) for part in texts)
    except InvalidTaskId:
        raise ValueError("should be task ids, separated by commas") from None


def _id(text: object) -> TaskId:
    try:
        return TaskId.parse(str(text))
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
    Field(
        description="How long to wait for the task to end, in seconds; the response is sent after that time at the "
        "latest."
    ),
]
_IDS_SCHEMA: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_BATCH}
_TAGS_SCHEMA: dict[str, Any] = {"type": "array", "items": {"type": "string", "pattern": ":"}, "maxItems": MAX_TAGS}


class Parameters(Body):
    """The parameters of a request's query.

    Attributes:
        repeatable: those that may be given more than once.
    """

    repeatable: ClassVar[frozenset[str]] = frozenset()

    def contradictions(self) -> Sequence[Fault]:
        """What is wrong with them together, though each by itself is right."""
        return ()


class ListedQuery(Parameters, TaskConditions):
    """Parameters of every list of tasks; several filters narrow the list together."""

    repeatable: ClassVar[frozenset[str]] = frozenset({"state", "tag"})

    state: Annotated[
        tuple[State, ...],
        BeforeValidator(_states),
        WithJsonSchema(STATES_SCHEMA),
        Field(description="Only tasks in one of these states; may be repeated."),
    ] = ()
    tag: Annotated[
        dict[str, str],
        BeforeValidator(_tags),
        WithJsonSchema(_TAGS_SCHEMA),
        Field(description="Only tasks with this tag, as `key:value`; if repeated, a task must have all of them."),
    ] = Field(default_factory=dict)
    finished_after: FinishedAfter = None
    finished_before: FinishedBefore = None
    order: Annotated[
        Literal["asc", "desc"], Field(description="By due time: earliest first (`asc`) or latest first (`desc`).")
    ] = "desc"
    limit: Annotated[PageSize, Field(description="Maximum number of tasks on a page.")] = MAX_PAGE
    next_token: Annotated[
        str | None, Field(description="`next_token` of the previous page; all other parameters must be the same.")
    ] = None

    @property
    def filter(self) -> TaskFilter:
        """The conditions that the listed tasks meet."""
        finished = Range(self.finished_after, self.finished_before)
        return replace(self.conditions, states=self.state, tags=self.tag, finished=finished)

    def scope(self, owner: str) -> str:
        """Which list this is, whatever the page: what a token must have been handed out for."""
        return repr((owner, self.order, self.filter))


class TaskListQuery(ListedQuery):
    """Parameters of `GET /v1/tasks`."""

    repeatable: ClassVar[frozenset[str]] = frozenset({"ids", "state", "tag"})

    error_type: WantedErrorType = None
    schedule: WantedSchedule = None
    parent: Annotated[
        TaskId | None,
        BeforeValidator(_id),
        WithJsonSchema({"type": "string"}),
        Field(description="Only nodes of this topology, in all of its runs."),
    ] = None
    ids: Annotated[
        tuple[TaskId, ...],
        BeforeValidator(_ids),
        WithJsonSchema(_IDS_SCHEMA),
        Field(
            description="Only the tasks with these ids; may be repeated. Unknown ids are left out. Cannot be given "
            "with other parameters."
        ),
    ] = ()

    @property
    def filter(self) -> TaskFilter:
        """The conditions that the listed tasks meet."""
        return replace(super().filter, error_type=self.error_type, schedule=self.schedule, parent=self.parent)

    def contradictions(self) -> Sequence[Fault]:
        """Tasks that are named by their ids are not filtered too."""
        alone = not self.ids or len(self.model_fields_set) == 1
        return () if alone else (Fault("ids", "cannot be given together with other parameters", FaultCode.CONFLICT),)


class TaskQuery(Parameters):
    """Parameters of `GET /v1/tasks/{task_id}`."""

    wait_seconds: WaitSeconds = 0


class UpdateQuery(Parameters):
    """Parameters of `PATCH /v1/tasks/{task_id}`."""

    reason: Reason = ""


class CreationQuery(Parameters):
    """Parameters of `POST /v1/tasks`."""

    wait_seconds: WaitSeconds = 0


def read_query(model: type[P], raw: str) -> P:
    """Read a query.

    Raises:
        ParametersInvalid: a parameter is unknown, repeated, or has no acceptable value.
    """
    pairs = _pairs(raw, model.repeatable)
    values: dict[str, object] = dict(pairs)
    values |= {name: [value for key, value in pairs if key == name] for name in model.repeatable & values.keys()}
    try:
        query = validated(model, values)
    except FieldsInvalid as refusal:
        raise ParametersInvalid(replace(each, reason=_of_parameter(each.reason)) for each in refusal.faults) from None
    if faults := query.contradictions():
        raise ParametersInvalid(faults)
    return query


def no_query(raw: str) -> None:
    """Refuse every parameter, by name.

    Raises:
        ParametersInvalid: there is one.
    """
    if pairs := _pairs(raw):
        raise ParametersInvalid(
            Fault(shown(name), "is not a known parameter: there are none here", FaultCode.UNKNOWN_FIELD)
            for name, _ in pairs
        )


def _pairs(raw: str, repeatable: frozenset[str] = frozenset()) -> Sequence[tuple[str, str]]:
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS)
    except UnicodeDecodeError:
        raise ParametersInvalid.of("query", "is not UTF-8", FaultCode.UNREADABLE) from None
    except ValueError:
        reason = f"has more than {_MOST_PARAMETERS} parameters"
        raise ParametersInvalid.of("query", reason, FaultCode.TOO_LONG) from None
    times = Counter(name for name, _ in pairs)
    repeated = [name for name, count in times.items() if count > 1 and name not in repeatable]
    if repeated:
        reason = "is given more than once, and takes one value"
        raise ParametersInvalid(Fault(shown(name), reason, FaultCode.DUPLICATE) for name in repeated)
    return pairs


def _of_parameter(reason: str) -> str:
    return reason.replace("is not a known field", "is not a known parameter")
