from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.openapi.document import OPERATIONS
from duetime.environment_variables import Variable
from duetime.settings import Authentication
from duetime_cdk.errors import UnsafeEnvironment
from duetime_cdk.http_api import access_log_format
from infra.environments import environment_named
from tests.infra.synthesis import Properties, Synthesis

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.layers.build import Layers


MAIN = "ANY /v1/{proxy+}"
WITH_KEY = "ANY /key/v1/{proxy+}"
ORIGINS = ("https://console.example.org", "https://console.example.org:8443")


def of_http_api(synthesis: Synthesis, kind: str) -> list[Properties]:
    """Return the HTTP API's properties for a kind of resource; the stack also has a WebSocket API."""
    found = synthesis.properties(f"AWS::ApiGatewayV2::{kind}").items()
    return [properties for id_, properties in found if id_.startswith("HttpApi")]


def routes_of(synthesis: Synthesis) -> dict[str, str]:
    """Return the authorization of each route, by its key."""
    routes = of_http_api(synthesis, "Route")
    return {route["RouteKey"]: route["AuthorizationType"] for route in routes}


def test_cloud_api_requires_signed_requests(cloud: Synthesis) -> None:
    """Without an identity provider, every request except public requests must be signed for IAM."""
    routes = routes_of(cloud)
    assert routes.pop(MAIN) == "AWS_IAM"
    assert set(routes.values()) == {"NONE"}


def test_public_operations_need_no_credentials(every: Synthesis) -> None:
    """Only public operations have separate routes without an authorizer, with HEAD for operations that read."""
    methods = {"GET": ("GET", "HEAD"), "POST": ("POST",)}
    public = {f"{method} {one.path}" for one in OPERATIONS if one.is_public for method in methods[one.method]}
    preflight = {"OPTIONS /v1/{proxy+}"} if every.environment.cors_origins else set()
    paths = ("/console", "/console/{proxy+}") if every.environment.console else ()
    console = {f"{method} {path}" for path in paths for method in ("GET", "HEAD")}
    keys = {WITH_KEY, *(["OPTIONS /key/v1/{proxy+}"] if preflight else [])} if every.environment.api_keys else set()
    assert routes_of(every).keys() == {MAIN} | public | preflight | console | keys


def test_local_api_is_open(every: Synthesis) -> None:
    """Only the local environment's API has no authorizer."""
    assert (routes_of(every)[MAIN] == "NONE") == (every.environment.name == "local")


def test_only_listed_origins_are_allowed(cloud: Synthesis) -> None:
    """An environment without listed origins has no CORS configuration."""
    (api,) = of_http_api(cloud, "Api")
    assert "CorsConfiguration" not in api


def test_listed_origins_can_call_from_a_browser(layers: Layers, tmp_path: Path) -> None:
    """Preflight requests from listed origins need no credentials, and scripts may read the API's response headers."""
    synthesis = Synthesis(replace(environment_named("prod"), cors_origins=ORIGINS), layers, tmp_path)
    (api,) = of_http_api(synthesis, "Api")
    cors = api["CorsConfiguration"]
    assert cors["AllowOrigins"] == list(ORIGINS)
    assert set(cors["AllowMethods"]) == {one.method for one in OPERATIONS} | {"HEAD"}
    taken = {header.name.lower() for one in OPERATIONS for header in one.headers}
    assert taken | {"authorization", "content-type", "traceparent"} <= {each.lower() for each in cors["AllowHeaders"]}
    told = {name.lower() for one in OPERATIONS for success in one.successes for name in success.headers}
    ours = {"request-id", "retry-after", "idempotent-replayed", "traceparent", "ratelimit-policy"}
    assert (told | ours) - {"cache-control"} <= {each.lower() for each in cors["ExposeHeaders"]}
    assert "AllowCredentials" not in cors
    assert routes_of(synthesis)["OPTIONS /v1/{proxy+}"] == "NONE"
    assert upload_rules(synthesis) == [{**UPLOADING, "AllowedOrigins": list(ORIGINS)}]


UPLOADING = {"AllowedHeaders": ["content-type", "if-none-match"], "AllowedMethods": ["GET", "PUT"]}


def upload_rules(synthesis: Synthesis) -> list[dict[str, Any]]:
    """Return the CORS rules of all buckets."""
    buckets = synthesis.properties("AWS::S3::Bucket").values()
    return [rule for each in buckets for rule in each.get("CorsConfiguration", {}).get("CorsRules", [])]


def test_without_a_console_the_bucket_allows_no_other_origin(cloud: Synthesis) -> None:
    """Without a console, no bucket allows another origin."""
    assert upload_rules(cloud) == []


def test_the_console_can_upload_payloads(layers: Layers, tmp_path: Path) -> None:
    """The bucket allows the console's origin to upload and read payloads, and the console's policy names the bucket."""
    synthesis = Synthesis(replace(environment_named("dev"), console=True, api_keys=True), layers, tmp_path)
    apis = synthesis.properties("AWS::ApiGatewayV2::Api")
    (api,) = [name for name, each in apis.items() if each["ProtocolType"] == "HTTP"]
    assert upload_rules(synthesis) == [{**UPLOADING, "AllowedOrigins": [{"Fn::GetAtt": [api, "ApiEndpoint"]}]}]
    bucket = next(name for name in synthesis.of_type("AWS::S3::Bucket") if name.startswith("Content"))
    url = synthesis.functions()["console"]["Environment"]["Variables"][Variable.UPLOAD_URL.value]["Fn::Join"][1]
    assert url == ["https://s3.", {"Ref": "AWS::Region"}, ".", {"Ref": "AWS::URLSuffix"}, "/", {"Ref": bucket}, "/"]


@pytest.mark.parametrize(
    "origin", ["*", "https://*", "http://example.org", "https://example.org/", "example.org", "", "null", "https://a b"]
)
def test_an_invalid_origin_is_rejected(origin: str) -> None:
    """An origin is a scheme, a host and possibly a port; without TLS, only this machine is accepted."""
    with pytest.raises(UnsafeEnvironment, match="origin"):
        replace(environment_named("prod"), cors_origins=(origin,))
    replace(environment_named("dev"), cors_origins=("http://localhost:5173", "https://example.org"))


def test_api_with_an_identity_provider_requires_its_tokens(layers: Layers, tmp_path: Path) -> None:
    """With an issuer and an audience, the API's main route needs a token, and the function's settings say so."""
    environment = replace(
        environment_named("prod"),
        authentication=Authentication.JWT,
        jwt_issuer="https://id.example.org",
        jwt_audience=("duetime",),
    )
    synthesis = Synthesis(environment, layers, tmp_path)
    (authorizer,) = synthesis.properties("AWS::ApiGatewayV2::Authorizer").values()
    assert routes_of(synthesis)[MAIN] == "JWT"
    assert authorizer["JwtConfiguration"] == {"Audience": ["duetime"], "Issuer": "https://id.example.org"}
    assert synthesis.functions()["api"]["Environment"]["Variables"][Variable.AUTHENTICATION.value] == "jwt"


def test_api_keys_have_a_separate_route_with_an_authorizer(layers: Layers, tmp_path: Path) -> None:
    """API keys have a separate route with an authorizer, which caches results only if the settings allow it."""
    environment = replace(environment_named("prod"), api_keys=True)
    for seconds in (0, 60):
        (folder := tmp_path / str(seconds)).mkdir()
        synthesis = Synthesis(replace(environment, key_cache_seconds=seconds), layers, folder)
        assert (routes_of(synthesis)[MAIN], routes_of(synthesis)[WITH_KEY]) == ("AWS_IAM", "CUSTOM")
        (authorizer,) = synthesis.properties("AWS::ApiGatewayV2::Authorizer").values()
        uri = json.dumps(authorizer["AuthorizerUri"])
        assert any(f'"{id_}"' in uri for id_ in synthesis.of_type("AWS::Lambda::Alias") if "Authorizer" in id_)
        assert authorizer["AuthorizerResultTtlInSeconds"] == seconds
        assert (authorizer["EnableSimpleResponses"], authorizer["AuthorizerPayloadFormatVersion"]) == (True, "2.0")
        assert authorizer["IdentitySource"] == ["$request.header.Authorization"]
        assert synthesis.functions()["api"]["Environment"]["Variables"][Variable.API_KEYS.value] == "on"


def test_the_authorizer_can_access_only_keys(layers: Layers, tmp_path: Path) -> None:
    """The authorizer's role may read and change only the items of keys in the table."""
    synthesis = Synthesis(replace(environment_named("prod"), api_keys=True), layers, tmp_path)
    (statement,) = [
        each for each in synthesis.statements_of("authorizer") if str(each["Action"]).find("dynamodb:") >= 0
    ]
    assert set(statement["Action"]) == {"dynamodb:GetItem", "dynamodb:UpdateItem"}
    assert statement["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["ak#*"]}}


def test_an_authorizer_cache_above_five_minutes_is_rejected() -> None:
    """An authorizer cache of more than five minutes is refused."""
    with pytest.raises(UnsafeEnvironment, match="key_cache_seconds"):
        replace(environment_named("dev"), key_cache_seconds=301)
    assert environment_named("prod").key_cache_seconds == 0


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_a_cloud_environment_without_authentication_is_rejected(name: str) -> None:
    """A cloud environment without authentication is refused before synthesis."""
    with pytest.raises(UnsafeEnvironment, match=name):
        replace(environment_named(name), authentication=Authentication.NONE)


def test_token_authorization_requires_issuer_and_audience() -> None:
    """`jwt` authorization requires an issuer and an audience, and an unused issuer or audience is refused."""
    with pytest.raises(UnsafeEnvironment):
        replace(environment_named("dev"), authentication=Authentication.JWT, jwt_issuer="https://id.example.org")
    with pytest.raises(UnsafeEnvironment):
        replace(environment_named("dev"), jwt_issuer="https://id.example.org", jwt_audience=("duetime",))


def test_api_is_throttled_and_logged(every: Synthesis) -> None:
    """The stage limits callers to the rate in the settings, and logs each request as a line of JSON."""
    (stage,) = of_http_api(every, "Stage")
    assert stage["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": every.environment.requests_per_second,
        "ThrottlingBurstLimit": every.environment.request_burst,
    }
    # The gateway puts quotation marks around this value.
    text = stage["AccessLogSettings"]["Format"].replace(
        "$context.error.messageString", '"$context.error.messageString"'
    )
    line = json.loads(text)
    assert {"$context.requestId", "$context.status", "$context.error.messageString"} <= set(line.values())
    assert '"$context.error.messageString"' not in stage["AccessLogSettings"]["Format"]


def test_api_sends_everything_to_the_api_function(every: Synthesis) -> None:
    """One route sends every path under /v1 and every method to the API function, which does the routing."""
    integrations = of_http_api(every, "Integration")
    served = {every.function_named(one["IntegrationUri"]) for one in integrations}
    assert served == ({"api", "console"} if every.environment.console else {"api"})
    assert {one["PayloadFormatVersion"] for one in integrations} == {"2.0"}
    (main,) = [route for route in of_http_api(every, "Route") if route["RouteKey"] == MAIN]
    target = every.properties("AWS::ApiGatewayV2::Integration")[main["Target"]["Fn::Join"][1][1]["Ref"]]
    assert every.function_named(target["IntegrationUri"]) == "api"


def test_a_console_that_cannot_call_the_api_is_rejected() -> None:
    """Because browsers cannot sign requests, a deployment with signed requests needs API keys to have a console."""
    with pytest.raises(UnsafeEnvironment, match="console"):
        replace(environment_named("dev"), console=True)
    assert replace(environment_named("dev"), console=True, api_keys=True).console
    assert replace(
        environment_named("dev"),
        console=True,
        authentication=Authentication.JWT,
        jwt_issuer="https://id.example.org",
        jwt_audience=("duetime",),
    ).console


def test_console_sign_in_requires_token_authorization() -> None:
    """A client id is refused without a console or without `jwt`, and an invalid origin is refused as well."""
    tokens = replace(
        environment_named("dev"),
        authentication=Authentication.JWT,
        jwt_issuer="https://id.example.org",
        jwt_audience=("console",),
        console=True,
        sign_in_client_id="console",
        sign_in_origins=("https://auth.example.org",),
    )
    assert tokens.sign_in_client_id == "console"
    signed = {"authentication": Authentication.IAM, "jwt_issuer": "", "jwt_audience": (), "api_keys": True}
    for lacking in ({"console": False}, signed):
        with pytest.raises(UnsafeEnvironment, match="sign in"):
            replace(tokens, **lacking)
    with pytest.raises(UnsafeEnvironment, match="origin"):
        replace(tokens, sign_in_origins=("https://auth.example.org/path",))


@pytest.mark.parametrize(
    ("authentication", "caller"),
    [
        (Authentication.IAM, "$context.identity.userArn"),
        (Authentication.JWT, "$context.authorizer.claims.sub"),
        (Authentication.NONE, "$context.identity.sourceIp"),
    ],
)
def test_the_access_log_names_the_caller(authentication: Authentication, caller: str) -> None:
    """The access log names the caller by ARN, by the token's subject (`jwt`), or by IP address (no sign-in)."""
    text = access_log_format(authentication)
    assert json.loads(text.replace("$context.error.messageString", '"-"'))["caller"] == caller


@pytest.mark.parametrize("authentication", Authentication)
def test_the_access_log_contains_no_text_from_the_caller(authentication: Authentication) -> None:
    """The access log has no path, because the gateway would not escape quotation marks, which could forge fields."""
    used = set(re.findall(r"\$context\.([\w.]+)", access_log_format(authentication)))
    assert used <= {
        *("requestId", "requestTime", "httpMethod", "routeKey", "status", "responseLatency", "integrationLatency"),
        *("identity.sourceIp", "identity.userArn", "authorizer.claims.sub", "authorizer.key"),
        "error.messageString",
    }


def test_services_write_to_log_groups_without_separate_policies(every: Synthesis) -> None:
    """Log groups are under `/aws/vendedlogs/`, as all other groups share one resource policy of 5,120 characters."""
    groups = every.properties("AWS::Logs::LogGroup")
    (stage,) = (one for one in every.properties("AWS::ApiGatewayV2::Stage").values() if "AccessLogSettings" in one)
    (machine,) = every.properties("AWS::StepFunctions::StateMachine").values()
    (destination,) = machine["LoggingConfiguration"]["Destinations"]
    arns = (stage["AccessLogSettings"]["DestinationArn"], destination["CloudWatchLogsLogGroup"]["LogGroupArn"])
    for arn, service in zip(arns, ("apigateway", "states"), strict=True):
        (group,) = (groups[id_] for id_ in groups if f'"{id_}"' in json.dumps(arn))
        # The name contains the stack's own resource, so a group of a deleted stack does not block the next stack.
        assert group["LogGroupName"]["Fn::Join"][1][0] == f"/aws/vendedlogs/{service}/"
        assert "Ref" in group["LogGroupName"]["Fn::Join"][1][1]
