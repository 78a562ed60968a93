"""Reads the resources and outputs of a deployed stack from CloudFormation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KEPT = frozenset({"Retain", "RetainExceptOnCreate"})


class StackUnreadable(Exception):
    """The outputs or resources of a stack cannot be read from CloudFormation."""

    def __init__(self, stack: str, reason: object) -> None:
        super().__init__(f"the stack {stack} cannot be read: {reason}")


@dataclass(frozen=True, slots=True)
class StackResource:
    """A resource of a stack.

    Attributes:
        logical_id: the resource's name in the template.
        physical_id: the resource's name or ARN.
        is_kept: whether the resource is kept when the stack is deleted.
    """

    logical_id: str
    type: str
    physical_id: str
    is_kept: bool


def outputs_of(stack: str, region: str = "") -> Mapping[str, str]:
    """The outputs of a stack, in the given Region or in the session's Region.

    Raises:
        StackUnreadable: the stack cannot be read.
    """
    try:
        (found,) = boto3.client("cloudformation", region_name=region or None).describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise StackUnreadable(stack, error) from error
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", ())}


def resources_of(stack: str) -> Sequence[StackResource]:
    """The resources of a stack, with the deletion policies in the template from which it was deployed.

    Raises:
        StackUnreadable: the stack cannot be read.
    """
    try:
        client = boto3.client("cloudformation")
        template: Any = client.get_template(StackName=stack, TemplateStage="Processed")["TemplateBody"]
        pages = client.get_paginator("list_stack_resources").paginate(StackName=stack)
        found = [each for page in pages for each in page["StackResourceSummaries"]]
    except (BotoCoreError, ClientError) as error:
        raise StackUnreadable(stack, error) from error
    described: Mapping[str, Mapping[str, Any]] = template["Resources"]
    return [
        StackResource(
            each["LogicalResourceId"],
            each["ResourceType"],
            each.get("PhysicalResourceId", ""),
            described.get(each["LogicalResourceId"], {}).get("DeletionPolicy") in _KEPT
            # A version is deleted with its function.
            and each["ResourceType"] != "AWS::Lambda::Version",
        )
        for each in found
    ]
