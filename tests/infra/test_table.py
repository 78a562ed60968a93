from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import (
    ABANDONED_UPLOAD_DAYS,
    CONTENT_OUTLIVES_RECORD,
    UNREFERENCED_OBJECT_LIFE_DAYS,
)
from duetime.domain.times import DAY
from duetime.domain.uploads import UPLOADS
from duetime_client.stack_changes import CONTENTS
from tests.infra.synthesis import referred

if TYPE_CHECKING:
    from tests.infra.synthesis import Properties, Synthesis


def the_table(synthesis: Synthesis) -> Properties:
    """Return the table."""
    (properties,) = synthesis.properties("AWS::DynamoDB::Table").values()
    return properties


def key_schema(partition: str, sort: str) -> list[Properties]:
    """Return a key schema as CloudFormation writes it."""
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


def test_the_keys_of_the_table_are_the_keys_of_the_schema(every: Synthesis) -> None:
    """The table's keys are strings with the names that the stores write."""
    table = the_table(every)
    assert table["KeySchema"] == key_schema(schema.PARTITION_KEY, schema.SORT_KEY)
    assert {attribute["AttributeType"] for attribute in table["AttributeDefinitions"]} == {"S"}


def test_the_indexes_of_the_table_are_the_indexes_of_the_schema(every: Synthesis) -> None:
    """Every index of the schema exists with its keys, and projects only keys."""
    indexes = the_table(every)["GlobalSecondaryIndexes"]
    assert {index["IndexName"] for index in indexes} == {index.name for index in schema.INDEXES}
    partitions = {index.name: index.partition_key for index in schema.INDEXES}
    for index in indexes:
        assert index["KeySchema"] == key_schema(partitions[index["IndexName"]], schema.SORT_KEY)
        assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_table_is_on_demand_and_expires_records(every: Synthesis) -> None:
    """The table has on-demand capacity, and finished records expire by the schema's attribute."""
    table = the_table(every)
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TimeToLiveSpecification"] == {"AttributeName": schema.TTL, "Enabled": True}


def test_table_is_encrypted_recoverable_and_streamed(every: Synthesis) -> None:
    """The table is encrypted, can be restored to any second, and streams old and new images."""
    table = the_table(every)
    assert table["SSESpecification"] == {"SSEEnabled": True}
    assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_data_of_a_protected_stack_is_kept_after_its_deletion(every: Synthesis) -> None:
    """If a protected stack is deleted, its resources with data are kept; a trial stack's resources are deleted.

    If a stack's first deployment fails, its resources are deleted as well, because they would block the next
    deployment.
    """
    protected = every.environment.name in {"staging", "prod"}
    assert the_table(every)["DeletionProtectionEnabled"] is protected
    for type_ in ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret", "AWS::Logs::LogGroup"):
        for resource in every.of_type(type_).values():
            assert resource["DeletionPolicy"] == ("RetainExceptOnCreate" if protected else "Delete")
            assert resource["UpdateReplacePolicy"] == ("Retain" if protected else "Delete")


def test_a_trial_stack_can_be_deleted_with_objects_in_its_bucket(cloud: Synthesis) -> None:
    """A bucket that is not kept is emptied before its deletion, because CloudFormation does not delete full buckets."""
    empties = cloud.of_type("Custom::S3AutoDeleteObjects")
    assert len(empties) == (0 if cloud.environment.protected else 1)


def test_bucket_is_private_and_encrypted(every: Synthesis) -> None:
    """Objects are encrypted, private and accessible only over TLS; incomplete uploads and old objects are deleted."""
    ((id_, bucket),) = [each for each in every.properties("AWS::S3::Bucket").items() if each[0].startswith("Content")]
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    halves, ended, unreferenced, uploads = bucket["LifecycleConfiguration"]["Rules"]
    assert halves["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    key, value = schema.EXPIRING_TAG
    assert ended["TagFilters"] == [{"Key": key, "Value": value}]
    assert ended["ExpirationInDays"] == every.environment.retention_days + CONTENT_OUTLIVES_RECORD // DAY
    key, value = schema.UNREFERENCED_TAG
    assert unreferenced["TagFilters"] == [{"Key": key, "Value": value}]
    assert unreferenced["ExpirationInDays"] == UNREFERENCED_OBJECT_LIFE_DAYS
    assert (uploads["Prefix"], uploads["ExpirationInDays"]) == (UPLOADS, ABANDONED_UPLOAD_DAYS)
    (policy,) = [each for each in every.properties("AWS::S3::BucketPolicy").values() if referred(each["Bucket"]) == id_]
    (statement,) = [one for one in policy["PolicyDocument"]["Statement"] if one["Effect"] == "Deny"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_deploy_knows_each_resource_type_with_a_retention_policy(every: Synthesis) -> None:
    """`duetime deploy` knows each type of resource with a retention policy."""
    resources = every.template["Resources"].values()
    kept = {body["Type"] for body in resources if body.get("DeletionPolicy", "Delete") != "Delete"}
    # A version is kept as long as its function exists, because attempts may be running in the version.
    assert kept - {"AWS::Lambda::Version"} <= set(CONTENTS)
    assert {"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::ApiGatewayV2::Api"} <= set(CONTENTS)
