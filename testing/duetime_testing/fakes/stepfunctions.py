"""A fake of Step Functions with one standard state machine, its executions, and their task tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from duetime_testing.fakes.errors import Exceptions

if TYPE_CHECKING:
    from collections.abc import Callable

_ARN = "arn:aws:states:us-east-1:123456789012:execution"


class Status(StrEnum):
    """The status of an execution."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    ABORTED = "ABORTED"
    TIMED_OUT = "TIMED_OUT"


@dataclass
class Execution:
    """One execution.

    Attributes:
        over: called when the execution is ended from outside, for example by StopExecution.
    """

    arn: str
    name: str
    input: str
    began: int
    status: Status = Status.RUNNING
    stopped: int | None = None
    error: str = ""
    cause: str = ""
    output: str = ""
    over: Callable[[], None] = field(default=lambda: None)

    def end(self, status: Status, now: int, error: str = "", cause: str = "") -> None:
        """Record the end of the execution, if it is still running."""
        if self.status is Status.RUNNING:
            self.status, self.stopped, self.error, self.cause = status, now, error, cause


@dataclass
class Token:
    """A task token.

    Attributes:
        output: a tuple with the reported output; `None` until an output is reported.
        woken: called when an output is reported.
        waits: whether the state that created the token still waits for the output.
    """

    output: tuple[Any] | None = None
    woken: Callable[[], None] = field(default=lambda: None)
    waits: bool = True


class FakeStepFunctions:
    """A Step Functions client with in-memory executions.

    Attributes:
        now: returns the time in milliseconds.
        begin: called with each started execution.
        forgets: returns whether a result, although accepted, does not reach the state that waits for it.
    """

    def __init__(self, now: Callable[[], int] = lambda: 0) -> None:
        self.now = now
        self.begin: Callable[[Execution], None] = lambda _execution: None
        self.forgets: Callable[[], bool] = lambda: False
        self.exceptions = Exceptions()
        self.executions: dict[str, Execution] = {}
        self.tokens: dict[str, Token] = {}

    def running(self) -> list[Execution]:
        """The executions that have not ended."""
        return [each for each in self.executions.values() if each.status is Status.RUNNING]

    def token(self) -> str:
        """Create a task token."""
        made = f"token-{len(self.tokens) + 1}"
        self.tokens[made] = Token()
        return made

    def start_execution(self, *, stateMachineArn: str, name: str, input: str) -> dict[str, Any]:  # noqa: A002 - as boto3 has it
        """Start an execution; a repeated start of a running execution with the same input has no effect.

        Source: Step Functions API Reference, StartExecution.
        """
        arn = f"{_ARN}:{stateMachineArn.rpartition(':')[2]}:{name}"
        known = self.executions.get(arn)
        if known is not None:
            if known.status is not Status.RUNNING or known.input != input:
                raise self.exceptions.make("ExecutionAlreadyExists", "StartExecution", name)
            return {"executionArn": arn, "startDate": known.began}
        json.loads(input)
        made = self.executions[arn] = Execution(arn, name, input, self.now())
        self.begin(made)
        return {"executionArn": arn, "startDate": made.began}

    def describe_execution(self, *, executionArn: str) -> dict[str, Any]:
        """Describe an execution."""
        found = self._execution(executionArn, "DescribeExecution")
        ended = {} if found.stopped is None else {"stopDate": found.stopped}
        why = {name: text for name, text in (("error", found.error), ("cause", found.cause)) if text}
        told = {"executionArn": found.arn, "name": found.name, "status": str(found.status), "input": found.input}
        why |= {"output": found.output} if found.output else {}
        return {**told, "startDate": found.began, **ended, **why}

    def break_execution(self, arn: str, status: Status = Status.FAILED) -> None:
        """End an execution as Step Functions does after an error or a timeout."""
        found = self._execution(arn, "DescribeExecution")
        if found.status is Status.RUNNING:
            found.end(status, self.now(), "States.Runtime")
            found.over()

    def stop_execution(self, *, executionArn: str, error: str = "", cause: str = "") -> dict[str, Any]:
        """End an execution."""
        found = self._execution(executionArn, "StopExecution")
        if found.status is Status.RUNNING:
            found.end(Status.ABORTED, self.now(), error, cause)
            found.over()
        return {"stopDate": found.stopped}

    def send_task_success(self, *, taskToken: str, output: str) -> dict[str, Any]:
        """Report the success of a task to the state that waits with its token."""
        token = self.tokens.get(taskToken)
        if token is None:
            raise self.exceptions.make("InvalidToken", "SendTaskSuccess", taskToken)
        if not token.waits:
            # The token's task timed out or was already reported, or the execution has ended.
            raise self.exceptions.make("TaskTimedOut", "SendTaskSuccess", taskToken)
        if not self.forgets():
            token.output, token.waits = (json.loads(output),), False
            token.woken()
        return {}

    def _execution(self, arn: str, operation: str) -> Execution:
        try:
            return self.executions[arn]
        except KeyError:
            raise self.exceptions.make("ExecutionDoesNotExist", operation, arn) from None
