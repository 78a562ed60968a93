"""Creates the WebSocket API, which sends live updates to browsers and clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from constructs import Construct

if TYPE_CHECKING:
    from aws_cdk import CfnElement

    from duetime_cdk.environments import Environment
    from duetime_cdk.lambda_function import LambdaFunction

STAGE = "live"
ROUTES = ("$connect", "$disconnect", "$default")
SELECTION = "$request.body.do"
"""All messages take the default route, and the function parses them, so that tests cover the deployed routing."""


class WebSocketApi(Construct):
    """The WebSocket API. It is created before the functions, which need its URL; one function is attached later."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_)
        self.api = apigateway.WebSocketApi(
            self, "Api", api_name=f"{Stack.of(self).stack_name}-live", route_selection_expression=SELECTION
        )
        self.stage = apigateway.WebSocketStage(
            self,
            "Stage",
            web_socket_api=self.api,
            stage_name=STAGE,
            auto_deploy=True,
            throttle=apigateway.ThrottleSettings(
                rate_limit=environment.requests_per_second, burst_limit=environment.request_burst
            ),
        )
        reason = (
            "WebSocket APIs can write logs only with an account-wide role, which this stack must not set. The function"
            " logs failures"
        )
        Validations.of(self.stage).acknowledge(
            Acknowledgment(id="AwsSolutions-APIG1", reason=reason),
            Acknowledgment(id="Serverless-APIGWAccessLogging", reason=reason),
        )

    @property
    def url(self) -> str:
        """The URL for clients."""
        return self.stage.url

    def serve(self, function: LambdaFunction) -> None:
        """Route the API's events to a function."""
        for route in ROUTES:
            # The id of the integration contains the route, so that the invoke permission covers only that route.
            integration = integrations.WebSocketLambdaIntegration(route.removeprefix("$"), function.live)
            added = self.api.add_route(route, integration=integration)
            Validations.of(added).acknowledge(
                Acknowledgment(
                    id="AwsSolutions-APIG4",
                    reason="A connection is opened with a ticket, which is accepted once; the other routes"
                    " accept only open connections",
                )
            )

    def grant_sending(self, function: LambdaFunction) -> None:
        """Let a function send messages to connections."""
        arn = Stack.of(self).format_arn(
            service="execute-api", resource=self.api.api_id, resource_name=f"{STAGE}/POST/@connections/*"
        )
        of_account = "arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>"
        logical_id = Stack.of(self).get_logical_id(cast("CfnElement", self.api.node.default_child))
        function.allow(["execute-api:ManageConnections"], [arn])
        Validations.of(function.role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::{of_account}:<{logical_id}>/{STAGE}/POST/@connections/*]",
                reason="Connections are named by API Gateway when they are opened",
            )
        )
