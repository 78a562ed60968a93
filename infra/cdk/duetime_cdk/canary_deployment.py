"""CodeDeploy's deployments, which shift work to new versions of the functions and return when an alarm goes off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from duetime_cdk.alarm_list import RETURNING, versions_watched

if TYPE_CHECKING:
    from duetime_cdk.alarms import Alarms
    from duetime_cdk.canary import Canary
    from duetime_cdk.environments import Environment
    from duetime_cdk.functions import Functions

_POLICY = "service-role/AWSCodeDeployRoleForLambdaLimited"


class CanaryDeployment(Construct):
    """A deployment group for each function with a canary; each watches the same alarms, so that all return together.

    Without a canary in the settings there is nothing in it.
    """

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, functions: Functions, alarms: Alarms
    ) -> None:
        super().__init__(scope, id_)
        if not environment.canaries:
            return
        self._application = codedeploy.LambdaApplication(self, "Application")
        self._configs: dict[Canary, codedeploy.LambdaDeploymentConfig] = {}
        self._role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("codedeploy.amazonaws.com"),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(_POLICY)],
        )
        Validations.of(self._role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{_POLICY}]",
                reason="AWS's own policy for what CodeDeploy does: read alarms, and change aliases",
            )
        )
        names = [*RETURNING, *(each.name for each in versions_watched(environment))]
        watched = [alarms.by_name[name] for name in names if name in alarms.by_name]
        deployed = {name.capitalize(): (each.live, environment.canary) for name, each in functions.by_name}
        deployed |= {
            f"Handlers-{each.name}": (functions.packages[each.name].live, each.canary or environment.canary)
            for each in environment.handlers_packages
        }
        for name, (alias, canary) in deployed.items():
            if canary and isinstance(alias, lambda_.Alias):
                codedeploy.LambdaDeploymentGroup(
                    self,
                    name,
                    alias=alias,
                    application=self._application,
                    role=self._role,
                    deployment_config=self._config(canary),
                    alarms=watched,
                )

    def _config(self, canary: Canary) -> codedeploy.LambdaDeploymentConfig:
        if canary not in self._configs:
            self._configs[canary] = codedeploy.LambdaDeploymentConfig(
                self,
                f"Share{canary.share}In{canary.minutes}",
                traffic_routing=codedeploy.TimeBasedCanaryTrafficRouting(
                    interval=Duration.minutes(canary.minutes), percentage=canary.share
                ),
            )
        return self._configs[canary]
