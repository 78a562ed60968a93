"""Handler for the forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.schedules import ScheduleServices
from duetime.contract.schedules.forecast import FORECAST, ForecastQuery, forecast_response
from duetime.contract.tasks.encoding import json_text
from duetime.domain.times import HOUR

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(FORECAST)
def get_forecast(request: Request[ForecastQuery]) -> Response:
    """Read how many runs are planned."""
    found = composed(ScheduleServices).preview.forecast(request.owner, request.query.hours * HOUR)
    return answer(json_text(forecast_response(found)))
