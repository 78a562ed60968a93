"""Creates a bucket without public access, which requires TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_s3 as s3

from duetime_cdk.encryption import bucket_encryption, key_of
from duetime_cdk.environments import LOCAL
from duetime_cdk.removal_policies import removal_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constructs import Construct

    from duetime_cdk.environments import Environment

_OLD_VERSIONS = s3.LifecycleRule(noncurrent_version_expiration=Duration.days(1), expired_object_delete_marker=True)


def private_bucket(
    scope: Construct,
    *,
    environment: Environment,
    lifecycle_rules: Sequence[s3.LifecycleRule],
    why_unlogged: str,
    is_versioned: bool = False,
) -> s3.Bucket:
    """Create a construct's bucket, which removes incomplete uploads after a day.

    Args:
        scope: the construct.
        environment: the settings, which determine the bucket's encryption, and whether the bucket outlives its stack.
        lifecycle_rules: when objects expire.
        why_unlogged: the reason for missing server access logs, for cdk-nag's report.
        is_versioned: whether S3 keeps replaced or deleted objects for another day, as replication requires.
    """
    key = key_of(scope, environment)
    bucket = s3.Bucket(
        scope,
        "Bucket",
        encryption=bucket_encryption(key),
        encryption_key=key,
        # A bucket key avoids a KMS request for each object.
        bucket_key_enabled=True if key else None,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=True,
        versioned=is_versioned,
        lifecycle_rules=[
            s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(1)),
            *([_OLD_VERSIONS] if is_versioned else []),
            *lifecycle_rules,
        ],
        removal_policy=removal_of(environment),
        # CloudFormation does not delete a bucket that has objects. The embedded AWS deletes the objects itself, and has
        # no custom resources.
        auto_delete_objects=not environment.protected and environment.name != LOCAL,
    )
    reason = f"{why_unlogged}; server access logs would cost more than the objects"
    Validations.of(bucket).acknowledge(Acknowledgment(id="AwsSolutions-S1", reason=reason))
    return bucket
