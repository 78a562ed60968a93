"""Query parameters for lists of schedules, occurrences and runs."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from duetime.contract.http.query_parameters import Parameters
from duetime.contract.http.request_errors import FaultCode, ParametersInvalid
from duetime.contract.http.timestamps import ends_after, instant_of
from duetime.contract.tasks.fields import TIME_SCHEMA, Reason
from duetime.contract.tasks.queries import PageSize, parts_of
from duetime.domain.limits import MAX_OCCURRENCES, MAX_PAGE
from duetime.domain.schedules.runs import RunStatus
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.times import LAST_INSTANT, Millis

LISTED = 20
"""Default number of occurrences in a list."""
_WHOLE = re.compile(r"[0-9]{1,4}")


def _count(text: object) -> int:
    number = int(text) if isinstance(text, str) and _WHOLE.fullmatch(text) else 0
    if not 1 <= number <= MAX_OCCURRENCES:
        raise ValueError(f"should be a whole number from 1 to {MAX_OCCURRENCES}")
    return number


def _statuses(texts: object) -> tuple[RunStatus, ...]:
    try:
        found = tuple(sorted({RunStatus(part) for part in parts_of(texts)}))
    except ValueError:
        found = ()
    if not found:
        raise ValueError(f"should be one or several of {', '.join(RunStatus)}")
    return found


_Instant = Annotated[Millis | None, BeforeValidator(instant_of), WithJsonSchema(TIME_SCHEMA)]


class ScheduleListQuery(Parameters):
    """Parameters of `GET /v1/schedules`."""

    state: Annotated[ScheduleState | None, Field(strict=False, description="Only schedules in this state.")] = None
    limit: Annotated[PageSize, Field(description="Maximum number of schedules on a page.")] = MAX_PAGE
    next_token: Annotated[
        str | None, Field(description="`next_token` of the previous page; `state` must be the same.")
    ] = None

    def scope(self, owner: str) -> str:
        """Scope of the list's page tokens."""
        return repr((owner, "schedules", self.state))


class OccurrencesQuery(Parameters):
    """Parameters of `GET /v1/schedules/{name}/occurrences`."""

    scheduled_after: Annotated[
        _Instant, Field(description="Only occurrences at this time or later; now if left out.")
    ] = None
    scheduled_before: Annotated[
        _Instant, ends_after("scheduled_after"), Field(description="Only occurrences before this time.")
    ] = None
    limit: Annotated[
        int,
        BeforeValidator(_count),
        WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_OCCURRENCES}),
        Field(description="Maximum number of occurrences."),
    ] = LISTED

    def bounds(self, now: Millis) -> tuple[Millis, Millis]:
        """The first and the last moment of the list.

        Raises:
            ParametersInvalid: the last moment is past, and the list starts now.
        """
        start = now if self.scheduled_after is None else self.scheduled_after
        end = LAST_INSTANT if self.scheduled_before is None else self.scheduled_before - 1
        if end < start:
            reason = "should be in the future, where scheduled_after is left out: the list begins now"
            raise ParametersInvalid.of("scheduled_before", reason, FaultCode.CONFLICT)
        return start, end


class RunListQuery(Parameters):
    """Parameters of `GET /v1/schedules/{name}/runs`."""

    repeatable: ClassVar[frozenset[str]] = frozenset({"status"})

    status: Annotated[
        tuple[RunStatus, ...],
        BeforeValidator(_statuses),
        WithJsonSchema({"type": "array", "items": {"type": "string", "enum": [each.value for each in RunStatus]}}),
        Field(description="Only runs of one of these; may be repeated."),
    ] = ()
    scheduled_after: Annotated[
        _Instant,
        Field(
            description="Only runs that were scheduled for this time or later; the schedule's creation if left out. "
            "Runs by request and of backfills by when they were due."
        ),
    ] = None
    scheduled_before: Annotated[
        _Instant,
        ends_after("scheduled_after"),
        Field(description="Only runs that were scheduled for a time before it."),
    ] = None
    limit: Annotated[
        PageSize,
        Field(description="Maximum number of tasks on a page; occurrences without a task come in addition."),
    ] = MAX_PAGE
    next_token: Annotated[
        str | None, Field(description="`next_token` of the previous page; all other parameters must be the same.")
    ] = None

    def scope(self, owner: str, name: str) -> str:
        """Scope of the list's page tokens."""
        return repr((owner, "runs", name, self.scheduled_after, self.scheduled_before, self.status))


class ScheduleUpdateQuery(Parameters):
    """Parameters of `PATCH /v1/schedules/{name}`."""

    reason: Annotated[Reason, Field(description="Why; shown with the events of the schedule.")] = ""
