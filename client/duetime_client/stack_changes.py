"""The changes in a CloudFormation change set, and which of them would lose data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CONTENTS: Mapping[str, str] = {
    "AWS::DynamoDB::Table": "items: tasks, schedules and everything else that duetime stores",
    "AWS::DynamoDB::GlobalTable": "items",
    "AWS::S3::Bucket": "objects: large payloads and results, or the archive",
    "AWS::SecretsManager::Secret": "a secret: receivers that verify signed calls need the new one",
    "AWS::SQS::Queue": "messages in transit",
    "AWS::Logs::LogGroup": "logs",
    "AWS::SNS::Topic": "subscriptions",
    "AWS::ApiGatewayV2::Api": "an address: clients need the new one",
    "AWS::StepFunctions::StateMachine": "running topologies",
    "AWS::EC2::Volume": "a file system",
    "AWS::EFS::FileSystem": "files",
    "AWS::KMS::Key": "a key: data encrypted with it cannot be read without it",
    "AWS::Kinesis::Stream": "records",
    "AWS::OpenSearchService::Domain": "documents",
    "AWS::RDS::DBCluster": "databases",
    "AWS::RDS::DBInstance": "databases",
    "AWS::Cognito::UserPool": "users",
    "AWS::SSM::Parameter": "a value",
}
"""The content that is lost when a resource is replaced, by resource type, including types that only projects use."""


class Loss(StrEnum):
    """How a stack loses a resource."""

    DELETED = "is deleted"
    REPLACED = "is replaced by an empty one, and deleted"
    ABANDONED = "is removed from the stack; it is kept, but no longer used"
    REPLACED_AND_KEPT = "is replaced by an empty one; the old one is kept, but no longer used"
    UNCERTAIN = "may be replaced by an empty one: CloudFormation does not know in advance"


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """The change to one resource."""

    logical_id: str
    type: str
    action: str
    """`Add`, `Modify`, `Remove`, `Import` or `Dynamic`."""
    replacement: str = ""
    """For `Modify`: `True`, `False` or `Conditional`."""
    policy_action: str = ""
    """The policy for a removed or replaced resource, such as `Retain` or `ReplaceAndDelete`."""
    physical_id: str = ""
    causes: tuple[str, ...] = ()
    """The properties whose change causes the replacement."""

    @property
    def is_replacement(self) -> bool:
        """Whether the resource is, or may be, replaced."""
        return self.replacement in {"True", "Conditional"} or self.action == "Dynamic"

    @property
    def loss(self) -> Loss | None:
        """How the stack loses the resource's content; `None` if no content is lost."""
        is_kept = "Retain" in self.policy_action or "Snapshot" in self.policy_action
        if self.action == "Remove":
            return Loss.ABANDONED if is_kept else Loss.DELETED
        if self.action == "Dynamic" or self.replacement == "Conditional":
            return Loss.UNCERTAIN
        if self.action == "Modify" and self.replacement == "True":
            return Loss.REPLACED_AND_KEPT if is_kept else Loss.REPLACED
        return None


@dataclass(frozen=True, slots=True)
class StackChanges:
    """All changes in a change set."""

    resources: Sequence[ResourceChange]

    @property
    def losses(self) -> Sequence[ResourceChange]:
        """The changes that would lose data, addresses or running work."""
        return [each for each in self.resources if each.loss is not None and each.type in CONTENTS]

    def counts(self) -> Mapping[str, int]:
        """The numbers of resources added, imported, changed, replaced and removed; zeros are omitted."""
        names = [_kind_of(each) for each in self.resources]
        return {
            name: names.count(name) for name in ("added", "imported", "changed", "replaced", "removed") if name in names
        }

    def lines(self) -> list[str]:
        """A line for each change, grouped by kind."""
        order = ("removed", "replaced", "changed", "imported", "added")
        ordered = sorted(self.resources, key=lambda each: (order.index(_kind_of(each)), each.logical_id))
        return [f"{_kind_of(each):<8}  {each.type}  {each.logical_id}" for each in ordered]

    def loss_lines(self) -> list[str]:
        """A line for each loss, with the lost content and the cause."""
        lines = []
        for each in self.losses:
            name = f"{each.type} {each.physical_id or each.logical_id}"
            cause = f" ({', '.join(each.causes)} changes)" if each.causes else ""
            lines.append(f"{name} {each.loss}{cause}. It holds {CONTENTS[each.type]}.")
        return lines


def changes_of(descriptions: Iterable[Mapping[str, Any]]) -> StackChanges:
    """Parse the pages of `DescribeChangeSet`."""
    return StackChanges(
        [
            _change_of(change["ResourceChange"])
            for page in descriptions
            for change in page.get("Changes", ())
            if "ResourceChange" in change
        ]
    )


def is_empty(descriptions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a change set is empty.

    CloudFormation fails a change set without changes, and the CDK may have deleted it. A change set that changes only
    outputs is complete and changes no resource.
    """
    return not descriptions or descriptions[0].get("Status") == "FAILED"


def _change_of(resource: Mapping[str, Any]) -> ResourceChange:
    details = resource.get("Details", ())
    targets = [detail.get("Target", {}) for detail in details]
    recreating = {
        str(target.get("Name") or target.get("Attribute"))
        for target in targets
        if target.get("RequiresRecreation", "Never") != "Never"
    }
    return ResourceChange(
        logical_id=resource["LogicalResourceId"],
        type=resource["ResourceType"],
        action=resource["Action"],
        replacement=resource.get("Replacement", ""),
        policy_action=resource.get("PolicyAction", ""),
        physical_id=resource.get("PhysicalResourceId", ""),
        causes=tuple(sorted(recreating)),
    )


def _kind_of(change: ResourceChange) -> str:
    if change.is_replacement:
        return "replaced"
    return {"Add": "added", "Remove": "removed", "Import": "imported"}.get(change.action, "changed")
