"""Pausing and resuming all schedules with some tags: the bodies of requests, and what they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from duetime.contract.http import request_json
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.schedules.action_bodies import Reason
from duetime.contract.tasks.fields import TagKey, TagValue
from duetime.domain.bulk.filter_action import BulkRequest, FilterAction
from duetime.domain.limits import MAX_JSON_DEPTH, MAX_TAGS
from duetime.domain.tasks.action_history import Attribution
from duetime.domain.tasks.filters import TaskFilter

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.bulk.operation import BulkKind


class ScheduleTagFilter(Body):
    """Which schedules."""

    tags: Annotated[
        dict[TagKey, TagValue],
        Field(
            min_length=1,
            max_length=MAX_TAGS,
            description="Only schedules whose `task` has all of these tags.",
            examples=[{"team": "dba"}],
            json_schema_extra={"additionalProperties": False},
        ),
    ]


class SchedulesByTag(Body):
    """Pauses, or resumes, the schedules with some tags."""

    filter: Annotated[ScheduleTagFilter, Field(description="Which schedules.")]
    reason: Annotated[Reason, Field(description="Why; shown with the schedules and their events.")] = ""


def read_schedules_by_tag(document: Document) -> SchedulesByTag:
    """The body of a request.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
    """
    return read_body(SchedulesByTag, document)


def request_of(body: SchedulesByTag, kind: BulkKind, text: bytes) -> BulkRequest:
    """What a body asks for."""
    action = FilterAction(wanted=TaskFilter(tags=body.filter.tags))
    return BulkRequest(kind, action, text, by=Attribution(reason=body.reason))


def read_stored(kind: BulkKind, text: bytes) -> BulkRequest:
    """What a body asks for that was accepted before, and is carried out later."""
    return request_of(read_schedules_by_tag(request_json.read(text.decode(), depth=MAX_JSON_DEPTH)), kind, text)
