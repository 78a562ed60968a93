"""Handles the differences between MiniStack 1.5.33 and AWS, which are listed here.

Handled before the deployment (`with_fixed_addresses`), because MiniStack generates random API ids:

* A MiniStack tag sets each API's id, so that the API's address is the same after every start.

Handled after the deployment (`complete_deployment`), because MiniStack's CloudFormation accepts these properties but
ignores them:

* time to live and point-in-time recovery of a table;
* `ReservedConcurrentExecutions` and `RecursiveLoop` of a function;
* the CORS settings of an HTTP API, which MiniStack stores under names that it does not read;
* the URL of the WebSocket API in the functions' environment, whose host exists only in AWS.

Handled after the deployment, because every concurrent invocation is a separate process with 110 MB and a second of CPU
time:

* The concurrency of a state machine's maps is limited to `GENTLE_WAITS`. Nodes run independently of the states that
  wait for them, so no node is delayed, but a topology with 200 nodes ends one to three seconds later. The limit also
  avoids lost errors: if a function that was called with a token raises an error or is throttled, MiniStack does not
  notify the state, which then waits until its timeout. Without the limit, a topology with more nodes than the account's
  concurrency would never end.

Handled in the server, because MiniStack stores the setting but does not apply it (`http_throttle.py`):

* the throttle of an HTTP API's stage. MiniStack also responds with 429 when a function is at its concurrency limit.

Handled in the server, because every concurrent request needs a separate process (`http_throttle.py`):

* Only a few requests to HTTP APIs are executed at a time; other requests are queued, and get 503 if they wait too long.
  In AWS, requests run concurrently, up to the account's concurrency.

Handled with settings of the `local` environment (`infra/`), because there is no alternative:

* Functions run as warm subprocesses of the emulator's own Python, whatever runtime is declared, so layers contain boto3
  and wheels for this machine.
* MiniStack's poller checks a queue when a message is sent or a batch has ended, and otherwise once a second; the end of
  a message's delay does not cause a check. Locally, the precision is therefore `exact`, so that messages arrive a
  second before their tasks are due.
* MiniStack's authorizers check JWTs but not IAM signatures, so locally the API has one default owner.

Handled in the server, because each process would unpack all of its layers (`shared_layers.py`):

* A layer version is unpacked only once, for all processes together.
* When a function's configuration changes, a process finishes its invocation before it ends.

Handled in the server, because a waiting function would block other functions (`stream_poller.py`, `function_logs.py`):

* A separate thread polls streams. MiniStack's own poller does not deliver queue messages while a function processes a
  stream batch.
* An invocation ends as soon as its log is read. MiniStack waits 50 ms for an invocation that logs nothing.

Handled in the server, because MiniStack's batch insertions create no stream records and cost one unit each
(`batch_inserts.py`):

* Insertions with `BatchExecuteStatement` are executed as conditional writes.

Handled in the server, because splitting expressions and copying items take a third of a write's time
(`table_speed.py`):

* An expression is split into tokens once, and items are copied without `copy.deepcopy`.

Handled in the log reader (`duetime_local.logs`), because a truncated response looks complete:

* `FilterLogEvents` ignores JSON patterns, and returns the oldest 10,000 events of a log group without a token.

Handled by starting function processes before they are needed (`lambda_warm_up.warm_up`):

* A cold start takes a second of CPU time, so many concurrent cold starts slow down all other processes.

Not handled, because these differences are harmless here; tests must not take them for AWS's behavior:

* IAM, memory limits, the rule that a queue's visibility timeout is at least the function's timeout, and DelaySeconds <=
  900 are not enforced. The template's tests assert these rules.
* EventBridge Scheduler checks its schedules every ten seconds, so a one-minute rate is up to ten seconds late, and
  first fires a minute after the deployment. The look-ahead of three minutes covers this delay.
* Functions inherit the server's environment (the server is started with a clean environment) and its site-packages
  (layers come first).
* If a function raises, times out or dies (`os._exit`, SIGKILL), its batch returns when the messages' visibility timeout
  ends, and the event source mapping then pauses for a second.
* `MessageGroupId` on a standard queue is stored and returned, but does not make the queue fair.
* When a function raises an error, the reported error type is always `Runtime.HandlerError`.
* EMF lines do not become metrics, X-Ray is missing, and TTL deletions emit no stream records.
* State is saved only on a graceful stop; after a restart, stream mappings are inactive until the next deployment.
* A state that waits for a token has no heartbeat, so only the state's timeout ends the wait.
* Recursive-loop detection counts only direct invocations, not hops through a queue.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime_local.emulator.server import Emulator

Properties = dict[str, Any]  # CloudFormation properties can have any type

GENTLE_WAITS = 4
"""The maximum number of concurrent iterations of a map on this machine; a distributed map runs one child at a time."""


def complete_deployment(emulator: Emulator, template: Mapping[str, Any], physical_ids: Mapping[str, str]) -> None:
    """Apply those properties in the template that the emulator's CloudFormation ignores."""
    for logical_id, resource in template["Resources"].items():
        complete = _COMPLETIONS.get(resource["Type"])
        if complete is not None:
            complete(emulator, physical_ids[logical_id], resource.get("Properties", {}))
    _complete_urls(emulator, template, physical_ids)


def with_fixed_addresses(template: Mapping[str, Any]) -> dict[str, Any]:
    """Add a fixed id to each API in the template, so that the addresses are the same after every start."""
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
    """Convert the AWS URL of a WebSocket API to its URL on this machine."""
    parts = urlsplit(deployed_url)
    return f"ws{api_url(emulator, parts.netloc.partition('.')[0]).removeprefix('http')}{parts.path}"


def _complete_urls(emulator: Emulator, template: Mapping[str, Any], physical_ids: Mapping[str, str]) -> None:
    """Set the functions' environment variables to the APIs' local URLs."""
    resources = template["Resources"]
    stages = {
        body["Properties"]["StageName"]: api_url(emulator, physical_ids[body["Properties"]["ApiId"]["Ref"]])
        for body in resources.values()
        if body["Type"] == "AWS::ApiGatewayV2::Stage"
    }
    # The HTTP API has the stage `$default`; the WebSocket API has a named stage.
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
    # A global table (CDK's TableV2) sets point-in-time recovery per replica.
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
    """Return the definition with limited concurrency in its maps."""
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
