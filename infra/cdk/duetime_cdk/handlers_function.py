"""Gives a function its handlers' environment: variables, secrets, network, layers and policies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aws_cdk import Acknowledgment, Annotations, ArnFormat, Stack, Token, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from duetime.environment_variables import Variable
from duetime.handlers.secrets import PARAMETER
from duetime_cdk.environments import FunctionName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime_cdk.handlers_environment import HandlersEnvironment, Vpc
    from duetime_cdk.lambda_function import LambdaFunction

NETWORK_INTERFACES = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""Actions of a function in a VPC, which do not support resource-level permissions (Source: AWS Lambda Developer Guide,
"Giving Lambda functions access to resources in an Amazon VPC", the policy `AWSLambdaENIManagementAccess`)."""
GATEWAY_ENDPOINTS = ("dynamodb", "s3")
"""Services that the worker calls and that have free gateway endpoints."""
INTERFACE_ENDPOINTS = ("sqs", "lambda", "states")
"""Services that the worker calls and that have interface endpoints."""


def equip(function: LambdaFunction, own: HandlersEnvironment, statements: Iterable[Mapping[str, Any]]) -> None:
    """Give a function its handlers' environment, and its role the permissions for it and those in `grants.json`."""
    for statement in statements:
        function.role.add_to_policy(iam.PolicyStatement.from_json(statement))
    function.own_variables = own.variables
    if own.secrets:
        function.variables[Variable.HANDLER_SECRETS] = json.dumps(dict(own.secrets), separators=(",", ":"))
        _grant_secrets(function, sorted(set(own.secrets.values())))
    if own.vpc:
        _connect(function, own.vpc, own)
    for number, arn in enumerate(own.layers, 1):
        function.function.add_layers(lambda_.LayerVersion.from_layer_version_arn(function, f"Layer{number}", arn))
    for number, arn in enumerate(own.policies, 1):
        function.role.add_managed_policy(iam.ManagedPolicy.from_managed_policy_arn(function, f"Policy{number}", arn))
        if not Token.is_unresolved(arn):
            _acknowledge(function, f"AwsSolutions-IAM4[Policy::{arn}]")


def _acknowledge(function: LambdaFunction, rule: str) -> None:
    reason = "The settings name it, for the user's handlers"
    Validations.of(function.role).acknowledge(Acknowledgment(id=rule, reason=reason))


def _grant_secrets(function: LambdaFunction, sources: list[str]) -> None:
    """Let a function read the secrets and parameters with these names or ARNs, and no others."""
    stack = Stack.of(function)
    names = [each.removeprefix(PARAMETER).removeprefix("/") for each in sources if each.startswith(PARAMETER)]
    parameters = [stack.format_arn(service="ssm", resource="parameter", resource_name=name) for name in names]
    secrets = [_secret_arn(stack, each) for each in sources if not each.startswith(PARAMETER)]
    if secrets:
        function.allow(["secretsmanager:GetSecretValue"], secrets)
    if parameters:
        function.allow(["ssm:GetParameter"], parameters)


def _secret_arn(stack: Stack, source: str) -> str:
    if source.startswith("arn:") or Token.is_unresolved(source):
        return source
    return stack.format_arn(
        service="secretsmanager",
        resource="secret",
        resource_name=f"{source}-??????",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


def _connect(function: LambdaFunction, vpc: Vpc, own: HandlersEnvironment) -> None:
    """Put a function into a VPC, and show which endpoints must be reachable from there."""
    resource = function.function.node.default_child
    if not isinstance(resource, lambda_.CfnFunction):
        raise TypeError(resource)
    resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
        subnet_ids=list(vpc.subnets), security_group_ids=list(vpc.security_groups)
    )
    function.allow(NETWORK_INTERFACES, ["*"])
    Annotations.of(function).add_info(
        "The worker is in a VPC. Its subnets need a NAT gateway, or gateway endpoints for"
        f" {', '.join(GATEWAY_ENDPOINTS)} and interface endpoints for {', '.join(_interfaces(own))}, and an endpoint"
        " for each other service that handlers or `aws_targets` use. Without these, no task runs."
        if function.node.id == FunctionName.WORKER.capitalize()
        else f"The package {function.node.id} is in a VPC. Its subnets need a NAT gateway, or an interface endpoint for"
        " lambda if its handlers report progress, have steps or use `context.client`, and an endpoint for each other"
        " service that they use."
    )


def _interfaces(own: HandlersEnvironment) -> list[str]:
    parameters = any(source.startswith(PARAMETER) for source in own.secrets.values())
    secrets = any(not source.startswith(PARAMETER) for source in own.secrets.values())
    return [*INTERFACE_ENDPOINTS, *(["secretsmanager"] if secrets else []), *(["ssm"] if parameters else [])]
