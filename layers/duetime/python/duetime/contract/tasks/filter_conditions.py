"""Conditions on tasks: the same in the query of a list and in the filter of an action."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from duetime.contract.http.request_model import Body
from duetime.contract.http.timestamps import ends_after
from duetime.contract.tasks.fields import At, ErrorType, ScheduleName, TaskType, WantedName
from duetime.domain.tasks.filters import Range, TaskFilter
from duetime.domain.tasks.states import State


def states_of(given: object) -> tuple[State, ...]:
    """The states that texts name, each once.

    Raises:
        ValueError: one of them names none, or there is none.
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
"""A state, or several."""
WantedErrorType = Annotated[
    ErrorType | None, Field(description="Only tasks whose last failed attempt ended with an error of this type.")
]
WantedSchedule = Annotated[ScheduleName | None, Field(description="Only runs of this schedule.")]
FinishedAfter = Annotated[At, Field(description="Only tasks finished at this time or later.")]
FinishedBefore = Annotated[At, ends_after("finished_after"), Field(description="Only tasks finished before this time.")]


class TaskConditions(Body):
    """Conditions that tasks in any state can meet."""

    type: Annotated[TaskType | None, Field(description="Only tasks of this type.")] = None
    name: Annotated[WantedName | None, Field(description="Only tasks of this name.")] = None
    due_after: Annotated[At, Field(description="Only tasks due at this time or later.")] = None
    due_before: Annotated[At, ends_after("due_after"), Field(description="Only tasks due before this time.")] = None
    created_after: Annotated[At, Field(description="Only tasks created at this time or later.")] = None
    created_before: Annotated[
        At, ends_after("created_after"), Field(description="Only tasks created before this time.")
    ] = None

    @property
    def conditions(self) -> TaskFilter:
        """These conditions by themselves."""
        return TaskFilter(
            type=self.type,
            name=self.name,
            due=Range(self.due_after, self.due_before),
            created=Range(self.created_after, self.created_before),
        )
