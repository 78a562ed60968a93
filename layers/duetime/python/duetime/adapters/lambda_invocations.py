"""Invokes duetime's own functions to read groups of shards, start bulk operations, and send the monitor's heartbeat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from duetime.adapters.aws_clients import translated
from duetime.domain.bulk import OPERATION
from duetime.domain.dispatch.cursors import GROUP
from duetime.domain.errors import Unavailable
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_lambda import LambdaClient

    from duetime.domain.ids import TaskId
    from duetime.ports.runtime import Executor, Telemetry


@frozen
class LambdaFanOut:
    """Invokes the trigger function once for each group, without waiting for the invocations."""

    client: LambdaClient
    function: str
    executor: Executor

    def read_groups(self, groups: Sequence[int]) -> None:
        """Start a separate invocation to read each of these groups of shards."""

        def invoke(group: int) -> None:
            event = json.dumps({GROUP: group}).encode()
            self.client.invoke(FunctionName=self.function, InvocationType="Event", Payload=event)

        with translated():
            self.executor.map(invoke, groups)


@frozen
class LambdaBulkStarter:
    """The `duetime.ports.stores.BulkStarter` that invokes a function.

    If no function is named, only timers start operations.
    """

    client: LambdaClient
    function: str
    telemetry: Telemetry

    def start(self, operation_id: TaskId) -> None:
        """Start an operation asynchronously. If the request to start it is lost, the operation's timer starts it."""
        if not self.function:
            return
        event = json.dumps({OPERATION: operation_id.text}).encode()
        try:
            with translated():
                self.client.invoke(FunctionName=self.function, InvocationType="Event", Payload=event)
        except (Unavailable, ClientError) as error:
            # The operation is stored and has a timer, so the request must not fail because of this error.
            self.telemetry.note("a bulk operation waits for its timer", operation=operation_id.text, error=str(error))


_SECONDS = 10
"""Timeout for the monitor's response, in seconds. Only the egress function waits for the response."""


@frozen
class EgressHeartbeat:
    """Sends the `duetime.ports.runtime.Heartbeat` through the egress function, which can reach only public addresses.

    Attributes:
        function: the egress function's name.
        url: the monitor's URL; empty if there is no monitor.
    """

    client: LambdaClient
    function: str
    url: str
    telemetry: Telemetry

    def send(self, beat_id: str) -> None:
        """Make the egress function fetch the monitor's URL, without waiting for the response."""
        if not self.url or not self.function:
            return
        # The modules for HTTP calls are imported here, because a trigger without a monitor does not need them.
        from duetime.adapters.targets.http_messages import Call, packed_call, packed_calls  # noqa: PLC0415

        call = Call(beat_id, "GET", self.url, {"User-Agent": "duetime-heartbeat"}, seconds=_SECONDS)
        payload = packed_calls([packed_call(call, call.seconds)])
        try:
            with translated():
                self.client.invoke(FunctionName=self.function, InvocationType="Event", Payload=payload)
        except (Unavailable, ClientError) as error:
            # The tick itself succeeded, and the monitor will report the missing heartbeat.
            self.telemetry.count("heartbeats_unsent")
            self.telemetry.note("a heartbeat could not be sent", error=str(error))
            return
        self.telemetry.count("heartbeats")
