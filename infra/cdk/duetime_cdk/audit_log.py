"""Creates the log group of the audit log, which records who controlled or administered what, why and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_logs as logs
from constructs import Construct

from duetime.environment_variables import Variable
from duetime_cdk.encryption import key_of
from duetime_cdk.removal_policies import removal_of

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment
    from duetime_cdk.lambda_function import LambdaFunction


class AuditLog(Construct):
    """A log group to which functions can add lines, but whose lines they can neither change nor delete."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_)
        self.group = logs.LogGroup(
            self,
            "Log",
            retention=logs.RetentionDays[environment.audit_retention],
            encryption_key=key_of(self, environment),
            removal_policy=removal_of(environment),
        )

    def receive_from(self, function: LambdaFunction) -> None:
        """Let a function create log streams and add lines, and pass it the group's name."""
        self.group.grant_write(function.role)
        function.variables[Variable.AUDIT_LOG_GROUP] = self.group.log_group_name
