"""What may be asked of explanations."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from duetime.contract.http.query_parameters import Parameters
from duetime.contract.http.timestamps import instant_of
from duetime.contract.tasks.fields import TIME_SCHEMA
from duetime.domain.times import Millis


class ScheduleExplanationQuery(Parameters):
    """Parameters of `GET /v1/schedules/{name}/explain`."""

    at: Annotated[
        Millis | None,
        BeforeValidator(instant_of),
        WithJsonSchema(TIME_SCHEMA),
        Field(
            description="The time in question: a whole minute stands for all of that minute, others for one second. "
            "The latest past occurrence if left out."
        ),
    ] = None
