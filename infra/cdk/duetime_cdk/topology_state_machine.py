"""Defines the state machine that runs topologies.

The machine makes no decisions, because nodes start each other (see `duetime.services.topologies`). It starts and ends a
run, waits for each node, and retries failed states. An execution has at most 25,000 events, and an inline map 40
iterations at once (Source: Step Functions Developer Guide, quotas, Map state). Therefore, child executions wait for the
nodes of larger graphs, 40 nodes each.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from aws_cdk import Acknowledgment, ArnFormat, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from duetime.domain.limits import MAX_DEADLINE_SECONDS
from duetime.domain.operating_parameters import TOPOLOGY_MARGIN, WAITS_AT_ONCE
from duetime.domain.times import SECOND
from duetime_cdk.encryption import key_of
from duetime_cdk.lambda_function import UNTRACED
from duetime_cdk.removal_policies import VENDED_LOGS, removal_of
from duetime_cdk.service_principals import service_of_this_account

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_cdk import CfnElement

    from duetime_cdk.environments import Environment
    from duetime_cdk.lambda_function import LambdaFunction

HEARTBEAT_SECONDS = 43_200
"""If a node sends no signal for this number of seconds, the wait for the node restarts with a new token and a check of
the node. Each restart adds four events to the execution's history for each of forty nodes; with two restarts a day, the
longest execution stays within the limit. A lost token delays only the end of the execution, but neither the nodes nor
the end of the topology."""
LONGEST_SECONDS = MAX_DEADLINE_SECONDS + TOPOLOGY_MARGIN // SECOND
"""Maximum duration of a topology's attempt, and thus of its execution."""
CHILDREN_AT_ONCE = 10
"""Number of concurrent child executions that wait for the nodes of one large graph. If ten thousand waits started at
once, they would take the account's concurrency (1,000 by default; Source: AWS Lambda quotas) from the workers. No node
depends on these waits."""
_INVOKE = "arn:aws:states:::lambda:invoke"
_UNLIMITED_ATTEMPTS = 1_000_000
_RETRIES = {"IntervalSeconds": 1, "BackoffRate": 2, "MaxDelaySeconds": 60, "MaxAttempts": 12}
_BROKEN = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "BreakOff"}]
_RUN = {"task_id.$": "$.task_id", "fence.$": "$.fence"}


class TopologyMachine(Construct):
    """The state machine, with a role that may invoke one function and start its own children."""

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, function: LambdaFunction, table: str
    ) -> None:
        super().__init__(scope, id_)
        arn = function.live_arn
        self.role = iam.Role(self, "Role", assumed_by=service_of_this_account("states.amazonaws.com"))
        self.role.add_to_policy(iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[arn]))
        removal = removal_of(environment)
        retention = logs.RetentionDays[environment.log_retention]
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_type=sfn.StateMachineType.STANDARD,
            # Comment and timeout are part of the definition, because the CDK adds neither to a definition given as
            # text.
            definition_body=sfn.DefinitionBody.from_string(json.dumps(definition(arn))),
            role=self.role,
            tracing_enabled=environment.xray,
            logs=sfn.LogOptions(
                destination=logs.LogGroup(
                    self,
                    "Log",
                    log_group_name=f"{VENDED_LOGS}/states/{table}",
                    retention=retention,
                    encryption_key=key_of(self, environment),
                    removal_policy=removal,
                ),
                level=sfn.LogLevel.ALL,
                # Inputs and outputs contain task tokens, with which a reader of the log could end the wait for a node.
                include_execution_data=False,
            ),
        )
        self._grant_children()
        Validations.of(self.machine).acknowledge(
            Acknowledgment(id="AwsSolutions-SF2", reason=UNTRACED),
            Acknowledgment(id="Serverless-StepFunctionStateMachineXray", reason=UNTRACED),
        )
        Validations.of(self.role).acknowledge(
            Acknowledgment(
                id="AwsSolutions-IAM5[Resource::*]",
                reason="X-Ray's actions and those that deliver logs do not support resource-level permissions",
            )
        )

    def _grant_children(self) -> None:
        """Add a separate policy, because the role's own policy must exist before the machine, and cannot name it."""
        own = self.machine.state_machine_arn
        start = iam.PolicyStatement(actions=["states:StartExecution"], resources=[own])
        # Source: Step Functions Developer Guide, "IAM policies for using Distributed Map states".
        follow = iam.PolicyStatement(
            actions=["states:DescribeExecution", "states:StopExecution"], resources=[self._executions]
        )
        policy = iam.Policy(self, "StartsChildren", statements=[start, follow], roles=[self.role])
        self._acknowledge_executions(policy)

    @property
    def _executions(self) -> str:
        return Stack.of(self).format_arn(
            service="states",
            resource="execution",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
            resource_name=f"{self.machine.state_machine_name}:*",
        )

    def _acknowledge_executions(self, policy: iam.Policy) -> None:
        of_account = "arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>"
        Validations.of(policy).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::{of_account}:execution:<{self._logical_id}.Name>:*]",
                reason="Executions are named after topologies and attempts",
            )
        )

    def grant_start(self, function: LambdaFunction) -> None:
        """Let a function start executions, and check whether an execution is still running."""
        function.allow(["states:StartExecution"], [self.machine.state_machine_arn])
        policy = iam.Policy(
            self,
            "Describes",
            statements=[iam.PolicyStatement(actions=["states:DescribeExecution"], resources=[self._executions])],
            roles=[function.role],
        )
        self._acknowledge_executions(policy)

    def grant_task_success(self, by_name: Sequence[LambdaFunction]) -> None:
        """Let functions signal the ends of nodes, also to executions that a distributed map has started."""
        own = self.machine.state_machine_arn
        answer = iam.PolicyStatement(actions=["states:SendTaskSuccess"], resources=[own, f"{own}/*"])
        policy = iam.Policy(self, "Answers", statements=[answer], roles=[function.role for function in by_name])
        Validations.of(policy).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::<{self._logical_id}>/*]",
                reason="The executions of a distributed map are named after the machine",
            )
        )

    @property
    def _logical_id(self) -> str:
        return Stack.of(self).get_logical_id(cast("CfnElement", self.machine.node.default_child))


def definition(function_arn: str) -> dict[str, Any]:
    """The machine in the Amazon States Language.

    Args:
        function_arn: ARN of the function that executes the machine's states.
    """
    return {
        "Comment": "Plans a run of a topology, waits for its nodes, and ends it",
        "TimeoutSeconds": LONGEST_SECONDS,
        "StartAt": "Plan",
        "States": {**_planning(function_arn), **_waiting(function_arn), **_finishing(function_arn)},
    }


def _planning(function_arn: str) -> dict[str, Any]:
    """The states that create the run's nodes, and then choose how to wait for them by their number."""
    return {
        "Plan": {
            **_task(function_arn, {"state": "plan", **_RUN}),
            "ResultSelector": {
                "chunks.$": "$.Payload.chunks",
                "large.$": "$.Payload.large",
                "looks.$": "$.Payload.looks",
            },
            "ResultPath": "$.plan",
            "Catch": _BROKEN,
            "Next": "Size",
        },
        "Size": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.plan.large", "BooleanEquals": True, "Next": "ManyNodes"}],
            "Default": "Nodes",
        },
    }


def _waiting(function_arn: str) -> dict[str, Any]:
    """The states that wait for all nodes, in this execution if they are few, otherwise in child executions."""
    return {
        "Nodes": {**_nodes(function_arn, "$.plan.chunks[0]", "Node"), "Catch": _BROKEN, "Next": "Finish"},
        "ManyNodes": {**_chunks(function_arn), "Catch": _BROKEN, "Next": "Finish"},
    }


def _finishing(function_arn: str) -> dict[str, Any]:
    """The states that end the run, or record a permanent error."""
    return {
        "Finish": {
            **_task(function_arn, {"state": "finish", **_RUN, "looks.$": "$.plan.looks"}),
            "ResultSelector": {
                "over.$": "$.Payload.over",
                "again_after.$": "$.Payload.again_after",
                "looks.$": "$.Payload.looks",
            },
            "ResultPath": "$.plan",
            "Catch": _BROKEN,
            "Next": "Over",
        },
        "Over": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.plan.over", "BooleanEquals": True, "Next": "Done"}],
            "Default": "Later",
        },
        "Later": {"Type": "Wait", "SecondsPath": "$.plan.again_after", "Next": "Finish"},
        "Done": {"Type": "Succeed"},
        "BreakOff": {
            **_task(function_arn, {"state": "break_off", **_RUN, "reason.$": "$.error.Error"}),
            "ResultPath": None,
            "Next": "Broken",
        },
        "Broken": {"Type": "Fail", "Error": "RunBroken", "Cause": "See the execution's history"},
    }


def _task(function_arn: str, payload: Mapping[str, str], *, waits: bool = False) -> dict[str, Any]:
    """A state that invokes the function and retries any error."""
    return {
        "Type": "Task",
        "Resource": f"{_INVOKE}.waitForTaskToken" if waits else _INVOKE,
        "Parameters": {"FunctionName": function_arn, "Payload": dict(payload)},
        "Retry": [{"ErrorEquals": ["States.ALL"], **_RETRIES}],
    }


def _nodes(function_arn: str, items: str, name: str) -> dict[str, Any]:
    """A state that waits for some nodes concurrently.

    Args:
        function_arn: ARN of the function that is invoked for each wait.
        items: JSON path of the nodes' numbers.
        name: name of the waiting state, which must be unique within the machine.
    """
    waiting = {"state": "wait", **_RUN, "number.$": "$.number"}
    silent = {
        "ErrorEquals": ["States.HeartbeatTimeout"],
        "IntervalSeconds": 1,
        "MaxAttempts": _UNLIMITED_ATTEMPTS,
        "BackoffRate": 1,
    }
    wait = _task(function_arn, {**waiting, "token.$": "$$.Task.Token"}, waits=True)
    return {
        "Type": "Map",
        "ItemsPath": items,
        "MaxConcurrency": WAITS_AT_ONCE,
        "ItemSelector": {**_RUN, "number.$": "$$.Map.Item.Value"},
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "INLINE"},
            "StartAt": name,
            "States": {
                name: {
                    **wait,
                    "Retry": [silent, *wait["Retry"]],
                    "HeartbeatSeconds": HEARTBEAT_SECONDS,
                    "TimeoutSeconds": MAX_DEADLINE_SECONDS,
                    "ResultPath": None,
                    "End": True,
                }
            },
        },
        "ResultPath": None,
    }


def _chunks(function_arn: str) -> dict[str, Any]:
    """A state that starts child executions, each of which waits for as many nodes as an inline map can process."""
    return {
        "Type": "Map",
        "ItemsPath": "$.plan.chunks",
        "MaxConcurrency": CHILDREN_AT_ONCE,
        "ItemSelector": {**_RUN, "numbers.$": "$$.Map.Item.Value"},
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "Chunk",
            "States": {"Chunk": {**_nodes(function_arn, "$.numbers", "ChunkNode"), "End": True}},
        },
        "ResultPath": None,
    }
