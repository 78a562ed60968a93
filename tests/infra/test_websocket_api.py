from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from tests.infra.synthesis import Properties, Synthesis


def of_websocket_api(synthesis: Synthesis, kind: str) -> list[Properties]:
    """Return the properties of the WebSocket API's resources of a kind."""
    found = synthesis.properties(f"AWS::ApiGatewayV2::{kind}").items()
    return [properties for id_, properties in found if id_.startswith("Live")]


def test_all_events_of_connections_go_to_one_function(every: Synthesis) -> None:
    """Opening and closing a connection, and any message, invoke the `watch` function."""
    from duetime_cdk.websocket_api import ROUTES

    (api,) = of_websocket_api(every, "Api")
    assert api["ProtocolType"] == "WEBSOCKET"
    assert {route["RouteKey"] for route in of_websocket_api(every, "Route")} == set(ROUTES)
    # A Lambda integration's address is joined from strings and the ARN of the function's alias.
    parts = [part for each in of_websocket_api(every, "Integration") for part in each["IntegrationUri"]["Fn::Join"][1]]
    named = [part for part in parts if isinstance(part, dict) and not str(part.get("Ref", "")).startswith("AWS::")]
    assert {every.function_named(part) for part in named} == {"watch"}


def test_the_websocket_stage_throttles_connections(every: Synthesis) -> None:
    """The stage has the HTTP API's throttle, and the URL that functions get contains the stage's name."""
    from duetime_cdk.websocket_api import STAGE

    (stage,) = of_websocket_api(every, "Stage")
    assert stage["StageName"] == STAGE
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] == every.environment.requests_per_second
    for name in ("api", "watch", "broadcast"):
        url = every.functions()[name]["Environment"]["Variables"][Variable.WATCH_URL.value]
        assert json.dumps(url).count("wss://") == 1
        assert json.dumps(url).count(f"/{STAGE}") == 1


def test_only_functions_that_send_messages_can_write_to_connections(every: Synthesis) -> None:
    """The API issues tickets, but may not send messages to the connections that are opened with these tickets."""
    action = "execute-api:ManageConnections"
    may = {name for name in every.functions() if action in json.dumps(every.statements_of(name))}
    assert may == {"watch", "broadcast"}
