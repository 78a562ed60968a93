"""Controls the state machine that runs topologies, through Step Functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

    from duetime.domain.ids import TaskId

_GOING = frozenset({"RUNNING", "PENDING_REDRIVE"})
"""Statuses that are not final (Source: Step Functions API Reference, DescribeExecution)."""
_ABORTED = "ABORTED"


@frozen
class StepFunctionsStateMachine:
    """The `duetime.ports.topologies.StateMachine` for one Step Functions state machine.

    Attributes:
        arn: the state machine's ARN; empty in a function that only reports by tokens.

    An execution is named after the topology and the attempt, so a second start of the same attempt has no effect.
    """

    client: SFNClient
    arn: str

    def start(self, topology: TaskId, fence: int) -> None:
        """Start the run of a topology's attempt; starting the run again changes nothing.

        An execution's name cannot be reused within 90 days (Source: Step Functions API Reference, StartExecution).
        """
        with translated():
            try:
                self.client.start_execution(
                    stateMachineArn=self.arn,
                    name=_name(topology, fence),
                    input=json.dumps({"task_id": topology.text, "fence": fence}),
                )
            except self.client.exceptions.ExecutionAlreadyExists:
                return

    def is_running(self, topology: TaskId, fence: int) -> bool:
        """Whether the run of an attempt is active. A run that Step Functions does not know has never started."""
        return self._status(topology, fence) in _GOING

    def was_aborted(self, topology: TaskId, fence: int) -> bool:
        """Whether a person stopped an attempt's run in the console or through the API. Duetime never stops runs."""
        return self._status(topology, fence) == _ABORTED

    def _status(self, topology: TaskId, fence: int) -> str | None:
        execution = self.arn.replace(":stateMachine:", ":execution:")
        with translated():
            try:
                answer = self.client.describe_execution(executionArn=f"{execution}:{_name(topology, fence)}")
            except self.client.exceptions.ExecutionDoesNotExist:
                return None
        return answer["status"]

    def answer(self, token: str) -> None:
        """Report the end of a node with its token; if no execution waits for the token, the call does nothing."""
        gone = self.client.exceptions
        with translated():
            try:
                self.client.send_task_success(taskToken=token, output="{}")
            except (gone.TaskDoesNotExist, gone.TaskTimedOut, gone.InvalidToken):
                return


def _name(topology: TaskId, fence: int) -> str:
    return f"{topology}-{fence}"
