"""Reads the policies of the functions' roles, with the names of resources in the tests' account."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime.domain.tasks.allowed_targets import HttpSecret
from duetime.environment_variables import LIVE, QUEUE_VARIABLES, Variable
from infra.environments import environment_named
from tests.grants import ARCHIVE, BUCKET, LIVE_API, MACHINE, SECRET, SENT_SECRET, STREAM, TABLE, function, queue
from tests.infra.synthesis import Synthesis, as_list, empty_layers, referred

if TYPE_CHECKING:
    from pathlib import Path

PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "123456789012"}
BY_PLATFORM = ("logs:", "xray:")
"""Prefixes of the actions that Lambda itself needs to write a function's logs and traces."""
_FIXED = {
    "AWS::DynamoDB::Table": TABLE,
    "AWS::S3::Bucket": BUCKET,
    "AWS::StepFunctions::StateMachine": MACHINE,
    "AWS::SecretsManager::Secret": SECRET,
}


def synthesised(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Return the permissions of each function in `local` with a monitor, an archive and a secret added."""
    (layers := folder / "layers").mkdir()
    more = {
        "heartbeat_url": "https://monitor.example.org/ping",
        "archive_days": 30,
        "http_secrets": {"crm": HttpSecret(SENT_SECRET, ("api.crm.example",))},
    }
    environment = replace(environment_named("local"), **more)  # type: ignore[arg-type]  # types match
    return policies(Synthesis(environment, empty_layers(layers), folder / "out"))


def policies(synthesis: Synthesis) -> dict[str, dict[str, list[str]]]:
    """Return the resource patterns that each function may use, by function and action."""
    arns = _arns(synthesis)
    found: dict[str, dict[str, set[str]]] = {}
    for name in synthesis.functions():
        of = found.setdefault(name, {})
        for statement in synthesis.statements_of(name):
            for action in as_list(statement["Action"]):
                if not action.startswith(BY_PLATFORM):
                    texts = [_text(arns, each) for each in as_list(statement["Resource"])]
                    of.setdefault(action, set()).update(map(of_function, texts))
    return {name: {action: sorted(of) for action, of in actions.items()} for name, actions in found.items()}


def of_function(arn: str) -> str:
    """Return the ARN of an alias's function; any other ARN is returned unchanged."""
    return arn.removesuffix(f":{LIVE}")


def polled(synthesis: Synthesis) -> set[tuple[str, str]]:
    """Return each function that a queue invokes, paired with that queue."""
    arns = _arns(synthesis)
    return {
        (synthesis.function_named(each["FunctionName"]), _text(arns, each["EventSourceArn"]))
        for each in queue_mappings(synthesis)
    }


def queue_mappings(synthesis: Synthesis) -> list[dict[str, Any]]:
    """Return the queues' event source mappings, without the mapping for the table's stream."""
    mappings = synthesis.properties("AWS::Lambda::EventSourceMapping").values()
    return [each for each in mappings if "StartingPosition" not in each]


def _arns(synthesis: Synthesis) -> dict[str, str]:
    """Return the ARN of each resource in the tests' account, by logical id."""
    resources = synthesis.template["Resources"]
    found = {id_: _FIXED[body["Type"]] for id_, body in resources.items() if body["Type"] in _FIXED}
    found |= {
        id_: function(synthesis.function_named({"Ref": id_})) for id_ in synthesis.of_type("AWS::Lambda::Function")
    }
    found |= {id_: ARCHIVE for id_ in synthesis.of_type("AWS::S3::Bucket") if id_.startswith("Archive")}
    # Only this grant names the API by its id.
    found |= dict.fromkeys(synthesis.of_type("AWS::ApiGatewayV2::Api"), LIVE_API)
    return found | {id_: queue(name) for id_, name in _queues(synthesis).items()}


def _queues(synthesis: Synthesis) -> dict[str, str]:
    told = synthesis.functions()["worker"]["Environment"]["Variables"]
    # Any other queue is the queue of a pulled type.
    names = dict.fromkeys(synthesis.of_type("AWS::SQS::Queue"), "pulled")
    for each in queue_mappings(synthesis):
        reader = synthesis.function_named(each["FunctionName"])
        names[referred(each["EventSourceArn"])] = "dead" if reader == "deadletter" else reader
    names |= {referred(told[variable.value]): priority.value for priority, variable in QUEUE_VARIABLES.items()}
    if "intake" in synthesis.functions():
        told = synthesis.functions()["intake"]["Environment"]["Variables"]
        names[referred(told[Variable.INTAKE_REJECTS.value])] = "rejects"
    for each in synthesis.properties("AWS::Lambda::EventSourceMapping").values():
        if synthesis.function_named(each["FunctionName"]) == "broadcast":
            names[referred(each["DestinationConfig"]["OnFailure"]["Destination"])] = "lost"
    return names


def _text(arns: dict[str, str], value: Any) -> str:  # noqa: ANN401 - a string or an intrinsic of the template
    """Return a string in the template, with the names of resources in the tests' account."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return str(separator).join(_text(arns, part) for part in parts)
    if value.get("Ref") in PSEUDO:
        return PSEUDO[value["Ref"]]
    arn = arns[referred(value)]
    attribute = value.get("Fn::GetAtt", ["", ""])[1]
    if attribute == "StreamArn":
        return STREAM
    return arn.rpartition(":")[2] if attribute == "Name" else arn
