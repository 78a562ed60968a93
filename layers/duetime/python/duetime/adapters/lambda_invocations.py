"""Invocations of duetime's own functions by others: the trigger's scans, bulk operations, the monitor's heartbeat."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from duetime.adapters.aws_clients import translated
from duetime.domain.bulk.operation import OPERATION
from duetime.domain.dispatch.cursors import GROUP
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_lambda import LambdaClient

    from duetime.domain.ids import TaskId
    from duetime.ports.runtime import Executor, Telemetry


@dataclass(frozen=True, slots=True)
class LambdaFanOut:
    """Invokes the trigger function again, once for each group, without waiting."""

    client: LambdaClient
    function: str
    executor: Executor

    def read_groups(self, groups: Sequence[int]) -> None:
        """Have each of these groups of shards read by an invocation of its own."""

        def invoke(group: int) -> None:
            event = json.dumps({GROUP: group}).encode()
            self.client.invoke(FunctionName=self.function, InvocationType="Event", Payload=event)

        with translated():
            self.executor.map(invoke, groups)


@dataclass(frozen=True, slots=True)
class LambdaBulkStarter:
    """`duetime.ports.stores.BulkStarter` over one function; without its name, timers alone start operations."""

    client: LambdaClient
    function: str
    telemetry: Telemetry

    def start(self, operation_id: TaskId) -> None:
        """Have an operation run now, without waiting for it."""
        if not self.function:
            return
        event = json.dumps({OPERATION: operation_id.text}).encode()
        try:
            with translated():
                self.client.invoke(FunctionName=self.function, InvocationType="Event", Payload=event)
        except (Unavailable, ClientError) as error:
            # The operation is stored: its request must not fail for this.
            self.telemetry.note("a bulk operation waits for its timer", operation=operation_id.text, error=str(error))


_SECONDS = 10
"""How long the monitor may take to answer; nobody waits for it but the egress function."""


@dataclass(frozen=True, slots=True)
class EgressHeartbeat:
    """`duetime.ports.runtime.Heartbeat` by the egress function, which may reach public addresses only.

    Attributes:
        function: the egress function.
        url: of the monitor; empty for none.
    """

    client: LambdaClient
    function: str
    url: str
    telemetry: Telemetry

    def send(self, beat_id: str) -> None:
        """Have the monitor's URL fetched, without waiting for it."""
        if not self.url or not self.function:
            return
        # A trigger without a monitor need not load what calls are made of.
        from duetime.adapters.targets.http_messages import Call, packed_call, packed_calls  # noqa: PLC0415

        call = Call(beat_id, "GET", self.url, {"User-Agent": "duetime-heartbeat"}, seconds=_SECONDS)
        payload = packed_calls([packed_call(call, call.seconds)])
        try:
            with translated():
                self.client.invoke(FunctionName=self.function, InvocationType="Event", Payload=payload)
        except (Unavailable, ClientError) as error:
            # The tick was good; the monitor will say that it has not heard of it.
            self.telemetry.count("heartbeats_unsent")
            self.telemetry.note("a heartbeat could not be sent", error=str(error))
            return
        self.telemetry.count("heartbeats")
