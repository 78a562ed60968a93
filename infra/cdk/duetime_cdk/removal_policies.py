"""What becomes of stateful resources with the stack, and how log groups that AWS services write to are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment

VENDED_LOGS = "/aws/vendedlogs"
"""What the names of log groups begin with that a service writes to: CloudWatch grants it them all by one entry of its
resource policy, which would be too long with one for each (Source: Step Functions Developer Guide, "Using CloudWatch
Logs to log execution history")."""


def removal_of(environment: Environment) -> RemovalPolicy:
    """Kept where the environment protects it, unless its own first deploy fails: then nothing is in it yet."""
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if environment.protected else RemovalPolicy.DESTROY
