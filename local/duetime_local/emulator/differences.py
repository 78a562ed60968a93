"""Differences between MiniStack 1.5.33 and AWS, and how each is handled.

Before the deploy (`with_fixed_addresses`), because it generates random ids of APIs:

* a MiniStack tag sets each API's id, so that its address is the same after every start.

After the deploy (`complete_deployment`), because its CloudFormation accepts these properties and drops them:

* time to live and point-in-time recovery of a table;
* `ReservedConcurrentExecutions` and `RecursiveLoop` of a function;
* the CORS settings of an HTTP API, which it keeps under names that it does not look for;
* the URL of the WebSocket API in the functions' environment, which names a host that only AWS has.

After the deploy, because every concurrent invocation is a separate process of 110 MB that takes a second of a core:

* A state machine's maps are kept to `GENTLE_WAITS`. Nodes run independently of these waits, so none is delayed; the end
  of 200 nodes comes one to three seconds later. The limit also prevents lost errors: if a function with a token raises
  or is throttled, the state is not notified and waits until its timeout. A graph with more nodes than the account's
  concurrency would never end.

Around the server, because it stores the setting but does not apply it (`http_throttle.py`):

* the throttle of an HTTP API's stage. A function at its concurrency limit also results in 429 there.

Around the server, because every concurrent request is a separate process (`http_throttle.py`):

* few requests of HTTP APIs are executed at a time; others are queued, and get 503 if they wait too long. In AWS they
  run concurrently, up to the account's concurrency.

By settings of the `local` environment (`infra/`), because there is no alternative:

* Lambdas run as warm subprocesses of the emulator's own Python, whatever runtime is declared: layers hold boto3 and
  wheels for this machine.
* Its poller checks a queue when a message was sent or a batch has ended, else once a second, and an expired delay does
  not trigger it: precision is `exact` locally, so that messages arrive a second before they are due. Authorizers: it
  checks JWTs but not IAM signatures, so locally the API has one default owner.

Around the server, because each process would unpack all of its layers (`shared_layers.py`):

* a version of a layer is unpacked once, for all processes.
* when a function's configuration changes, a process finishes its invocation before it ends.

Around the server, because one waiting function blocks others (`stream_poller.py`, `function_logs.py`):

* streams are polled by a separate thread. MiniStack's own poller delivers no queue message while a function processes a
  stream batch. an invocation ends as soon as its log is read. Otherwise the server waits 50 ms for an invocation that
  logs nothing.

Around the server, because they create no stream records and each is charged one unit (`batch_inserts.py`):

* insertions by `BatchExecuteStatement` are conditional writes like any others.

Around the server, because splitting expressions and copying items take a third of a write's time (`table_speed.py`):

* an expression is split into tokens once, and items are copied without `copy.deepcopy`.

By the reader of logs (`duetime_local.logs`), because the response looks complete:

* `FilterLogEvents` ignores JSON patterns, and returns the oldest 10 000 events of a log group without a token.

By starting processes of the worker before they are needed (`lambda_warm_up.warm_up`):

* A cold start takes a second of a core; many at once slow down everything else.

Not handled, because it is harmless here, but tests must not rely on it as AWS's behavior:

* IAM, memory limits, the queue-visibility-at-least-function-timeout rule and DelaySeconds <= 900 are not enforced:
  the template's tests assert them.
* EventBridge Scheduler checks its schedules every ten seconds: a one-minute rate is up to ten seconds late, and first
  fires a minute after the deploy. The look-ahead of three minutes covers this. Lambdas inherit the server's environment
  (it is started with a clean one) and its site-packages (layers come first). A Lambda that raises, times out or dies
  (`os._exit`, SIGKILL) returns its batch when the messages' visibility ends, and the mapping then pauses for a second.
* MessageGroupId on a standard queue is stored and returned, but there are no fair queues. The error type of a function
  that raised is always `Runtime.HandlerError`. EMF lines do not become metrics; there is no X-Ray; TTL deletions emit
  no stream record. State is saved only on a graceful stop; after a restart stream mappings are inactive until deployed
  again. A state that waits for a token has no heartbeat: only its timeout ends it. Recursive-loop detection counts only
  direct invocations, not hops through a queue.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime_local.emulator.server import Emulator

Properties = dict[str, Any]  # CloudFormation properties have arbitrary types

GENTLE_WAITS = 4
"""Most concurrent iterations of a map on this machine; a distributed map runs one child at a time."""


def complete_deployment(emulator: Emulator, template: Mapping[str, Any], physical_ids: Mapping[str, str]) -> None:
    """Apply the template's properties that the emulator's CloudFormation drops."""
    for logical_id, resource in template["Resources"].items():
        complete = _COMPLETIONS.get(resource["Type"])
        if complete is not None:
            complete(emulator, physical_ids[logical_id], resource.get("Properties", {}))
    _complete_urls(emulator, template, physical_ids)


def with_fixed_addresses(template: Mapping[str, Any]) -> dict[str, Any]:
    """The template with a fixed id for each API, so that addresses are the same after every start."""
    resources = {
        logical_id: _with_tag(resource) if resource["Type"] == "AWS::ApiGatewayV2::Api" else resource
        for logical_id, resource in template["Resources"].items()
    }
    return {**template, "Resources": resources}


def _with_tag(api: Mapping[str, Any]) -> dict[str, Any]:
    properties = api.get("Properties", {})
    kind = "live" if properties.get("ProtocolType") == "WEBSOCKET" else "api"
    tags = {**properties.get("Tags", {}), "ms-custom-id": f"duetime-{kind}"}
    return {**api, "Properties": {**properties, "Tags": tags}}


def api_url(emulator: Emulator, api_id: str) -> str:
    """Return the URL of an HTTP API with a `$default` stage."""
    return f"{emulator.endpoint_url}/_aws/execute-api/{api_id}"


def watch_url(emulator: Emulator, deployed_url: str) -> str:
    """Convert the AWS URL of a WebSocket API to the one on this machine."""
    parts = urlsplit(deployed_url)
    return f"ws{api_url(emulator, parts.netloc.partition('.')[0]).removeprefix('http')}{parts.path}"


def _complete_urls(emulator: Emulator, template: Mapping[str, Any], physical_ids: Mapping[str, str]) -> None:
    """Set the functions' variables with the local URLs of the APIs."""
    resources = template["Resources"]
    stages = {
        body["Properties"]["StageName"]: api_url(emulator, physical_ids[body["Properties"]["ApiId"]["Ref"]])
        for body in resources.values()
        if body["Type"] == "AWS::ApiGatewayV2::Stage"
    }
    # The HTTP API has the default stage, the WebSocket API one with a name.
    local = {
        Variable.API_URL.value if stage == "$default" else Variable.WATCH_URL.value: (
            url if stage == "$default" else f"ws{url.removeprefix('http')}/{stage}"
        )
        for stage, url in stages.items()
    }
    functions = emulator.client("lambda")
    for logical_id, body in resources.items():
        variables = body.get("Properties", {}).get("Environment", {}).get("Variables", {})
        if body["Type"] != "AWS::Lambda::Function" or local.keys().isdisjoint(variables):
            continue
        name = physical_ids[logical_id]
        before = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        after = before | {key: url for key, url in local.items() if key in variables}
        functions.update_function_configuration(FunctionName=name, Environment={"Variables": after})


def _complete_table(emulator: Emulator, name: str, properties: Properties) -> None:
    dynamodb = emulator.client("dynamodb")
    time_to_live = properties.get("TimeToLiveSpecification")
    if time_to_live:
        dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=time_to_live)
    # A global table (CDK's TableV2) sets it per replica.
    replicas = properties.get("Replicas", [properties])
    recovery = replicas[0].get("PointInTimeRecoverySpecification")
    if recovery:
        dynamodb.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=recovery)


def _complete_function(emulator: Emulator, name: str, properties: Properties) -> None:
    functions = emulator.client("lambda")
    if "ReservedConcurrentExecutions" in properties:
        functions.put_function_concurrency(
            FunctionName=name, ReservedConcurrentExecutions=properties["ReservedConcurrentExecutions"]
        )
    if "RecursiveLoop" in properties:
        functions.put_function_recursion_config(FunctionName=name, RecursiveLoop=properties["RecursiveLoop"])


def _complete_http_api(emulator: Emulator, api_id: str, properties: Properties) -> None:
    if "CorsConfiguration" in properties:
        emulator.client("apigatewayv2").update_api(ApiId=api_id, CorsConfiguration=properties["CorsConfiguration"])


def _complete_machine(emulator: Emulator, arn: str, _properties: Properties) -> None:
    machines = emulator.client("stepfunctions")
    whole = json.loads(machines.describe_state_machine(stateMachineArn=arn)["definition"])
    machines.update_state_machine(stateMachineArn=arn, definition=json.dumps(gentle(whole)))


def gentle(machine: Mapping[str, Any]) -> dict[str, Any]:
    """A definition with limited concurrency of its maps."""
    return {**machine, "States": {name: _gentle_state(state) for name, state in machine["States"].items()}}


def _gentle_state(state: Mapping[str, Any]) -> dict[str, Any]:
    if state["Type"] != "Map":
        return dict(state)
    inside = state["ItemProcessor"]
    is_inline = inside.get("ProcessorConfig", {}).get("Mode", "INLINE") == "INLINE"
    return {**state, "MaxConcurrency": GENTLE_WAITS if is_inline else 1, "ItemProcessor": gentle(inside)}


_COMPLETIONS: Mapping[str, Callable[[Emulator, str, Properties], None]] = {
    "AWS::DynamoDB::Table": _complete_table,
    "AWS::DynamoDB::GlobalTable": _complete_table,
    "AWS::ApiGatewayV2::Api": _complete_http_api,
    "AWS::Lambda::Function": _complete_function,
    "AWS::StepFunctions::StateMachine": _complete_machine,
}
