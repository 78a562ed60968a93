"""Creates the event source mapping from the table's stream to the function `broadcast`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from duetime.adapters.dynamodb import schema
from duetime_cdk.encryption import key_of, queue_encryption

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment
    from duetime_cdk.lambda_function import LambdaFunction
    from duetime_cdk.tasks_table import Tables

READ = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
"""Actions that Lambda performs on the stream with the function's role (Source: AWS Lambda Developer Guide, "Using
Lambda with DynamoDB"; `dynamodb:ListStreams` is needed only for AWS's console)."""
OLDEST = Duration.hours(23)
"""Age at which records count as lost; the stream keeps records for 24 hours (Source: DynamoDB Developer Guide)."""
_REPEATS = -1
"""Number of retries; -1 retries until a batch is too old. The function catches errors that must not be retried."""


class TableStream(Construct):
    """Delivers changes of tasks and schedules from the stream to the function in batches, in order for each record.

    A failed batch is halved, so that a record that always fails delays only later records of its shard. When Lambda
    discards a record, the record's position in the stream is sent to a queue.
    """

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, tables: Tables, function: LambdaFunction
    ) -> None:
        super().__init__(scope, id_)
        self.lost = self._queue(environment)
        stream = tables.tasks.table_stream_arn
        assert stream is not None  # noqa: S101 - `Tables` turns it on
        function.allow(READ, [stream])
        function.allow(["sqs:SendMessage"], [self.lost.queue_arn])
        on_failure = lambda_.CfnEventSourceMapping.OnFailureProperty(destination=self.lost.queue_arn)
        mapping = lambda_.CfnEventSourceMapping(
            self,
            "Mapping",
            function_name=function.live.function_arn,
            event_source_arn=stream,
            # The mapping starts at the first change, so that counts include everything created before the mapping.
            starting_position="TRIM_HORIZON",
            batch_size=environment.broadcast_batch_size,
            maximum_batching_window_in_seconds=environment.stream_seconds,
            parallelization_factor=environment.broadcast_concurrency,
            bisect_batch_on_function_error=True,
            maximum_record_age_in_seconds=round(OLDEST.to_seconds()),
            maximum_retry_attempts=_REPEATS,
            destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(on_failure=on_failure),
            filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
                filters=[
                    lambda_.CfnEventSourceMapping.FilterProperty(pattern=json.dumps(pattern))
                    for pattern in schema.STREAM_FILTERS
                ]
            ),
        )
        # Lambda checks the role's read permission when the mapping is created.
        mapping.node.add_dependency(function.role)

    def _queue(self, environment: Environment) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "Lost",
            retention_period=Duration.days(14),
            encryption=queue_encryption(key_of(self, environment)),
            encryption_master_key=key_of(self, environment),
            enforce_ssl=True,
        )
        reason = "This is a dead-letter queue itself; an alarm reports its messages, and a person handles them"
        Validations.of(queue).acknowledge(
            Acknowledgment(id="AwsSolutions-SQS3", reason=reason),
            Acknowledgment(id="Serverless-SQSRedrivePolicy", reason=reason),
        )
        return queue
