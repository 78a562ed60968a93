"""What MiniStack 1.5.33 does differently from AWS, said once, with what is done about it.

Before the deploy (`with_fixed_addresses`), because it draws the ids of APIs:

* a tag of its own gives each API an id, so that its address is the same after every start.

After the deploy (`complete_deployment`), because its CloudFormation accepts these properties and drops them:

* time to live and point-in-time recovery of a table;
* `ReservedConcurrentExecutions` and `RecursiveLoop` of a function;
* the CORS settings of an HTTP API, which it keeps under names that it does not look for;
* the URL of the WebSocket API in the functions' environment, which names a host that only AWS has.

After the deploy, too, because every invocation at once is a process of its own, of 110 MB and a second of a core:

* A state machine's maps are kept to `GENTLE_WAITS`. They wait for nodes that run without them, so no node is later
  for it, and the end of 200 nodes by a second or three. It also loses nothing: what a function that was given a token
  raises, or that it was throttled, is not told to the state, which waits until its time is out. A graph of more nodes
  than the account's concurrency would never end.

Around the server, because it keeps the setting and does nothing by it (`http_throttle.py`):

* the throttle of an HTTP API's stage. A function at its concurrency is answered 429 there, too.

Around the server, because every request at once is a process of its own (`http_throttle.py`):

* few requests of HTTP APIs are executed at a time; others wait for their turn, and are answered 503 if it comes too
  late. In AWS they are executed at once, up to the account's concurrency.

By settings of the `local` environment (`infra/`), because nothing else would work:

* Lambdas run as warm subprocesses of the emulator's own Python, whatever runtime is declared: layers hold boto3 and
  wheels for this machine.
* Its poller looks at a queue when something was sent or a batch has ended, else once a second, and an expired delay
  wakes nobody: precision is `exact` locally, so that a message is there a second before it is due.
* Authorizers: it checks JWTs but no IAM signatures: locally the API has one default owner.

Around the server, because each process would unpack all of its layers (`shared_layers.py`):

* a version of a layer is unpacked once, for all processes.
* a process whose function is given another configuration ends its invocation before it ends.

Around the server, because one waiting function holds up others (`stream_poller.py`, `function_logs.py`):

* streams are looked at by a thread of their own. Its own poller gives no function a message of a queue while a
  function works on a batch of a stream.
* an invocation ends as soon as its log is read. By itself the server waits 50 ms for one that logs nothing.

Around the server, because its stream is not told of them, and each is charged one unit (`batch_inserts.py`):

* insertions by `BatchExecuteStatement` are conditional writes like any others.

By the reader of logs (`duetime_local.logs`), because it answers as if it had no more:

* `FilterLogEvents` returns the oldest 10 000 events of a log group, whatever a pattern of JSON says, and no token.

By starting processes of the worker before they are needed (`lambda_warm_up.warm_up`):

* A cold start takes a second of a core, which many of them at once take from everything else.

By nothing, because it is harmless here, but a test on AWS's own behaviour must not be made of it:

* IAM, memory limits, the queue-visibility-at-least-function-timeout rule and DelaySeconds <= 900 are not enforced:
  the template's tests assert them.
* EventBridge Scheduler looks at its schedules every ten seconds: a one-minute rate comes up to ten seconds late, the
  first one a minute after the deploy. The look-ahead of three minutes is made for such things.
* Lambdas inherit the server's environment (it is started with a clean one) and its site-packages (layers come first).
* A Lambda that raises, times out or dies (`os._exit`, SIGKILL) gives its batch back at the messages' visibility, and
  that mapping then rests for a second.
* MessageGroupId on a standard queue is kept and shown, but there are no fair queues.
* The error of a function that raised is of the type `Runtime.HandlerError`, whatever it raised.
* EMF lines do not become metrics; there is no X-Ray; TTL deletions emit no stream record.
* State is saved on a graceful stop only; after a restart stream mappings stay deaf until deployed again.
* A state that waits for a token has no heartbeat: only its time limit ends it.
* Recursive-loop detection counts direct invocations only, never hops over a queue.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime_local.emulator.server import Emulator

Properties = dict[str, Any]  # CloudFormation properties are whatever the template says

GENTLE_WAITS = 4
"""Most iterations at a time of a map on this machine; of a distributed map's children, one."""


def complete_deployment(emulator: Emulator, template: Mapping[str, Any], physical_ids: Mapping[str, str]) -> None:
    """Set what the template says and the emulator's CloudFormation has dropped."""
    for logical_id, resource in template["Resources"].items():
        complete = _COMPLETIONS.get(resource["Type"])
        if complete is not None:
            complete(emulator, physical_ids[logical_id], resource.get("Properties", {}))
    _complete_watch_url(emulator, template, physical_ids)


def with_fixed_addresses(template: Mapping[str, Any]) -> dict[str, Any]:
    """The template with a fixed id for each API, so that addresses stay the same from one start to the next."""
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
    """Return the address under which an HTTP API with a `$default` stage answers."""
    return f"{emulator.endpoint_url}/_aws/execute-api/{api_id}"


def watch_url(emulator: Emulator, deployed_url: str) -> str:
    """Return the address of a WebSocket API on this machine, of the one that it would have in AWS."""
    parts = urlsplit(deployed_url)
    return f"ws{api_url(emulator, parts.netloc.partition('.')[0]).removeprefix('http')}{parts.path}"


def _complete_watch_url(emulator: Emulator, template: Mapping[str, Any], physical_ids: Mapping[str, str]) -> None:
    """Tell the functions where WebSocket connections are opened, and written to, on this machine."""
    resources = template["Resources"]
    stages = [
        (physical_ids[body["Properties"]["ApiId"]["Ref"]], body["Properties"]["StageName"])
        for body in resources.values()
        if body["Type"] == "AWS::ApiGatewayV2::Stage" and body["Properties"]["StageName"] != "$default"
    ]
    functions = emulator.client("lambda")
    for logical_id, body in resources.items():
        told = body.get("Properties", {}).get("Environment", {}).get("Variables", {})
        if body["Type"] != "AWS::Lambda::Function" or Variable.WATCH_URL.value not in told:
            continue
        ((api_id, stage),) = stages
        name = physical_ids[logical_id]
        variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        variables[Variable.WATCH_URL.value] = f"ws{api_url(emulator, api_id).removeprefix('http')}/{stage}"
        functions.update_function_configuration(FunctionName=name, Environment={"Variables": variables})


def _complete_table(emulator: Emulator, name: str, properties: Properties) -> None:
    dynamodb = emulator.client("dynamodb")
    time_to_live = properties.get("TimeToLiveSpecification")
    if time_to_live:
        dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=time_to_live)
    # A global table (CDK's TableV2) says it per replica.
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
    """A definition whose maps start few functions at once."""
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
