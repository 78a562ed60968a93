"""Sets up encryption at rest, with AWS's keys or with one customer key for everything that stores data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from constructs import Construct

    from duetime_cdk.environments import Environment

_READ = ("kms:Decrypt",)
_READ_AND_WRITE = ("kms:Decrypt", "kms:GenerateDataKey")
ACTIONS: Mapping[str, tuple[str, ...]] = {
    # A table's key encrypts the keys of its partitions (Source: DynamoDB Developer Guide, "Authorizing use of your
    # customer managed key").
    "dynamodb": (*_READ_AND_WRITE, "kms:Encrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:DescribeKey"),
    # Senders generate data keys, and receivers decrypt them (Source: SQS Developer Guide, "Key management").
    "sqs": _READ_AND_WRITE,
    "s3": _READ_AND_WRITE,
    "secretsmanager": _READ,
}
"""Key permissions that a role needs to use a service, by the prefix of its actions."""


def key_of(scope: Construct, environment: Environment) -> kms.IKey | None:
    """The customer's key, as a construct; `None` if AWS's own keys encrypt everything."""
    if not environment.kms_key_arn:
        return None
    known = scope.node.try_find_child("Key")
    return known or kms.Key.from_key_arn(scope, "Key", environment.kms_key_arn)  # type: ignore[return-value]  # the child is a key


def table_encryption(key: kms.IKey | None) -> dynamodb.TableEncryption:
    """The encryption of a table; without a customer key, an AWS key in this account, whose use CloudTrail shows."""
    return dynamodb.TableEncryption.CUSTOMER_MANAGED if key else dynamodb.TableEncryption.AWS_MANAGED


def queue_encryption(key: kms.IKey | None) -> sqs.QueueEncryption:
    """The encryption of a queue."""
    return sqs.QueueEncryption.KMS if key else sqs.QueueEncryption.SQS_MANAGED


def bucket_encryption(key: kms.IKey | None) -> s3.BucketEncryption:
    """The encryption of a bucket."""
    return s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED


def grant_use(role: iam.Role, environment: Environment, services: Collection[str]) -> None:
    """Let a role use the customer's key only through the services that the role may use.

    Args:
        role: the role.
        environment: the settings, which name the key.
        services: action prefixes of the services that the role may use.
    """
    region = Stack.of(role).region
    if not environment.kms_key_arn:
        return
    for service in sorted(ACTIONS.keys() & {*services}):
        role.add_to_policy(
            iam.PolicyStatement(
                actions=list(ACTIONS[service]),
                resources=[environment.kms_key_arn],
                conditions={"StringEquals": {"kms:ViaService": f"{service}.{region}.amazonaws.com"}},
            )
        )
