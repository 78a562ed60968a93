"""Creates CodeDeploy deployments, which shift work to new versions of the functions, and roll back on an alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from duetime_cdk.alarm_list import ROLLBACK_ALARMS, name_of_version_alarm
from duetime_cdk.environments import FunctionName

if TYPE_CHECKING:
    from duetime_cdk.alarms import Alarms
    from duetime_cdk.canary import Canary
    from duetime_cdk.environments import Environment
    from duetime_cdk.functions import Functions
    from duetime_cdk.lambda_function import LambdaFunction

_POLICY = "service-role/AWSCodeDeployRoleForLambdaLimited"


class CanaryDeployment(Construct):
    """A deployment group for each function with a canary.

    If the deployment of one function is rolled back, the update of its alias fails, and CloudFormation rolls back the
    stack with all functions. The construct is empty if no canary is set.
    """

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, functions: Functions, alarms: Alarms
    ) -> None:
        super().__init__(scope, id_)
        if not environment.canaries:
            return
        self._alarms = alarms.by_name
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
                reason="AWS's managed policy for CodeDeploy: read alarms, and change aliases",
            )
        )
        for name, each in functions.by_name:
            self._deploy(name.capitalize(), each, environment.canary, "" if name is FunctionName.WORKER else None)
        for package, each in functions.packages.items():
            self._deploy(f"Handlers-{package}", each, environment.canaries.get(package), package)

    def _deploy(self, name: str, function: LambdaFunction, canary: Canary | None, package: str | None) -> None:
        """Deploy a function with its canary, if it has one, and with the alarm on its handlers' failures, if any."""
        names = [*ROLLBACK_ALARMS, *([] if package is None else [name_of_version_alarm(package)])]
        if canary and isinstance(function.live, lambda_.Alias):
            codedeploy.LambdaDeploymentGroup(
                self,
                name,
                alias=function.live,
                application=self._application,
                role=self._role,
                deployment_config=self._config(canary),
                alarms=[self._alarms[each] for each in names if each in self._alarms],
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
