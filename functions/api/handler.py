"""The REST API's Lambda function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

from duetime.composition import composed
from duetime.contract.http.problems import INTERNAL, kind_of
from duetime.contract.http.request_errors import MethodUnsupported, PathNotFound
from duetime.contract.http.routes import methods_of
from duetime.domain.errors import Unavailable

from . import (
    bulk_operations,
    calendars,
    dead_letters,
    filter_actions,
    health_and_openapi,
    leases,
    locks,
    requests,
    schedules,
    switches,
    task_control,
    tasks,
    topologies,
)
from .responses import problem_response

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler import Response
    from aws_lambda_powertools.event_handler.exceptions import NotFoundError
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
# Debugging output of the resolver would show callers our inside, whatever an environment variable says.
app = APIGatewayHttpResolver(debug=False)
app.include_router(filter_actions.router)
app.include_router(dead_letters.router)
app.include_router(bulk_operations.router)
app.include_router(tasks.router)
app.include_router(task_control.router)
app.include_router(leases.router)
app.include_router(locks.router)
app.include_router(switches.router)
app.include_router(schedules.router)
app.include_router(calendars.router)
app.include_router(topologies.router)
app.include_router(health_and_openapi.router)


def unknown_path(_: NotFoundError) -> Response[str]:
    """No route takes this path with this method.

    The resolver's own patterns refuse some characters that a path may have: such an id is nobody's.
    """
    allowed = methods_of(app.current_event.path)
    supported = not allowed or app.current_event.http_method in allowed
    return refused(PathNotFound() if supported else MethodUnsupported(allowed))


def refused(error: Exception) -> Response[str]:
    """Whatever a route raised, as a problem."""
    if kind_of(error) is INTERNAL:
        logger.error("a request failed unexpectedly", exc_info=error)
    elif isinstance(error, Unavailable):
        logger.warning("a request was turned away", exc_info=error)
    return problem_response(error, requests.instance(app.current_event.raw_event))


app.not_found(unknown_path)
app.exception_handler(Exception)(refused)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request; a line of metrics is written only if the request ended an attempt."""
    try:
        return app.resolve(event, context)
    finally:
        composed().telemetry.flush()
