"""Throttles a stack in the places where AWS would throttle it, at the gateway and at the table."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from bench.aws_proxy import ProxyServer, proxied
from duetime_local.emulator.http_throttle import Bucket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime_local.stack import Stack

_THROTTLED = json.dumps(
    {
        "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
        "message": "The level of configured provisioned throughput for the table was exceeded.",
    }
).encode()


@contextmanager
def narrow_gateway(over: Stack, rate: float, burst: int) -> Iterator[None]:
    """Limit the request rate and burst of the API's stage within the context."""
    # The emulator's `client` method has types only for services that other code uses.
    gateway: Any = cast("Any", over.emulator).client("apigatewayv2")
    place = {"ApiId": over.deployment.outputs["ApiId"], "StageName": "$default"}
    before = gateway.get_stage(**place)["DefaultRouteSettings"]
    narrow = {"ThrottlingRateLimit": rate, "ThrottlingBurstLimit": burst}
    gateway.update_stage(**place, DefaultRouteSettings=narrow)
    try:
        yield
    finally:
        gateway.update_stage(**place, DefaultRouteSettings=before)


@contextmanager
def table_of_any_width(over: Stack) -> Iterator[Callable[[float], None]]:
    """Yield a function that makes the table throttle the API function's calls above a given rate.

    The API function restarts, because the address of its table changes, so warm it up before throttling.
    """
    functions = over.emulator.client("lambda")
    name = over.deployment.outputs["ApiFunctionName"]
    variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    with proxied(_NarrowTable, over.emulator.port) as server:
        narrow = {**variables, "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{server.server_port}"}
        functions.update_function_configuration(FunctionName=name, Environment={"Variables": narrow})
        try:
            yield server.narrow
        finally:
            functions.update_function_configuration(FunctionName=name, Environment={"Variables": variables})


class _NarrowTable(ProxyServer):
    """A proxy that puts the emulator's DynamoDB behind a rate limit."""

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 - as in the base class
        super().__init__(*given)
        self._lock = threading.Lock()
        self._bucket = Bucket()
        self._rate = float("inf")

    def narrow(self, rate: float) -> None:
        """Limit the calls per second from now on."""
        with self._lock:
            self._bucket, self._rate = Bucket(), rate

    def answer(self, _operation: str) -> tuple[int, dict[str, str], bytes] | None:
        """Return a throttling error for a call that exceeds the limit."""
        with self._lock:
            is_free = self._rate == float("inf")
            if is_free or self._bucket.admits(self._rate, self._rate, time.monotonic()):
                return None
        return HTTPStatus.BAD_REQUEST, {"Content-Type": "application/x-amz-json-1.0"}, _THROTTLED
