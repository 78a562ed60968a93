"""Replicates large contents and the archive between the buckets of a deployment in two Regions.

S3 accepts a replication rule only if both buckets exist. Therefore, each stack creates only a role, and `duetime region
replicate` creates the rules.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from aws_cdk import aws_s3 as s3

    from duetime_cdk.environments import Environment

_WHY = (
    "Objects, and buckets and keys of the other Region, have generated names; conditions restrict them to this account"
)
_COPIES_AT_ONCE = 16


class BucketReplication(Construct):
    """The role with which S3 replicates the objects of this Region's buckets.

    Source: Amazon S3 User Guide, "Setting up permissions for live replication".
    """

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_)
        stack = Stack.of(self)
        is_ours = {"StringEquals": {"aws:SourceAccount": stack.account}}
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("s3.amazonaws.com", conditions=is_ours))
        self._allow(
            ["s3:ReplicateObject", "s3:ReplicateDelete", "s3:ReplicateTags"],
            f"arn:{stack.partition}:s3:::*/*",
            {"StringEquals": {"aws:ResourceAccount": stack.account}},
        )
        if environment.kms_key_arn:
            through_s3 = {
                "StringEquals": {"kms:ViaService": [f"s3.{each}.amazonaws.com" for each in environment.regions]}
            }
            self._allow(["kms:Decrypt"], environment.kms_key_arn, through_s3)
            self._allow(["kms:Encrypt"], f"arn:{stack.partition}:kms:*:{stack.account}:key/*", through_s3)
        key = {"KmsKeyArn": environment.kms_key_arn} if environment.kms_key_arn else {}
        self.outputs = {"ReplicationRoleArn": self.role.role_arn, **key}
        """The stack's outputs that `RegionalBucket` needs."""
        Validations.of(self.role).acknowledge(Acknowledgment(id="AwsSolutions-IAM5", reason=_WHY))

    def read(self, bucket: s3.IBucket) -> None:
        """Let S3 replicate the objects of a bucket."""
        self._allow(["s3:GetReplicationConfiguration", "s3:ListBucket"], bucket.bucket_arn)
        self._allow(
            ["s3:GetObjectVersionForReplication", "s3:GetObjectVersionAcl", "s3:GetObjectVersionTagging"],
            bucket.arn_for_objects("*"),
        )

    def _allow(self, actions: Sequence[str], resource: str, conditions: Mapping[str, Any] | None = None) -> None:
        self.role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=[resource], conditions=conditions))


@dataclass(frozen=True, slots=True)
class RegionalBucket:
    """A bucket in one Region.

    Attributes:
        client: boto3 client for S3 in the bucket's Region.
        name: name of the bucket.
        role: ARN of the role that replicates its objects; empty if the stack was deployed without `regions`.
        key: ARN of the KMS key that encrypts the objects; empty if S3's own keys encrypt them.
        prefixes: key prefixes of the objects that are replicated.
    """

    client: Any
    name: str
    role: str
    key: str
    prefixes: tuple[str, ...] = ("",)

    @property
    def is_versioned(self) -> bool:
        """Whether the bucket keeps versions of its objects, as replication requires."""
        return bool(self.client.get_bucket_versioning(Bucket=self.name).get("Status") == "Enabled")

    def replicates_to(self, other: RegionalBucket) -> bool:
        """Whether the rules for replication to the other bucket exist."""
        try:
            found = self.client.get_bucket_replication(Bucket=self.name)["ReplicationConfiguration"]["Rules"]
        except self.client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "ReplicationConfigurationNotFoundError":
                raise
            return False
        wanted = f":s3:::{other.name}"
        active = [each for each in found if each["Status"] == "Enabled"]
        ours = {each["ID"] for each in active if each["Destination"]["Bucket"].endswith(wanted)}
        return {each["ID"] for each in self.rules_to(other)} <= ours

    def replicate_to(self, other: RegionalBucket) -> None:
        """Replicate writes and deletions from now on; other rules of the bucket are replaced."""
        rules = {"Role": self.role, "Rules": self.rules_to(other)}
        self.client.put_bucket_replication(Bucket=self.name, ReplicationConfiguration=rules)

    def rules_to(self, other: RegionalBucket) -> list[dict[str, Any]]:
        """The replication rules for this bucket's objects, one rule for each prefix."""
        partition = self.role.split(":")[1] if self.role else "aws"
        destination: dict[str, Any] = {"Bucket": f"arn:{partition}:s3:::{other.name}"}
        encrypted = {}
        if other.key:
            destination["EncryptionConfiguration"] = {"ReplicaKmsKeyID": other.key}
            encrypted = {"SourceSelectionCriteria": {"SseKmsEncryptedObjects": {"Status": "Enabled"}}}
        return [
            {
                "ID": f"duetime-{prefix or 'all'}",
                "Priority": number,
                "Status": "Enabled",
                "Filter": {"Prefix": prefix},
                "DeleteMarkerReplication": {"Status": "Enabled"},
                "Destination": destination,
                **encrypted,
            }
            for number, prefix in enumerate(self.prefixes, 1)
        ]

    def copy_missing(self, other: RegionalBucket, progress: Callable[[int], None]) -> int:
        """Copy objects that were written before the rules existed; returns the number of copied objects.

        Args:
            other: the bucket that may lack the objects.
            progress: called with 1 for each object that was examined.
        """
        present = {*other.keys()}

        def copy(key: str) -> int:
            if is_missing := key not in present:
                other.client.copy_object(Bucket=other.name, Key=key, CopySource={"Bucket": self.name, "Key": key})
            progress(1)
            return int(is_missing)

        with ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
            return sum(pool.map(copy, self.keys()))

    def keys(self) -> Iterator[str]:
        """The keys of all objects to which the rules apply."""
        for prefix in self.prefixes:
            for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix):
                yield from (each["Key"] for each in page.get("Contents", []))
