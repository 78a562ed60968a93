"""The bucket for payloads and results that are too large for an item of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from aws_cdk import Acknowledgment, Duration, Stack, Validations
from aws_cdk import aws_s3 as s3
from constructs import Construct

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import CONTENT_OUTLIVES_RECORD, UNREFERENCED_OBJECT_LIFE_DAYS
from duetime.domain.times import DAY
from duetime_cdk.private_bucket import private_bucket

if TYPE_CHECKING:
    from aws_cdk import CfnElement

    from duetime_cdk.environments import Environment
    from duetime_cdk.lambda_function import LambdaFunction


class Content(Construct):
    """An object is written before the record that names it, and expires some time after its task's record has."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_)
        key, value = schema.EXPIRING_TAG
        kept = environment.retention_days + CONTENT_OUTLIVES_RECORD // DAY
        _, unreferenced = schema.UNREFERENCED_TAG
        self.bucket = private_bucket(
            self,
            environment=environment,
            lifecycle_rules=[
                # An object is written again, with the tag, when its task ends: its age counts from then.
                s3.LifecycleRule(tag_filters={key: value}, expiration=Duration.days(kept)),
                # An object that no record refers to was left by a writer that vanished or was rejected.
                s3.LifecycleRule(
                    tag_filters={key: unreferenced}, expiration=Duration.days(UNREFERENCED_OBJECT_LIFE_DAYS)
                ),
            ],
            why_unlogged="Only the functions read and write it, and each access is logged with its task by them",
        )

    def grant_access(self, function: LambdaFunction, *, reads: bool = True) -> None:
        """Let a function write and tag any object, and read it unless it never does, but not delete it: see below.

        Who may not list the bucket is told `AccessDenied` of an object that is not there, as if its policy were wrong
        (Source: S3 API Reference, GetObject): nobody lists it.
        """
        reading = ["s3:GetObject"] if reads else []
        function.allow([*reading, "s3:PutObject", "s3:PutObjectTagging"], [self.bucket.arn_for_objects("*")])
        function.allow(["s3:ListBucket"], [self.bucket.bucket_arn])
        self._acknowledge(function)

    def grant_deletion(self, function: LambdaFunction) -> None:
        """Let a function delete objects: whose task its user deletes."""
        function.allow(["s3:DeleteObject"], [self.bucket.arn_for_objects("*")])

    def _acknowledge(self, function: LambdaFunction) -> None:
        logical_id = Stack.of(self).get_logical_id(cast("CfnElement", self.bucket.node.default_child))
        Validations.of(function.role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::<{logical_id}.Arn>/*]",
                reason="Objects are named after tasks, which cannot be listed in a policy; it is our own bucket",
            )
        )
