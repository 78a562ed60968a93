"""Events that create tasks: a bare task as in the API, or a task as the detail of an event in EventBridge's format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from duetime.contract.http import request_json
from duetime.contract.http.request_json import reject_invalid_values
from duetime.contract.http.timestamps import instant_of
from duetime.contract.http.validation_errors import validated
from duetime.contract.tasks.decoding import task_spec_at
from duetime.domain.limits import MAX_EVENT_NAME_LENGTH, MAX_JSON_DEPTH
from duetime.domain.tasks.creation import Origin
from duetime.domain.times import Millis

if TYPE_CHECKING:
    from duetime.domain.tasks.task_spec import TaskSpec

_DETAIL = "detail"
_Name = Annotated[str, Field(min_length=1, max_length=MAX_EVENT_NAME_LENGTH)]


class Event(BaseModel):
    """The relevant fields of an event besides its detail; other fields are ignored.

    Source: EventBridge User Guide, "Events".
    """

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    id: _Name
    source: _Name
    time: Annotated[Millis, BeforeValidator(instant_of)]


def task_of_event(body: str, delivered: Origin) -> tuple[TaskSpec, Origin]:
    """Decodes the task in a message, and the event from which it is created.

    Args:
        body: of the message.
        delivered: the message itself, which is the event for a bare task.

    Raises:
        FaultyRequest: the body is unreadable, or some fields are invalid.
    """
    document = request_json.read(body, depth=MAX_JSON_DEPTH + 1)
    value = document.value
    if not isinstance(value, dict) or _DETAIL not in value:
        return task_spec_at(value, (), document), delivered
    around = {name: part for name, part in value.items() if name in Event.model_fields}
    reject_invalid_values(around, document)
    event = validated(Event, around)
    return task_spec_at(value[_DETAIL], (_DETAIL,), document), Origin(event.source, event.id, event.time)
