"""The REST API's Lambda function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from duetime.composition import composed, prepare
from duetime.composition.tasks import TaskServices
from duetime.contract.http.problems import INTERNAL, kind_of
from duetime.domain.errors import Unavailable
from duetime.domain.tracebacks import places_of

from . import requests, tasks  # noqa: F401 - the most frequent operations are imported at start
from .requests import OWNER_HEADER, header_of
from .responses import delivered, problem_response, unless_known
from .routing import respond, with_deprecation

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from .responses import Response

logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Answer one request, and write a line of metrics only if there is something to report."""
    try:
        response = with_deprecation(_response(event), event)
        if composed().settings.audit_log_group and _may_be_recorded(event):
            # Most requests are not recorded, so the module is imported only for recorded requests.
            from .audit import record  # noqa: PLC0415 - see the line above

            record(event, response)
        return delivered(response, event)
    finally:
        composed().telemetry.flush()


def _may_be_recorded(event: dict[str, Any]) -> bool:
    """Whether the audit log may record a request. Reads and task creations are recorded only if they name an owner."""
    is_usual = event["requestContext"]["http"]["method"] == "GET" or event["rawPath"].endswith("/v1/tasks")
    return not is_usual or header_of(event, OWNER_HEADER) is not None


def _response(event: dict[str, Any]) -> Response:
    try:
        return unless_known(respond(event), event)
    except Exception as error:
        if kind_of(error) is INTERNAL:
            # The error's message is not logged, because it may quote the request.
            logger.error("a request failed unexpectedly", extra={"error": places_of(error)})  # noqa: TRY400 - see above
        elif isinstance(error, Unavailable):
            logger.warning("a request was turned away", exc_info=error)
        return problem_response(error, requests.instance(event))


prepare(lambda: composed(TaskServices).creator)
