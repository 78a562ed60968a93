from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from duetime.domain.limits import MAX_DEADLINE_SECONDS
from duetime.domain.operating_parameters import TOPOLOGY_MARGIN, WAITS_AT_ONCE
from duetime.domain.times import HOUR, SECOND
from duetime.domain.topologies.watchdog_times import pause_before_check
from duetime_testing.fakes.stepfunctions import FakeStepFunctions, Status
from duetime_testing.simulation.state_machine import StateFailed, StateMachine
from duetime_testing.simulation.virtual_time import VirtualTime

if TYPE_CHECKING:
    from collections.abc import Mapping

ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:topologies"
BEGAN = 1_000_000
HISTORY = 25_000
"""The maximum number of events in an execution's history.

Source: Step Functions Developer Guide, "Avoid reaching the history quota".
"""
ROOM = 5_000
"""The events that are left for errors and retries; forty waits need 1,440 for twelve attempts of three events each."""
LONGEST = MAX_DEADLINE_SECONDS * SECOND + TOPOLOGY_MARGIN


class Frame:
    """The deployed state machine, with a function whose responses the test determines.

    Attributes:
        asked: the payloads with which the function was called, in order.
        broken: how many more calls of the function fail.
    """

    def __init__(self) -> None:
        self.time = VirtualTime(BEGAN)
        self.states = FakeStepFunctions(self.time.now)
        self.machine = StateMachine(self.time, self.states, self._invoke)
        self.states.begin = self.machine.begin
        self.asked: list[Mapping[str, Any]] = []
        self.broken = 0
        self.answers: dict[str, Any] = {
            "plan": {"chunks": [[0, 1]], "large": False, "looks": 0},
            "finish": {"over": True, "again_after": 0, "looks": 1},
        }

    def _invoke(self, payload: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        self.asked.append(payload)
        if self.broken:
            self.broken -= 1
            raise StateFailed("Lambda.Unknown")
        answer = self.answers.get(payload["state"], {})
        return answer(payload) if callable(answer) else answer

    def start(self, name: str = "one") -> str:
        """Start an execution, and return its ARN."""
        given = json.dumps({"task_id": "t", "fence": 1})
        return str(self.states.start_execution(stateMachineArn=ARN, name=name, input=given)["executionArn"])

    def status(self, arn: str) -> str:
        """The status of an execution."""
        return str(self.states.describe_execution(executionArn=arn)["status"])

    def did(self) -> list[str]:
        """The state machine's states that called the function."""
        return [payload["state"] for payload in self.asked]


def test_a_run_waits_for_its_tokens_and_finishes() -> None:
    """An execution plans the topology, waits once for each node, and finishes; the tokens may return in any order."""
    frame = Frame()
    arn = frame.start()
    frame.time.run_until(BEGAN + SECOND)
    assert frame.did() == ["plan", "wait", "wait"]
    assert [payload["number"] for payload in frame.asked[1:]] == [0, 1]
    for payload in reversed(frame.asked[1:]):
        assert frame.status(arn) == Status.RUNNING
        frame.states.send_task_success(taskToken=payload["token"], output="{}")
        frame.time.run_until(frame.time.now() + SECOND)
    assert frame.did()[3:] == ["finish"]
    assert frame.status(arn) == Status.SUCCEEDED


def test_the_events_of_an_execution_are_counted() -> None:
    """The events of an execution are counted as Step Functions counts them.

    The execution's begin and end have 2 events, the plan 5, the size check 2, the map 4, each of the two nodes
    2 + 2 + 4, the finish 5, its choice 2, and the success 2.
    """
    frame = Frame()
    frame.start()
    frame.time.run_until(BEGAN + SECOND)
    for payload in frame.asked[1:]:
        frame.states.send_task_success(taskToken=payload["token"], output="{}")
    frame.time.run_until(BEGAN + HOUR)
    assert frame.machine.events == 2 + 5 + 2 + 4 + 2 * (2 + 2 + 4) + 5 + 2 + 2


@pytest.mark.parametrize("waiting", [1.0, 0.5, 0.0])
def test_the_longest_execution_has_fewer_events_than_allowed(waiting: float) -> None:
    """An execution for the longest topology, with forty waits and a rollback, has fewer events than allowed."""
    frame = Frame()
    until = BEGAN + LONGEST
    frame.answers["plan"] = {"chunks": [list(range(WAITS_AT_ONCE))], "large": False, "looks": 0}

    def finish(payload: Mapping[str, Any]) -> Mapping[str, Any]:
        again_after = pause_before_check(payload["looks"], frame.time.now() - BEGAN)
        return {"over": frame.time.now() >= until, "again_after": again_after, "looks": payload["looks"] + 1}

    frame.answers["finish"] = finish
    arn = frame.start()
    frame.time.run_until(BEGAN + round(waiting * LONGEST))
    for payload in [each for each in frame.asked if each["state"] == "wait"][-WAITS_AT_ONCE:]:
        frame.states.send_task_success(taskToken=payload["token"], output="{}")
    frame.time.run_until(until + 2 * HOUR)
    assert frame.status(arn) == Status.SUCCEEDED
    assert frame.machine.events < HISTORY - ROOM, frame.machine.events


def test_a_failing_function_is_retried_until_the_execution_fails() -> None:
    """Two failures of the function cause three seconds of retries, and after too many failures the execution fails."""
    frame = Frame()
    frame.broken = 2
    frame.start()
    frame.time.run_until(BEGAN + 4 * SECOND)
    assert frame.did() == ["plan"] * 3 + ["wait"] * 2
    broken = Frame()
    broken.broken = 13
    arn = broken.start()
    broken.time.run_until(BEGAN + HOUR)
    assert broken.did() == ["plan"] * 13 + ["break_off"]
    assert broken.status(arn) == Status.FAILED


def test_a_wait_without_a_response_restarts_with_another_token() -> None:
    """A wait without a response within the heartbeat time begins again with another token, and the first is invalid."""
    frame = Frame()
    frame.start()
    frame.time.run_until(BEGAN + 13 * HOUR)
    first, *_, last = (payload["token"] for payload in frame.asked if payload.get("number") == 0)
    assert first != last
    with pytest.raises(ClientError, match="TaskTimedOut"):
        frame.states.send_task_success(taskToken=first, output="{}")
    frame.states.send_task_success(taskToken=last, output="{}")


def test_an_execution_is_started_once_and_may_be_stopped() -> None:
    """Starting a running execution again by its name returns the same execution.

    The name of an ended execution is refused, and a stopped execution does nothing more.
    """
    frame = Frame()
    arn = frame.start()
    assert frame.start() == arn
    frame.time.run_until(BEGAN + SECOND)
    frame.states.stop_execution(executionArn=arn)
    assert frame.status(arn) == Status.ABORTED
    with pytest.raises(ClientError, match="ExecutionAlreadyExists"):
        frame.start()
    with pytest.raises(ClientError, match="TaskTimedOut"):
        frame.states.send_task_success(taskToken=frame.asked[1]["token"], output="{}")
    with pytest.raises(ClientError, match="ExecutionDoesNotExist"):
        frame.status(f"{arn}-other")
