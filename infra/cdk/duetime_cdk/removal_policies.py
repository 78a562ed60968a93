"""Decides the removal policies of stateful resources, and names log groups to which AWS services write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment

VENDED_LOGS = "/aws/vendedlogs"
"""Name prefix of log groups to which AWS services write. One entry in CloudWatch's resource policy covers all of these
log groups; one entry per log group would make the policy too long (Source: Step Functions Developer Guide, "Using
CloudWatch Logs to log execution history")."""


def removal_of(environment: Environment) -> RemovalPolicy:
    """Retain resources of protected environments, unless their first deployment fails and they are still empty."""
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if environment.protected else RemovalPolicy.DESTROY
