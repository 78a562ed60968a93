"""Starting the function that runs bulk operations, through Lambda."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from duetime.adapters.aws_clients import translated
from duetime.domain.bulk.operation import OPERATION
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

    from duetime.domain.ids import TaskId
    from duetime.ports.runtime import Telemetry


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
