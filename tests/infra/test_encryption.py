"""Tests that a customer managed key encrypts all data, and that each function has the key permissions that it needs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime_cdk.encryption import ACTIONS
from duetime_cdk.environments import PROD
from duetime_cdk.errors import UnsafeEnvironment
from tests.infra.synthesis import Synthesis, as_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_cdk.layers.build import Layers

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ENCRYPTED = {
    "AWS::DynamoDB::Table": ("SSESpecification", "KMSMasterKeyId"),
    "AWS::SQS::Queue": ("KmsMasterKeyId",),
    "AWS::S3::Bucket": (
        "BucketEncryption",
        "ServerSideEncryptionConfiguration",
        0,
        "ServerSideEncryptionByDefault",
        "KMSMasterKeyID",
    ),
    "AWS::Logs::LogGroup": ("KmsKeyId",),
    "AWS::SecretsManager::Secret": ("KmsKeyId",),
}
"""The property that names the key, by type of resource."""


@pytest.fixture(scope="module")
def own_key(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    """Return an environment with most optional parts and a customer managed key."""
    environment = replace(
        PROD,
        kms_key_arn=KEY,
        intake_owner="intake",
        pulled_types={"pulled": ("*",)},
        event_bus="default",
        console=True,
        api_keys=True,
    )
    return Synthesis(environment, layers, tmp_path_factory.mktemp("own-key"))


def value_at(properties: Mapping[str, Any], path: tuple[str | int, ...]) -> object:
    """Return the value at a path in a resource's properties, or `None`."""
    found: Any = properties
    for part in path:
        try:
            found = found[part]
        except (KeyError, IndexError):
            return None
    return found


def uses_of(synthesis: Synthesis, function: str) -> dict[str, set[str]]:
    """Return a function's allowed actions with the key, by the service through which it uses the key."""
    found: dict[str, set[str]] = {}
    for statement in synthesis.statements_of(function):
        actions = {action for action in as_list(statement["Action"]) if action.startswith("kms:")}
        if actions:
            assert statement["Resource"] == KEY
            via = json.dumps(statement["Condition"]["StringEquals"]["kms:ViaService"])
            service = next(each for each in ACTIONS if f"{each}." in via)
            found.setdefault(service, set()).update(actions)
    return found


@pytest.mark.parametrize("type_", ENCRYPTED)
def test_every_resource_with_data_is_encrypted_with_the_key(own_key: Synthesis, type_: str) -> None:
    """The stack's tables, queues, buckets, log groups and secrets are encrypted with the key."""
    found = {name: value_at(each, ENCRYPTED[type_]) for name, each in own_key.properties(type_).items()}
    assert found
    assert {name: key for name, key in found.items() if key != KEY} == {}


def test_each_function_uses_the_key_only_through_its_services(own_key: Synthesis) -> None:
    """The egress only decrypts secrets, the console has no access, and no function may use the key directly."""
    used = {name: set(uses_of(own_key, name)) for name in own_key.functions()}
    assert used["egress"] == {"secretsmanager"}
    assert used["console"] == set()
    assert used["api"] == {"dynamodb", "sqs", "s3", "secretsmanager"}
    assert used["archive"] == {"dynamodb", "s3"}
    assert uses_of(own_key, "egress") == {"secretsmanager": {"kms:Decrypt"}}


def test_a_function_can_use_the_key_for_each_granted_service(own_key: Synthesis) -> None:
    """A function with a grant for a service may also use the key there; otherwise AWS would deny its calls."""
    for name in own_key.functions():
        actions = {action for each in own_key.statements_of(name) for action in as_list(each["Action"])}
        services = {action.partition(":")[0] for action in actions} & ACTIONS.keys()
        assert {service: set(ACTIONS[service]) for service in services} == uses_of(own_key, name), name


def test_without_a_key_no_key_is_referenced_or_granted(cloud: Synthesis) -> None:
    """If AWS's own keys are used, no resource names a key and no function has a grant for one."""
    assert "kms:" not in json.dumps([cloud.statements_of(name) for name in cloud.functions()])
    for type_, path in ENCRYPTED.items():
        assert {value_at(each, path) for each in cloud.properties(type_).values()} == {None}


@pytest.mark.parametrize("arn", ["alias/duetime", "arn:aws:kms:us-east-1:123456789012:alias/duetime", "1234abcd"])
def test_a_key_alias_is_rejected(arn: str) -> None:
    """An alias is refused, because it could later refer to another key that does not decrypt older data."""
    with pytest.raises(UnsafeEnvironment, match="ARN of a key in KMS"):
        replace(PROD, kms_key_arn=arn)
