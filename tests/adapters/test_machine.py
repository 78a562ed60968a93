"""Tests how a topology's executions are started and read, with moto and with stubbed responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from duetime.adapters.step_functions import StepFunctionsStateMachine
from duetime.domain.errors import Unavailable
from tests.adapters.examples import numbered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_stepfunctions import SFNClient

TOPOLOGY = numbered(1)


@pytest.fixture
def client() -> SFNClient:
    """Return a moto client or a stub."""
    session = boto3.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")  # noqa: S106 - none
    return session.client("stepfunctions")


@pytest.fixture
def machine(client: SFNClient) -> Iterator[StepFunctionsStateMachine]:
    """Return a state machine whose executions run until they are stopped."""
    with mock_aws():
        made = client.create_state_machine(
            name="topologies",
            definition='{"StartAt": "End", "States": {"End": {"Type": "Succeed"}}}',
            roleArn="arn:aws:iam::123456789012:role/any",
        )
        yield StepFunctionsStateMachine(client, made["stateMachineArn"])


def test_an_execution_runs_until_it_is_stopped(machine: StepFunctionsStateMachine) -> None:
    """An execution is named after its topology and attempt, and runs until it is stopped."""
    assert not machine.is_running(TOPOLOGY, 1)
    machine.start(TOPOLOGY, 1)
    assert machine.is_running(TOPOLOGY, 1)
    assert not machine.is_running(TOPOLOGY, 2)
    assert not machine.is_running(numbered(2), 1)
    execution = machine.client.list_executions(stateMachineArn=machine.arn)["executions"][0]
    assert execution["name"] == f"{TOPOLOGY}-1"
    machine.client.stop_execution(executionArn=execution["executionArn"])
    assert not machine.is_running(TOPOLOGY, 1)


def test_an_execution_name_is_started_only_once(machine: StepFunctionsStateMachine) -> None:
    """An execution is not started again under the same name, even after it was stopped."""
    machine.start(TOPOLOGY, 1)
    machine.start(TOPOLOGY, 1)
    (execution,) = machine.client.list_executions(stateMachineArn=machine.arn)["executions"]
    machine.client.stop_execution(executionArn=execution["executionArn"])
    machine.start(TOPOLOGY, 1)
    assert not machine.is_running(TOPOLOGY, 1)


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"])
def test_an_execution_that_has_ended_is_not_running(client: SFNClient, status: str) -> None:
    """An execution that has ended is not running, and only an execution that a user stopped counts as aborted."""
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:topologies"
    with Stubber(client) as stub:
        name = f"arn:aws:states:us-east-1:123456789012:execution:topologies:{TOPOLOGY}-7"
        answer = {"executionArn": name, "stateMachineArn": arn, "status": status, "startDate": 0}
        stub.add_response("describe_execution", answer, {"executionArn": name})
        stub.add_response("describe_execution", answer, {"executionArn": name})
        assert not StepFunctionsStateMachine(client, arn).is_running(TOPOLOGY, 7)
        assert StepFunctionsStateMachine(client, arn).was_aborted(TOPOLOGY, 7) == (status == "ABORTED")


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_sending_a_token_that_nobody_awaits_is_not_an_error(client: SFNClient, code: str) -> None:
    """Sending a token is not an error if no execution is still waiting for the token."""
    with Stubber(client) as stub:
        stub.add_client_error("send_task_success", code)
        StepFunctionsStateMachine(client, "").answer("token")
        stub.assert_no_pending_responses()


def test_an_execution_with_an_unreadable_state_is_not_lost(client: SFNClient) -> None:
    """An execution whose state could not be read does not count as lost."""
    with Stubber(client) as stub:
        stub.add_client_error("describe_execution", "ThrottlingException", http_status_code=400)
        with pytest.raises(Unavailable):
            StepFunctionsStateMachine(client, "arn:aws:states:r:1:stateMachine:m").is_running(TOPOLOGY, 1)


def test_a_start_at_the_limit_of_executions_is_unavailable(client: SFNClient) -> None:
    """A start that Step Functions rejects because too many executions run can be repeated."""
    with Stubber(client) as stub:
        stub.add_client_error("start_execution", "ExecutionLimitExceeded")
        with pytest.raises(Unavailable):
            StepFunctionsStateMachine(client, "arn:aws:states:r:1:stateMachine:m").start(TOPOLOGY, 1)
