"""The state machine that frames the runs of topologies, through Step Functions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.adapters.aws import translated

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

    from duetime.domain.ids import TaskId


@dataclass(frozen=True, slots=True)
class StepFunctionsMachine:
    """`duetime.ports.topologies.Machine` over one state machine.

    Attributes:
        arn: the state machine's; empty in a function that only answers tokens.
    """

    client: SFNClient
    arn: str

    def start(self, topology: TaskId, fence: int) -> None:
        """Start the run of an attempt; starting it again is starting it once.

        An execution's name is not given twice within 90 days (Source: Step Functions API Reference, StartExecution).
        """
        with translated():
            try:
                self.client.start_execution(
                    stateMachineArn=self.arn,
                    name=f"{topology}-{fence}",
                    input=json.dumps({"task_id": topology.text, "fence": fence}),
                )
            except self.client.exceptions.ExecutionAlreadyExists:
                return

    def answer(self, token: str) -> None:
        """Tell whoever waits with a token that its node has ended; one that waits no more is passed over."""
        gone = self.client.exceptions
        with translated():
            try:
                self.client.send_task_success(taskToken=token, output="{}")
            except (gone.TaskDoesNotExist, gone.TaskTimedOut, gone.InvalidToken):
                return
