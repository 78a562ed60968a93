"""Creates the tasks table, as defined in `duetime.adapters.dynamodb.schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from duetime.adapters.dynamodb import schema
from duetime_cdk.encryption import key_of, table_encryption
from duetime_cdk.removal_policies import removal_of

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment


class Tables(Construct):
    """A single table, new or existing, with tasks by due minute, and separate items that the trigger need not read."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_)
        environment.check_region(Stack.of(self).region)
        self.tasks: dynamodb.ITable = self._existing(environment) if environment.table else self._created(environment)

    def _existing(self, environment: Environment) -> dynamodb.ITable:
        """A table that the stack does not own; the stack does not change the table's stream, TTL and backup."""
        return dynamodb.Table.from_table_attributes(
            self, "Tasks", table_name=environment.table, table_stream_arn=environment.table_stream_arn
        )

    def _created(self, environment: Environment) -> dynamodb.Table:
        key = key_of(self, environment)
        table = dynamodb.Table(
            self,
            "Tasks",
            partition_key=_string(schema.PARTITION_KEY),
            sort_key=_string(schema.SORT_KEY),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=schema.TTL,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            encryption=table_encryption(key),
            encryption_key=key,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=environment.protected,
            removal_policy=removal_of(environment),
        )
        for index in schema.INDEXES:
            table.add_global_secondary_index(
                index_name=index.name,
                partition_key=_string(index.partition_key),
                sort_key=_string(schema.SORT_KEY),
                projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            )
        return table

    def arns_of(self, *indexes: schema.Index) -> list[str]:
        """The ARNs of indexes, so that grants need no wildcard."""
        return [f"{self.tasks.table_arn}/index/{index.name}" for index in indexes]


def _string(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
