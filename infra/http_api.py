"""The HTTP API: one route to the api function, behind the environment's authorizer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsii
from aws_cdk import aws_apigateway as access_log
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_logs as logs
from constructs import Construct

from duetime.settings import Authentication
from infra.removal_policies import removal_of

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_

    from infra.environments import Environment

ACCESS_LOG_FIELDS = {
    "requestId": "$context.requestId",
    "time": "$context.requestTime",
    "sourceIp": "$context.identity.sourceIp",
    "caller": "$context.identity.userArn",
    "request": "$context.httpMethod $context.path",
    "status": "$context.status",
    "latencyMs": "$context.responseLatency",
    "integrationLatencyMs": "$context.integrationLatency",
    "error": "$context.error.message",
}


class HttpApi(Construct):
    """The function routes by itself: so the API that is tested is the API that is deployed."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment, function: lambda_.Function) -> None:
        super().__init__(scope, id_)
        self.api = apigateway.HttpApi(self, "Api", api_name=f"duetime-{environment.name}", create_default_stage=False)
        self.api.add_routes(
            path="/v1/{proxy+}",
            methods=[apigateway.HttpMethod.ANY],
            integration=integrations.HttpLambdaIntegration("Function", function),
            authorizer=_authorizer(environment),
        )
        log_group = logs.LogGroup(
            self,
            "AccessLog",
            retention=logs.RetentionDays[environment.log_retention],
            removal_policy=removal_of(environment),
        )
        self.stage = apigateway.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigateway.ThrottleSettings(
                rate_limit=environment.requests_per_second, burst_limit=environment.request_burst
            ),
            access_log_settings=_AccessLog(log_group),
        )


@jsii.implements(apigateway.IAccessLogSettings)
class _AccessLog:
    """One JSON line a request: who called what, and how it ended."""

    def __init__(self, log_group: logs.LogGroup) -> None:
        self._destination = apigateway.LogGroupLogDestination(log_group)

    @property
    def destination(self) -> apigateway.IAccessLogDestination:
        return self._destination

    @property
    def format(self) -> access_log.AccessLogFormat:
        return access_log.AccessLogFormat.custom(json.dumps(ACCESS_LOG_FIELDS))


def _authorizer(environment: Environment) -> apigateway.IHttpRouteAuthorizer:
    """Who may call; `Environment` has rejected `none` anywhere but on one machine."""
    match environment.authentication:
        case Authentication.IAM:
            return authorizers.HttpIamAuthorizer()
        case Authentication.JWT:
            audience = list(environment.jwt_audience)
            return authorizers.HttpJwtAuthorizer("Jwt", environment.jwt_issuer, jwt_audience=audience)
        case Authentication.NONE:
            return apigateway.HttpNoneAuthorizer()
