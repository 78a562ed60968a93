"""Creates the bucket for payloads and results that are too large for an item of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from aws_cdk import Acknowledgment, Aws, Duration, Stack, Validations
from aws_cdk import aws_s3 as s3
from constructs import Construct

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import (
    ABANDONED_UPLOAD_DAYS,
    CONTENT_OUTLIVES_RECORD,
    UNREFERENCED_OBJECT_LIFE_DAYS,
)
from duetime.domain.times import DAY
from duetime.domain.uploads import UPLOADS
from duetime_cdk.bucket_replication import BucketReplication
from duetime_cdk.private_bucket import private_bucket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import CfnElement

    from duetime_cdk.environments import Environment
    from duetime_cdk.lambda_function import LambdaFunction


_OBJECTS = "Objects are named after tasks, which cannot be listed in a policy; it is our own bucket"


class Content(Construct):
    """The bucket for large contents; an object is written before its task's record, and expires after the record."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_)
        self.bucket: s3.IBucket = (
            s3.Bucket.from_bucket_name(self, "Bucket", environment.content_bucket)
            if environment.content_bucket
            else self._created(environment)
        )
        self.replication = (
            BucketReplication(self, "Replication", environment=environment) if environment.regions else None
        )
        if self.replication:
            self.replication.read(self.bucket)

    def _created(self, environment: Environment) -> s3.Bucket:
        key, value = schema.EXPIRING_TAG
        kept = environment.longest_retention_days + CONTENT_OUTLIVES_RECORD // DAY
        _, unreferenced = schema.UNREFERENCED_TAG
        return private_bucket(
            self,
            environment=environment,
            lifecycle_rules=[
                # Objects are rewritten with the tag when their task ends, so their age counts from that time.
                s3.LifecycleRule(tag_filters={key: value}, expiration=Duration.days(kept)),
                # Objects without a record were left behind by a writer that crashed or was rejected.
                s3.LifecycleRule(
                    tag_filters={key: unreferenced}, expiration=Duration.days(UNREFERENCED_OBJECT_LIFE_DAYS)
                ),
                # An upload is copied to the contents of the task that is created with it.
                s3.LifecycleRule(prefix=UPLOADS, expiration=Duration.days(ABANDONED_UPLOAD_DAYS)),
            ],
            why_unlogged="Only the functions read and write it, and they log each access with the task",
            is_versioned=bool(environment.regions),
        )

    @property
    def url(self) -> str:
        """The prefix of the URLs that the API signs for the bucket's objects."""
        return f"https://s3.{Aws.REGION}.{Aws.URL_SUFFIX}/{self.bucket.bucket_name}/"

    def accept_uploads(self, origins: Sequence[str]) -> None:
        """Let pages from these origins upload and read payloads with signed requests.

        An existing bucket has its own rules.
        """
        if isinstance(self.bucket, s3.Bucket):
            self.bucket.add_cors_rule(
                allowed_origins=list(origins),
                allowed_methods=[s3.HttpMethods.GET, s3.HttpMethods.PUT],
                allowed_headers=["content-type", "if-none-match"],
            )

    def grant_access(self, function: LambdaFunction, *, reads: bool = True) -> None:
        """Let a function write and tag objects, and optionally read them, but not delete them.

        Without permission to list the bucket, a missing object is reported as `AccessDenied`, as if the policy were
        wrong (Source: S3 API Reference, GetObject).
        """
        reading = ["s3:GetObject"] if reads else []
        function.allow([*reading, "s3:PutObject", "s3:PutObjectTagging"], [self.bucket.arn_for_objects("*")])
        function.allow(["s3:ListBucket"], [self.bucket.bucket_arn])
        self._acknowledge(function)

    def grant_deletion(self, function: LambdaFunction) -> None:
        """Let a function delete the objects of tasks that a user deletes."""
        function.allow(["s3:DeleteObject"], [self.bucket.arn_for_objects("*")])

    def _acknowledge(self, function: LambdaFunction) -> None:
        if self.bucket.node.default_child is None:
            # The user's settings name an existing bucket, so its name is known.
            resource = f"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::{self.bucket.bucket_name}/*]"
            Validations.of(function.role).acknowledge(Acknowledgment(id=resource, reason=_OBJECTS))
            return
        logical_id = Stack.of(self).get_logical_id(cast("CfnElement", self.bucket.node.default_child))
        Validations.of(function.role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::<{logical_id}.Arn>/*]",
                reason=_OBJECTS,
            )
        )
