"""Handles the WebSocket API's events, which are opened and closed connections, and messages from clients."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from duetime.composition import composed, prepare
from duetime.composition.stream import WatchServices
from duetime.contract.http.problems import INTERNAL, kind_of
from duetime.contract.http.request_errors import CallerUnknown
from duetime.contract.live_updates.messages import (
    Message,
    MessageRefused,
    Ping,
    Subscribe,
    Unsubscribe,
    read_message,
)

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
TICKET = "ticket"


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:  # noqa: ARG001 - Lambda's signature
    """Handle one event. A connection opens only if the response has the status 200."""
    try:
        return {"statusCode": _status(event).value}
    except Exception:
        logger.exception("an event of a connection failed")
        return {"statusCode": HTTPStatus.INTERNAL_SERVER_ERROR.value}
    finally:
        composed().telemetry.flush()


def _status(event: dict[str, Any]) -> HTTPStatus:
    connection_id: str = event["requestContext"]["connectionId"]
    services = composed(WatchServices)
    match event["requestContext"]["eventType"]:
        case "CONNECT":
            ticket = (event.get("queryStringParameters") or {}).get(TICKET, "")
            return HTTPStatus.OK if services.connections.connect(ticket, connection_id) else HTTPStatus.UNAUTHORIZED
        case "DISCONNECT":
            services.connections.disconnect(connection_id)
        case _:
            # The gateway passes on a response only if the API declares a response, so a message is sent instead.
            services.sender.send(connection_id, _answer(connection_id, event.get("body") or ""))
    return HTTPStatus.OK


def _answer(connection_id: str, text: str) -> str:
    encoder = composed(WatchServices).encoder
    ref = None
    try:
        message = read_message(text)
        ref = message.ref
        return _done(connection_id, message)
    except MessageRefused as refusal:
        return encoder.error(refusal.ref, refusal.error)
    except Exception as error:
        if kind_of(error) is INTERNAL:
            logger.exception("a message failed unexpectedly")
        return encoder.error(ref, error)


def _done(connection_id: str, message: Message) -> str:
    """Carry out a client's message."""
    services = composed(WatchServices)
    if isinstance(message, Ping):
        return services.encoder.pong(message.ref)
    connection = services.connections.find(connection_id)
    if connection is None:
        raise CallerUnknown
    match message:
        case Subscribe():
            record = services.connections.subscribe(connection, message.ref, message.topic, message.task_filter)
            return services.encoder.snapshot(message.ref, record)
        case Unsubscribe():
            services.connections.unsubscribe(connection, message.ref)
            return services.encoder.unsubscribed(message.ref)


prepare(lambda: composed(WatchServices).connections)
