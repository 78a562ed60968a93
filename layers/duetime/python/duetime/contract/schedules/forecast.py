"""The REST API for the schedule forecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypedDict

from duetime.contract.http.operation import Operation, Parameters, Returns, whole_number
from duetime.contract.tasks.responses import Instant
from duetime.domain.schedules.forecast import (
    FORECAST_LENGTH,
    MAX_FORECAST_HOURS,
    MAX_FORECAST_SCHEDULES,
    MAX_LISTED_RUNS,
)
from duetime.domain.times import HOUR, SECOND, to_iso

if TYPE_CHECKING:
    from duetime.domain.schedules.forecast import Forecast

_MAX_NAMES = 5
_MAX_COLLISIONS = 20


class ForecastSchedule(TypedDict):
    """The number of runs that a schedule plans."""

    name: Annotated[str, Field(description="Name of the schedule.")]
    runs: Annotated[int, Field(description="Number of the schedule's runs in the period.")]


class ForecastPeriod(TypedDict):
    """The number of planned runs in a period."""

    start_at: Annotated[Instant, Field(description="When the period begins.")]
    runs: Annotated[int, Field(description="Number of runs of all schedules.")]
    schedules: Annotated[
        Sequence[ForecastSchedule],
        Field(description=f"The {_MAX_NAMES} schedules with the most runs, in descending order."),
    ]


class ForecastCollision(TypedDict):
    """A minute in which several schedules begin a run."""

    at: Annotated[Instant, Field(description="The minute.")]
    schedules: Annotated[Sequence[str], Field(description="Names of the schedules.")]


class ForecastResponse(TypedDict):
    """The runs that schedules plan."""

    period_seconds: Annotated[int, Field(description="Length of each period.")]
    periods: Annotated[
        Sequence[ForecastPeriod],
        Field(description="The periods in order. The first is the rest of the current period."),
    ]
    collisions: Annotated[
        Sequence[ForecastCollision],
        Field(
            description=f"The {_MAX_COLLISIONS} minutes in which the most schedules begin a run, in descending order. "
            f"Schedules with more than {MAX_LISTED_RUNS} runs do not count."
        ),
    ]
    is_complete: Annotated[
        bool,
        Field(
            description="Whether all schedules are counted. If false, only the first schedules by name are counted: "
            f"at most {MAX_FORECAST_SCHEDULES:,}, or as many as could be counted in time."
        ),
    ]


def forecast_response(found: Forecast) -> ForecastResponse:
    """The response for a forecast."""
    return ForecastResponse(
        period_seconds=found.period // SECOND,
        periods=[
            ForecastPeriod(
                start_at=to_iso(each.start),
                runs=sum(each.runs.values()),
                schedules=[
                    ForecastSchedule(name=name, runs=runs)
                    for name, runs in sorted(each.runs.items(), key=lambda one: (-one[1], one[0]))[:_MAX_NAMES]
                ],
            )
            for each in found.periods
        ],
        collisions=[
            ForecastCollision(at=to_iso(each.at), schedules=each.names) for each in found.collisions[:_MAX_COLLISIONS]
        ],
        is_complete=found.is_complete,
    )


def _hours(text: object) -> int:
    return whole_number(text, 1, MAX_FORECAST_HOURS)


class ForecastQuery(Parameters):
    """Parameters of `GET /v1/forecast`."""

    hours: Annotated[
        int,
        BeforeValidator(_hours),
        WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_FORECAST_HOURS}),
        Field(description="Number of hours to look ahead."),
    ] = FORECAST_LENGTH // HOUR


FORECAST = Operation(
    "getForecast",
    "GET /v1/forecast",
    "Get the planned runs",
    Returns(ForecastResponse, "The planned runs."),
    query=ForecastQuery,
    description="How many runs the active schedules plan per half hour (per three hours if `hours` is more than "
    f"{FORECAST_LENGTH // HOUR}), and in which minutes several schedules start runs. Permanent schedules have no "
    f"planned times. For a schedule with more than {MAX_LISTED_RUNS} runs in the forecast, occurrences that a "
    "calendar excludes are counted, too.",
)
