from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.settings import Authentication, Variable
from infra.environments import UnsafeEnvironment, environment_named
from tests.infra.synthesis import Synthesis

if TYPE_CHECKING:
    from pathlib import Path

    from layers.build import Layers


def test_cloud_api_wants_signed_requests(cloud: Synthesis) -> None:
    """Without an identity provider, every route asks for a signature by IAM."""
    routes = cloud.properties("AWS::ApiGatewayV2::Route").values()
    assert [route["AuthorizationType"] for route in routes] == ["AWS_IAM"]


def test_local_api_is_open(every: Synthesis) -> None:
    """Only the API of the local environment has no authorizer."""
    routes = every.properties("AWS::ApiGatewayV2::Route").values()
    is_open = [route["AuthorizationType"] == "NONE" for route in routes]
    assert is_open == [every.environment.name == "local"]


def test_api_with_an_identity_provider_wants_its_tokens(layers: Layers, tmp_path: Path) -> None:
    """With issuer and audience, every route asks for a token of theirs, and the function is told so."""
    environment = replace(
        environment_named("prod"),
        authentication=Authentication.JWT,
        jwt_issuer="https://id.example.org",
        jwt_audience=("duetime",),
    )
    synthesis = Synthesis(environment, layers, tmp_path)
    (route,) = synthesis.properties("AWS::ApiGatewayV2::Route").values()
    (authorizer,) = synthesis.properties("AWS::ApiGatewayV2::Authorizer").values()
    assert route["AuthorizationType"] == "JWT"
    assert authorizer["JwtConfiguration"] == {"Audience": ["duetime"], "Issuer": "https://id.example.org"}
    assert synthesis.functions()["api"]["Environment"]["Variables"][Variable.AUTHENTICATION.value] == "jwt"


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_no_cloud_environment_can_be_open(name: str) -> None:
    """An environment of a real account that lets anyone in is refused before anything is synthesised."""
    with pytest.raises(UnsafeEnvironment, match=name):
        replace(environment_named(name), authentication=Authentication.NONE)


def test_tokens_need_issuer_and_audience() -> None:
    """An authorizer for tokens that nobody issues is refused, and so is an issuer that nobody asks."""
    with pytest.raises(UnsafeEnvironment):
        replace(environment_named("dev"), authentication=Authentication.JWT, jwt_issuer="https://id.example.org")
    with pytest.raises(UnsafeEnvironment):
        replace(environment_named("dev"), jwt_issuer="https://id.example.org", jwt_audience=("duetime",))


def test_api_is_throttled_and_logged(every: Synthesis) -> None:
    """The stage holds callers to the settings' rate, and logs each request as one JSON line."""
    (stage,) = every.properties("AWS::ApiGatewayV2::Stage").values()
    assert stage["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": every.environment.requests_per_second,
        "ThrottlingBurstLimit": every.environment.request_burst,
    }
    line = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"$context.requestId", "$context.status"} <= set(line.values())


def test_api_sends_everything_to_the_api_function(every: Synthesis) -> None:
    """One route takes every path under /v1 with every method, so that the function's own routes are the API."""
    (route,) = every.properties("AWS::ApiGatewayV2::Route").values()
    (integration,) = every.properties("AWS::ApiGatewayV2::Integration").values()
    assert route["RouteKey"] == "ANY /v1/{proxy+}"
    assert every.function_named(integration["IntegrationUri"]) == "api"
    assert integration["PayloadFormatVersion"] == "2.0"
