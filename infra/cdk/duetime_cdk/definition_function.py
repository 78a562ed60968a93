"""Creates the Lambda function behind the constructs `Schedule` and `TopologyDefinition`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from duetime_cdk.definition_resources.handler import API_FUNCTION, AUTHENTICATION
from duetime_cdk.encryption import key_of
from duetime_cdk.lambda_function import UNTRACED
from duetime_cdk.removal_policies import removal_of
from duetime_cdk.source_folders import DEFINITION_RESOURCES

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment
    from duetime_cdk.layer_versions import LayerVersions

SECONDS = 90
"""Timeout in seconds, which allows three requests of at most 29 seconds each to the API function."""


class DefinitionFunction(Construct):
    """The function that CloudFormation invokes; it may invoke only the API function, on behalf of any owner."""

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, layers: LayerVersions, api: lambda_.IFunction
    ) -> None:
        super().__init__(scope, id_)
        log_group = logs.LogGroup(
            self,
            "Log",
            retention=logs.RetentionDays[environment.log_retention],
            encryption_key=key_of(self, environment),
            removal_policy=removal_of(environment),
        )
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(role)
        role.add_to_policy(iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[api.function_arn]))
        self.function = lambda_.Function(
            self,
            "Function",
            description=f"duetime {environment.name}: schedules and topology definitions of CloudFormation stacks",
            runtime=layers.runtime,
            architecture=layers.architecture,
            layers=layers.own,
            code=lambda_.Code.from_asset(str(DEFINITION_RESOURCES), exclude=["__pycache__"]),
            handler="handler.handler",
            timeout=Duration.seconds(SECONDS),
            memory_size=256,
            environment={API_FUNCTION: api.function_name, AUTHENTICATION: environment.authentication},
            role=role,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
        )
        synchronous = "CloudFormation waits for its response, and reports a failure itself"
        Validations.of(self.function).acknowledge(
            Acknowledgment(id="Serverless-LambdaTracing", reason=UNTRACED),
            Acknowledgment(id="Serverless-LambdaDLQ", reason=synchronous),
            Acknowledgment(id="Serverless-LambdaAsyncFailureDestination", reason=synchronous),
        )
