"""The REST API for signals: the body, the response and the operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.bulk.operations import BulkOperationResponse
from duetime.contract.http import request_json
from duetime.contract.http.operation import KEY, Operation, Returns
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import compact
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.tasks.responses import Instant
from duetime.contract.tasks.target_fields import EventKey, EventName
from duetime.domain import errors
from duetime.domain.bulk import BulkKind, BulkRequest, FilterAction
from duetime.domain.limits import MAX_JSON_DEPTH, MAX_RESULT_BYTES, SIGNAL_LIFE
from duetime.domain.tasks.event_waits import Signal
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.times import DAY, to_iso

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.bulk import BulkOperation

NESTING = 1
"""Nesting levels around the payload in a request body."""


class SignalCreate(Body):
    """A message saying that an event has happened."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "order.paid", "key": "order-4711", "payload": {"amount": 17}}]}
    )

    name: EventName
    key: EventKey = ""
    payload: Annotated[
        Any,
        Field(
            description=f"The result of the tasks that wait for the event: any JSON, at most {MAX_RESULT_BYTES} bytes."
        ),
    ] = None


class SignalResponse(TypedDict):
    """A signal that has woken all waiting tasks."""

    id: Annotated[str, Field(description="Id of the signal.")]
    sent_at: Annotated[
        Instant,
        Field(
            description="When the signal was sent; tasks that are created later receive it only with "
            "`lookback_seconds`."
        ),
    ]
    woken: Annotated[
        int, Field(description="Number of tasks that this request has woken; they end within about a second.")
    ]


def signal_of(document: Document) -> Signal:
    """Decodes a signal.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(SignalCreate, document)
    payload = compact(body.payload)
    if len(payload) > MAX_RESULT_BYTES:
        raise FieldsInvalid([Fault("payload", f"is larger than {MAX_RESULT_BYTES} bytes", FaultCode.TOO_LONG)])
    return Signal(body.name, body.key, payload)


def request_of(signal: Signal, text: bytes) -> BulkRequest:
    """The request to wake the tasks that wait for a signal; `text` is the body of the user's request."""
    return BulkRequest(BulkKind.SIGNAL, FilterAction(TaskFilter()), text, signal=signal)


def read_stored(text: bytes) -> BulkRequest:
    """Decodes the stored body of an accepted signal."""
    document = request_json.read(text.decode(), depth=MAX_JSON_DEPTH + NESTING)
    return request_of(signal_of(document), text)


def signal_response(operation: BulkOperation) -> SignalResponse:
    """The response for a signal that has woken all tasks."""
    return SignalResponse(id=operation.id.text, sent_at=to_iso(operation.created_at), woken=operation.progress.affected)


SEND = Operation(
    "sendSignal",
    "POST /v1/signals",
    "Send a signal",
    Returns(SignalResponse, "The signal was sent."),
    description="Wakes all of the caller's waiting tasks with the target `wait_for_event` and this name and key. Each "
    f"task succeeds with the payload as its result. The signal is kept for {SIGNAL_LIFE // DAY} days for tasks that "
    "were created before the signal but start to wait later. If waking all tasks takes more than about a second, the "
    "response is 202, and a bulk operation wakes the rest. Repeating the request with the same idempotency key sends "
    "no second signal.",
    accepted=Returns(
        BulkOperationResponse,
        "A bulk operation wakes the rest in the background.",
        {"Location": "Path of the bulk operation."},
        status=202,
    ),
    body=SignalCreate,
    nesting=NESTING,
    headers=(KEY,),
    errors=(errors.KeyReused,),
)
