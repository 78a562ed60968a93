"""Creates the HTTP API. All paths except the console's lead to the api function; some paths are public."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsii
from aws_cdk import Acknowledgment, Duration, Stack, Validations
from aws_cdk import aws_apigateway as access_log
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_logs as logs
from constructs import Construct

from duetime.contract import health_and_openapi, links, signing_secrets
from duetime.settings import Authentication
from duetime_cdk.encryption import key_of
from duetime_cdk.removal_policies import VENDED_LOGS, removal_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_lambda as lambda_

    from duetime_cdk.environments import Environment
    from duetime_cdk.payload_bucket import Content

EVERYTHING = "/v1/{proxy+}"
WITH_KEY = "/key/v1/{proxy+}"
"""Paths of requests with an API key, which are separate because an HTTP API has one authorizer per route."""
CONSOLE = ("/console", "/console/{proxy+}")
PUBLIC = tuple(
    operation.path
    for operation in (
        health_and_openapi.INDEX,
        health_and_openapi.HEALTH,
        health_and_openapi.OPENAPI,
        signing_secrets.KEYS,
    )
)
HELD_BY_LINK = links.OPEN.path
"""Path of links, whose token is the credential of the holder."""
READING = (apigateway.HttpMethod.GET, apigateway.HttpMethod.HEAD)
PREFLIGHT_LIFE = Duration.hours(1)
ALLOWED_HEADERS = (
    *("Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"),
    *("Content-Type", "Content-Encoding", "If-Match", "If-None-Match", "Idempotency-Key", "Idempotency-Key-Seconds"),
    *("X-Duetime-Lease", "X-Duetime-Owner", "traceparent"),
)
"""Request headers allowed from other origins."""
EXPOSED_HEADERS = (
    *("ETag", "Location", "Request-Id", "Retry-After", "Idempotent-Replayed", "traceparent", "RateLimit-Policy"),
    *("Allow", "Accept-Patch", "Deprecation", "Sunset", "Link", "Duetime-On-Conflict"),
)
"""Response headers exposed to other origins."""
ACCESS_LOG_FIELDS = {
    "requestId": "$context.requestId",
    "time": "$context.requestTime",
    "sourceIp": "$context.identity.sourceIp",
    "method": "$context.httpMethod",
    "route": "$context.routeKey",
    "status": "$context.status",
    "latencyMs": "$context.responseLatency",
    "integrationLatencyMs": "$context.integrationLatency",
}
"""Fields of an access-log line. Except for error messages, the gateway inserts values without escaping them, so a value
that a caller writes, such as `$context.path`, could forge fields and lines."""

_CALLERS = {
    Authentication.IAM: "$context.identity.userArn",
    Authentication.JWT: "$context.authorizer.claims.sub",
    Authentication.NONE: "$context.identity.sourceIp",
}
"""The caller's identity in access logs, by kind of authentication: an ARN, whose characters IAM limits, or the subject
of a verified token, which its issuer writes (Source: API Gateway Developer Guide, "Customize HTTP API access logs")."""
_KEY = "$context.authorizer.key"
"""The id of the API key, from the context that our authorizer returns."""
_ERROR = "$context.error.messageString"
"""The gateway's error message, already quoted and escaped (Source: as for `_CALLERS`)."""


def access_log_format(authentication: Authentication) -> str:
    """The format of an access-log line, by kind of authentication."""
    fields = {**ACCESS_LOG_FIELDS, "caller": _CALLERS[authentication], "key": _KEY, "error": _ERROR}
    return json.dumps(fields).replace(f'"{_ERROR}"', _ERROR)


class HttpApi(Construct):
    """The API. All routing happens in the function, so that tests cover the deployed API."""

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, function: lambda_.IFunction, content: Content
    ) -> None:
        super().__init__(scope, id_)
        self.api = apigateway.HttpApi(
            self,
            "Api",
            api_name=Stack.of(self).stack_name,
            create_default_stage=False,
            cors_preflight=_cors(environment.cors_origins) if environment.cors_origins else None,
        )
        self._environment = environment
        self._integration = integration = integrations.HttpLambdaIntegration("Function", function)
        self.api.add_routes(
            path=EVERYTHING,
            methods=[apigateway.HttpMethod.ANY],
            integration=integration,
            authorizer=_authorizer(environment),
        )
        for path in PUBLIC:
            self._open(path, READING, integration)
        self._open(HELD_BY_LINK, (*READING, apigateway.HttpMethod.POST), integration)
        if environment.cors_origins:
            # Browsers send preflights without credentials, which the route above would reject (Source: API Gateway
            # Developer Guide, "Configure CORS for HTTP APIs in API Gateway").
            self._open(EVERYTHING, (apigateway.HttpMethod.OPTIONS,), integration)
        log_group = logs.LogGroup(
            self,
            "AccessLog",
            log_group_name=f"{VENDED_LOGS}/apigateway/{self.api.api_id}",
            retention=logs.RetentionDays[environment.log_retention],
            encryption_key=key_of(self, environment),
            removal_policy=removal_of(environment),
        )
        self.domain = _domain(self, environment)
        """The API's own domain, if the settings name one."""
        self.url = f"https://{environment.domain_name}" if self.domain else self.api.api_endpoint
        """The address for clients."""
        if pages := (*([self.url] if environment.console else []), *environment.cors_origins):
            content.accept_uploads(pages)
        self.stage = apigateway.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigateway.ThrottleSettings(
                rate_limit=environment.requests_per_second, burst_limit=environment.request_burst
            ),
            access_log_settings=_AccessLog(log_group, environment.authentication),
            domain_mapping=apigateway.DomainMappingOptions(domain_name=self.domain) if self.domain else None,
        )
        Validations.of(self.stage).acknowledge(
            Acknowledgment(
                id="Serverless-APIGWStructuredLogging",
                reason="The format is JSON; the gateway adds the error message's quotes, so the format omits them",
            )
        )

    def accept_keys(self, function: lambda_.IFunction) -> None:
        """Accept requests with API keys at separate paths; the function checks the keys."""
        authorizer = authorizers.HttpLambdaAuthorizer(
            "ApiKeys",
            function,
            authorizer_name=f"{Stack.of(self).stack_name}-api-keys",
            response_types=[authorizers.HttpLambdaResponseType.SIMPLE],
            identity_source=["$request.header.Authorization"],
            results_cache_ttl=Duration.seconds(self._environment.key_cache_seconds),
        )
        self.api.add_routes(
            path=WITH_KEY, methods=[apigateway.HttpMethod.ANY], integration=self._integration, authorizer=authorizer
        )
        if self._environment.cors_origins:
            self._open(WITH_KEY, (apigateway.HttpMethod.OPTIONS,), self._integration)

    def serve_console(self, function: lambda_.IFunction) -> str:
        """Serve the console under the API's origin, so that the console's page needs no CORS.

        Returns:
            The address of the console's page.
        """
        integration = integrations.HttpLambdaIntegration("Console", function)
        for path in CONSOLE:
            self._open(path, READING, integration)
        return f"{self.url}/console/index.html"

    def _open(
        self, path: str, methods: Sequence[apigateway.HttpMethod], integration: integrations.HttpLambdaIntegration
    ) -> None:
        """Add a route without authentication."""
        routes = self.api.add_routes(
            path=path, methods=list(methods), integration=integration, authorizer=apigateway.HttpNoneAuthorizer()
        )
        for route in routes:
            Validations.of(route).acknowledge(
                Acknowledgment(
                    id="AwsSolutions-APIG4",
                    reason="Public routes reveal nothing about tasks; for links, the token is the credential.",
                )
            )


@jsii.implements(apigateway.IAccessLogSettings)
class _AccessLog:
    """An access log with one JSON line per request, which names the caller, the route and the result."""

    def __init__(self, log_group: logs.LogGroup, authentication: Authentication) -> None:
        self._authentication = authentication
        self._destination = apigateway.LogGroupLogDestination(log_group)

    @property
    def destination(self) -> apigateway.IAccessLogDestination:
        return self._destination

    @property
    def format(self) -> access_log.AccessLogFormat:
        return access_log.AccessLogFormat.custom(access_log_format(self._authentication))


def _domain(scope: Construct, environment: Environment) -> apigateway.DomainName | None:
    if not environment.domain_name:
        return None
    certificate = acm.Certificate.from_certificate_arn(scope, "Certificate", environment.certificate_arn)
    return apigateway.DomainName(scope, "Domain", domain_name=environment.domain_name, certificate=certificate)


def _cors(origins: Sequence[str]) -> apigateway.CorsPreflightOptions:
    """The gateway's CORS settings, which replace the function's own CORS headers."""
    methods = apigateway.CorsHttpMethod
    return apigateway.CorsPreflightOptions(
        allow_origins=list(origins),
        allow_methods=[methods.GET, methods.HEAD, methods.POST, methods.PUT, methods.PATCH, methods.DELETE],
        allow_headers=list(ALLOWED_HEADERS),
        expose_headers=list(EXPOSED_HEADERS),
        max_age=PREFLIGHT_LIFE,
    )


def _authorizer(environment: Environment) -> apigateway.IHttpRouteAuthorizer:
    """The authorizer; `Environment` allows `none` only on the local machine."""
    match environment.authentication:
        case Authentication.IAM:
            return authorizers.HttpIamAuthorizer()
        case Authentication.JWT:
            audience = list(environment.jwt_audience)
            return authorizers.HttpJwtAuthorizer("Jwt", environment.jwt_issuer, jwt_audience=audience)
        case Authentication.NONE:
            return apigateway.HttpNoneAuthorizer()
