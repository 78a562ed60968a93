"""Further invocations of the trigger, through Lambda."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.domain.dispatch.cursors import GROUP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_lambda import LambdaClient

    from duetime.ports.runtime import Executor


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
