"""Sends heartbeats to an external monitor, which alerts if they stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from duetime.adapters.aws_clients import translated
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

    from duetime.ports.runtime import Telemetry

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
