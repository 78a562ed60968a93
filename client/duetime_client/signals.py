"""`client.signals`: notifications of events, for the tasks that wait for them."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime_client.bulk_operations import BulkOperation
from duetime_client.io_operations import Request
from duetime_client.problems import document_of
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.responses import read
from duetime_client.session import IDEMPOTENCY_KEY, key_or_random
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    import httpx

SIGNALS = "/v1/signals"


class SentSignal(ResponseModel):
    """A signal that was sent.

    Attributes:
        woken: how many tasks the request has woken.
        operation_id: the bulk operation that wakes the other tasks in the background; `None` if all tasks are already
            woken.
    """

    id: str
    sent_at: datetime
    woken: int
    operation_id: str | None = None


class SignalOperations(Resource):
    """Signals."""

    @Operation
    def send(
        self, name: str, key: str = "", payload: object = None, *, idempotency_key: str | None = None
    ) -> Request[SentSignal]:
        """Wake all tasks that wait for the event with this name and key; the payload becomes their result.

        A retried request sends no second signal, because it carries an idempotency key (random by default).
        """
        body = {"name": name, "key": key, "payload": payload}
        headers = {IDEMPOTENCY_KEY: key_or_random(idempotency_key)}
        return Request("POST", SIGNALS, _signal, body=body, headers=headers, repeatable=True)


class Signals(SignalOperations, SyncResource):
    """`client.signals` of `Client`."""


class AsyncSignals(SignalOperations, AsyncResource):
    """`client.signals` of `AsyncClient`."""


def _signal(response: httpx.Response) -> SentSignal:
    document = document_of(response)
    if response.status_code != HTTPStatus.ACCEPTED:
        return read(SentSignal, response, document)
    operation = read(BulkOperation, response, document)
    return SentSignal(
        id=operation.id, sent_at=operation.created_at, woken=operation.affected, operation_id=operation.id
    )
