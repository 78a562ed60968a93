"""Deploys the CDK's cloud assembly to the embedded AWS with CloudFormation calls.

`cdk deploy` would take twenty seconds instead of one, because it bootstraps the temporary account, compares the stack
with one that does not exist, and polls only every few seconds.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from duetime_local.cloud_assembly import packed
from duetime_local.emulator import differences
from duetime_local.emulator.server import ACCOUNT, REGION
from duetime_local.project import STACK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_cdk.layers.build import Layer
    from duetime_local.cloud_assembly import Assembly
    from duetime_local.emulator import Emulator

BUCKET = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
"""The bucket in which the CDK's default synthesizer expects assets; in AWS, `cdk bootstrap` creates this bucket."""
BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION = "30"
"""A bootstrap version that the template accepts (6 or later)."""
TEMPLATE = "template.json"
HANDLERS, TYPES = "Handlers", "Types"
"""In the stack, the names of the layers with the user's package and its task types."""
POLL_SECONDS = 0.05


class StackFailed(RuntimeError):
    """CloudFormation did not create or update the stack."""

    def __init__(self, status: str, reasons: list[str]) -> None:
        super().__init__("\n".join([f"the stack is {status}:", *reasons]))


@dataclass(frozen=True, slots=True)
class Deployment:
    """The deployed stack."""

    api_url: str
    outputs: dict[str, str]
    """The stack's outputs, such as the names of its table, queues and functions."""
    resources: int
    ids: Mapping[str, str]
    """Physical resource ids by logical id."""
    template: Mapping[str, Any]
    watch_url: str = ""
    """The WebSocket URL for live updates."""


def deploy(emulator: Emulator, assembly: Assembly, handlers: Mapping[str, Layer] | None = None) -> Deployment:
    """Create the stack, or update the stack that the emulator loaded from its data folder.

    Args:
        emulator: the emulator to deploy to.
        assembly: the synthesized stack.
        handlers: the layers of the user's packages by name, which replace the layers in the assembly.

    Raises:
        StackFailed: CloudFormation cannot create or update the stack.
    """
    template = differences.with_fixed_addresses(assembly.template)
    _bootstrap(emulator)
    storage = emulator.client("s3")
    for part, layer in (handlers or {}).items():
        resource = layer_resource(template, part)
        if resource is not None:
            key = f"{layer.fingerprint}.zip"
            template["Resources"][resource]["Properties"]["Content"]["S3Key"] = key
            storage.put_object(Bucket=BUCKET, Key=key, Body=packed(layer.folder))
    for asset in assembly.assets:
        storage.put_object(Bucket=BUCKET, Key=asset.key, Body=asset.content())
    storage.put_object(Bucket=BUCKET, Key=TEMPLATE, Body=json.dumps(template).encode())
    _request(emulator, f"{emulator.endpoint_url}/{BUCKET}/{TEMPLATE}")
    description = _finished(emulator)
    resources = emulator.client("cloudformation").describe_stack_resources(StackName=STACK)["StackResources"]
    ids = {resource["LogicalResourceId"]: resource.get("PhysicalResourceId", "") for resource in resources}
    differences.complete_deployment(emulator, template, ids)
    outputs = {output["OutputKey"]: output["OutputValue"] for output in description.get("Outputs", [])}
    api_url = differences.api_url(emulator, outputs["ApiId"])
    watch_url = differences.watch_url(emulator, outputs["LiveUrl"])
    return Deployment(api_url, outputs, len(ids), ids, template, watch_url)


def _bootstrap(emulator: Emulator) -> None:
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    emulator.client("ssm").put_parameter(Name=BOOTSTRAP, Value=BOOTSTRAP_VERSION, Type="String", Overwrite=True)


def layer_resource(template: Mapping[str, Any], part: str) -> str | None:
    """Return the logical id of a layer in the stack; `None` if there is no such layer."""
    path = f"{STACK}/Layers/{part}/Resource"
    ids = (name for name, body in template["Resources"].items() if body.get("Metadata", {}).get("aws:cdk:path") == path)
    return next(ids, None)


def _request(emulator: Emulator, template_url: str) -> None:
    """Request the creation of the stack, or an update if the data folder already contains the stack."""
    cloudformation = emulator.client("cloudformation")
    arguments: dict[str, Any] = {
        "StackName": STACK,
        "TemplateURL": template_url,
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"],
    }
    try:
        cloudformation.create_stack(**arguments)
    except cloudformation.exceptions.AlreadyExistsException:
        try:
            cloudformation.update_stack(**arguments)
        except ClientError as error:
            if "No updates" not in str(error):
                raise


def _finished(emulator: Emulator) -> Mapping[str, Any]:
    """Wait until the stack is created or updated, and return its description."""
    cloudformation = emulator.client("cloudformation")
    while True:
        (description,) = cloudformation.describe_stacks(StackName=STACK)["Stacks"]
        status = description["StackStatus"]
        if not status.endswith("IN_PROGRESS"):
            break
        time.sleep(POLL_SECONDS)
    if status not in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}:
        raise StackFailed(status, _reasons(emulator))
    return description


def _reasons(emulator: Emulator) -> list[str]:
    """Return a line with the name and the reason for each failed resource."""
    events = emulator.client("cloudformation").describe_stack_events(StackName=STACK)["StackEvents"]
    return [
        f"  {event.get('LogicalResourceId')}: {event.get('ResourceStatusReason')}"
        for event in events
        if "FAILED" in event.get("ResourceStatus", "")
    ]
