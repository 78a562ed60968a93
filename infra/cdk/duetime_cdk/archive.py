"""Creates the archive of ended tasks: its bucket, and the mapping of removed records to the archive function."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from aws_cdk import Acknowledgment, Duration, Stack, Validations
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from duetime.adapters.dynamodb import schema
from duetime.domain.archive_objects import KEPT_DAYS_TAG, TASKS_PREFIX, UNREADABLE_PREFIX
from duetime_cdk.private_bucket import private_bucket
from duetime_cdk.table_stream import OLDEST, READ

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import CfnElement

    from duetime_cdk.bucket_replication import BucketReplication
    from duetime_cdk.environments import Environment
    from duetime_cdk.lambda_function import LambdaFunction
    from duetime_cdk.tasks_table import Tables

BATCH_SIZE = 1000
"""Maximum number of removed records per invocation; the records must fit into 6 MB."""
BATCH_SECONDS = 300
"""Batching window in seconds, the longest that Lambda allows, because fewer, larger objects cost less."""
REPLICATED = (TASKS_PREFIX, UNREADABLE_PREFIX, "aws/lambda/")
"""Key prefixes of all objects except query results: the objects that the function writes, and the batches that Lambda
discards (Source: AWS Lambda Developer Guide, "Retain discarded records")."""
*OBJECTS, GIVEN_UP = (f"{prefix}*" for prefix in REPLICATED)
_INFREQUENT_AFTER = 30
"""Days until objects move to the infrequent-access class, which is the earliest that S3 allows."""
_COLD_AFTER = 120
_QUERY_RESULTS_DAYS = 7
RESULTS_PREFIX = "query-results/"


@dataclass(frozen=True, slots=True)
class _Age:
    """The age at which objects move to a cheaper storage class."""

    storage: s3.StorageClass
    days: int


class ArchiveBucket(Construct):
    """The archive's bucket, whose objects move to cheaper storage, and are deleted after the retention."""

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, replication: BucketReplication | None
    ) -> None:
        super().__init__(scope, id_)
        days = environment.longest_archive_days
        shorter = sorted({environment.archive_days, *environment.archive_days_by_type.values()} - {0, days})
        ages = [
            _Age(s3.StorageClass.INFREQUENT_ACCESS, _INFREQUENT_AFTER),
            _Age(s3.StorageClass.GLACIER_INSTANT_RETRIEVAL, _COLD_AFTER),
        ]
        self.bucket = private_bucket(
            self,
            environment=environment,
            lifecycle_rules=[
                s3.LifecycleRule(prefix=RESULTS_PREFIX, expiration=Duration.days(_QUERY_RESULTS_DAYS)),
                s3.LifecycleRule(
                    prefix="archive/",
                    expiration=Duration.days(days),
                    # Objects that are deleted soon do not move, because that would cost more than it saves.
                    transitions=[
                        s3.Transition(storage_class=each.storage, transition_after=Duration.days(each.days))
                        for each in ages
                        if days >= 2 * each.days
                    ],
                ),
                *(
                    s3.LifecycleRule(prefix=prefix, expiration=Duration.days(days))
                    for prefix in ("unreadable/", "aws/lambda/")
                ),
                # If several rules apply to an object, the rule with the shortest time removes it (Source: Amazon S3
                # User Guide, "Conflicting lifecycle actions").
                *(
                    s3.LifecycleRule(
                        prefix=TASKS_PREFIX, tag_filters={KEPT_DAYS_TAG: str(each)}, expiration=Duration.days(each)
                    )
                    for each in shorter
                ),
            ],
            is_versioned=replication is not None,
            why_unlogged="Only one function writes to it, and readers use roles of the account, whose access CloudTrail"
            " can log",
        )

        if replication:
            replication.read(self.bucket)

    def grant_rewriting(self, function: LambdaFunction) -> None:
        """Let a function remove rows from objects that contain tasks."""
        prefix = f"{TASKS_PREFIX}*"
        objects = self.bucket.arn_for_objects(prefix)
        function.allow(["s3:GetObject", "s3:PutObject", "s3:PutObjectTagging", "s3:DeleteObject"], [objects])
        function.allow(["s3:ListBucket"], [self.bucket.bucket_arn])
        _acknowledge(function, self.bucket, [prefix])


class ArchiveStream(Construct):
    """Delivers TTL-removed records to the function in large batches.

    A failed batch is redelivered until it is too old; then Lambda writes the complete batch to the bucket.
    """

    def __init__(
        self, scope: Construct, id_: str, *, tables: Tables, function: LambdaFunction, archive: ArchiveBucket
    ) -> None:
        super().__init__(scope, id_)
        stream = tables.tasks.table_stream_arn
        assert stream is not None  # noqa: S101 - `Tables` turns it on
        function.allow(READ, [stream])
        bucket = archive.bucket
        function.allow(["s3:PutObject"], [bucket.arn_for_objects(each) for each in (*OBJECTS, GIVEN_UP)])
        function.allow(["s3:PutObjectTagging"], [bucket.arn_for_objects(f"{TASKS_PREFIX}*")])
        # Lambda checks this permission before it writes a discarded batch.
        function.allow(["s3:ListBucket"], [bucket.bucket_arn])
        # The function reads attempts, payloads and results that are stored in separate items.
        function.allow(["dynamodb:GetItem", "dynamodb:Query"], [tables.tasks.table_arn])
        _acknowledge(function, bucket, [*OBJECTS, GIVEN_UP])
        on_failure = lambda_.CfnEventSourceMapping.OnFailureProperty(destination=bucket.bucket_arn)
        pattern = json.dumps(schema.REMOVED_TASKS_FILTER)
        mapping = lambda_.CfnEventSourceMapping(
            self,
            "Mapping",
            function_name=function.live.function_arn,
            event_source_arn=stream,
            starting_position="TRIM_HORIZON",
            batch_size=BATCH_SIZE,
            maximum_batching_window_in_seconds=BATCH_SECONDS,
            bisect_batch_on_function_error=True,
            maximum_record_age_in_seconds=round(OLDEST.to_seconds()),
            maximum_retry_attempts=-1,
            destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(on_failure=on_failure),
            filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
                filters=[lambda_.CfnEventSourceMapping.FilterProperty(pattern=pattern)]
            ),
        )
        # Lambda checks the role's read and write permissions when the mapping is created.
        mapping.node.add_dependency(function.role)


def _acknowledge(function: LambdaFunction, bucket: s3.Bucket, prefixes: Sequence[str]) -> None:
    logical_id = Stack.of(bucket).get_logical_id(cast("CfnElement", bucket.node.default_child))
    for prefix in prefixes:
        Validations.of(function.role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::<{logical_id}.Arn>/{prefix}]",
                reason="Objects are named after tasks, which cannot be listed in a policy; it is our own bucket",
            )
        )
