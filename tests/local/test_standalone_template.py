"""Tests the template from `duetime template`, deployed only by CloudFormation calls, as Terraform and SAM would do."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime_client.standalone_template import write_standalone
from duetime_local import cloud_assembly, emulator
from duetime_local.project import STACK
from tests.infra.synthesis import new_app
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_local.emulator import Emulator

BUCKET, PREFIX = "my-assets", "duetime/1/"


def request(running: Emulator, function: str, method: str, path: str, body: object = None) -> dict[str, Any]:
    """Send a request to the API function and return the response's body."""
    event = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "requestContext": {"http": {"method": method, "path": path}},
        "isBase64Encoded": False,
        **({} if body is None else {"body": json.dumps(body)}),
    }
    answer = running.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event).encode())
    found: dict[str, Any] = json.loads(json.loads(answer["Payload"].read())["body"])
    return found


def deployed(running: Emulator, template: Path) -> dict[str, str]:
    """Upload the assets, create the stack and return its outputs."""
    storage, cloudformation = running.client("s3"), running.client("cloudformation")
    storage.create_bucket(Bucket=BUCKET)
    for file in (template, *(template.parent / "assets").iterdir()):
        storage.put_object(Bucket=BUCKET, Key=f"{PREFIX}{file.name}", Body=file.read_bytes())
    cloudformation.create_stack(
        StackName=STACK,
        TemplateURL=f"{running.endpoint_url}/{BUCKET}/{PREFIX}{template.name}",
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[
            {"ParameterKey": "AssetsBucket", "ParameterValue": BUCKET},
            {"ParameterKey": "AssetsPrefix", "ParameterValue": PREFIX},
        ],
    )

    def made() -> Any:  # noqa: ANN401 - JSON of boto3
        (stack,) = cloudformation.describe_stacks(StackName=STACK)["Stacks"]
        return None if stack["StackStatus"].endswith("IN_PROGRESS") else stack

    stack = until(made)
    assert stack is not None
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    return {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}


def ended(running: Emulator, api: str, body: dict[str, Any]) -> dict[str, Any]:
    """Create a task and wait until it has ended."""
    id_ = request(running, api, "POST", "/v1/tasks", body)["id"]

    def task() -> dict[str, Any] | None:
        found = request(running, api, "GET", f"/v1/tasks/{id_}")
        return found if found["state"] in {"succeeded", "failed"} else None

    return until(task) or {}


@pytest.mark.slow
def test_the_template_can_be_deployed_without_the_cdk(tmp_path: Path) -> None:
    """A task runs in a stack that was deployed from a user's bucket, without `cdk bootstrap`."""
    written = write_standalone(cloud_assembly.synthesize(print).folder, STACK, tmp_path)
    with emulator.running(port=0) as running:
        api = deployed(running, written.template)["ApiFunctionName"]
        assert ended(running, api, {"type": "echo", "payload": 7})["state"] == "succeeded"


HANDLERS = """
import os
from duetime.handlers import handler, secret

@handler("card.charge")
def charge(context, payload):
    return [os.environ["SHOP_URL"], secret("stripe"), secret("crm")]
"""


@pytest.mark.slow
def test_handlers_have_their_environment_and_cloudformation_creates_definitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Handlers have a variable, a local secret and a parameter, and CloudFormation creates a schedule and a graph."""
    # The constructs start a Node.js process.
    from duetime_cdk import LOCAL_STACK, DuetimeStack, HandlersEnvironment, Schedule, TopologyDefinition  # noqa: PLC0415 - see above

    (tmp_path / "handlers" / "shop").mkdir(parents=True)
    (tmp_path / "handlers" / "shop" / "__init__.py").write_text(HANDLERS)
    own = HandlersEnvironment(
        variables={"SHOP_URL": "https://shop.example.org"}, secrets={"stripe": "prod/stripe", "crm": "ssm:/crm"}
    )
    environment = replace(LOCAL_STACK, handlers_folder=str(tmp_path / "handlers"), handlers_environment=own)
    app = new_app(tmp_path / "out")
    stack = DuetimeStack(app, STACK, environment=environment)
    Schedule(stack, "Daily", stack=stack, name="daily", cron="0 9 * * *", task={"type": "card.charge"})
    TopologyDefinition(stack, "Import", stack=stack, name="import", nodes={"a": {"type": "card.charge"}})
    app.synth()
    written = write_standalone(tmp_path / "out", STACK, tmp_path / "template")
    monkeypatch.setenv("DUETIME_SECRET_STRIPE", "of this machine")
    with emulator.running(port=0) as running:
        running.client("ssm").put_parameter(Name="/crm", Value="of a parameter", Type="SecureString")
        api = deployed(running, written.template)["ApiFunctionName"]
        assert request(running, api, "GET", "/v1/schedules/daily")["cron"] == "0 9 * * *"
        assert request(running, api, "GET", "/v1/topologies/definitions/import")["version"] == 1
        task = ended(running, api, {"type": "card.charge"})
        assert task["result"] == ["https://shop.example.org", "of this machine", "of a parameter"]
