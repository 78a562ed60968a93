"""Tests where handlers' secrets are read from, and when they are read again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import boto3
import pytest
from aws_lambda_powertools.utilities import parameters
from moto import mock_aws

from duetime.environment_variables import Variable
from duetime.handlers import SecretMissing, SecretUnavailable, secret
from duetime.handlers.secrets import FOR_TESTS
from duetime_common.secret_variables import variable_of

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = {"stripe": "prod/stripe", "mail": "ssm:/shop/mail-key", "gone": "prod/gone", "binary": "prod/binary"}


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set up a worker function with secrets, most of which exist in the account."""
    for name, value in {
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(Variable.HANDLERS, "shop")
    monkeypatch.setenv(Variable.HANDLER_SECRETS, json.dumps(SOURCES))
    with mock_aws():
        monkeypatch.setattr(parameters.base, "DEFAULT_PROVIDERS", {})
        boto3.client("secretsmanager").create_secret(Name="prod/stripe", SecretString="sk_1")
        boto3.client("secretsmanager").create_secret(Name="prod/binary", SecretBinary=b"key")
        boto3.client("ssm").put_parameter(Name="/shop/mail-key", Value="mail_1", Type="SecureString")
        yield


@pytest.mark.usefixtures("deployed")
def test_secrets_and_parameters_are_read_by_their_names_in_the_settings() -> None:
    """A string secret, a binary secret and an encrypted parameter are read by their names in the settings."""
    assert [secret(name) for name in ("stripe", "binary", "mail")] == ["sk_1", "key", "mail_1"]


@pytest.mark.usefixtures("deployed")
def test_a_secret_is_cached_until_a_fresh_read_is_requested() -> None:
    """`fresh=True` reads a rotated value again, and later calls use the new value."""
    assert (secret("stripe"), secret("mail")) == ("sk_1", "mail_1")
    boto3.client("secretsmanager").put_secret_value(SecretId="prod/stripe", SecretString="sk_2")
    boto3.client("ssm").put_parameter(Name="/shop/mail-key", Value="mail_2", Type="SecureString", Overwrite=True)
    assert (secret("stripe"), secret("mail")) == ("sk_1", "mail_1")
    assert (secret("stripe", fresh=True), secret("mail", fresh=True)) == ("sk_2", "mail_2")
    assert (secret("stripe"), secret("mail")) == ("sk_2", "mail_2")


@pytest.mark.usefixtures("deployed")
def test_the_error_for_an_undeclared_secret_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for an undeclared secret names the setting to add, because in a deployment a variable is not enough."""
    monkeypatch.setenv(variable_of("crm"), "here")
    with pytest.raises(SecretMissing, match=r"`handlers_environment`, such as HandlersEnvironment\(secrets=\{'crm'"):
        secret("crm")


@pytest.mark.usefixtures("deployed")
def test_the_error_for_a_missing_secret_names_the_secret() -> None:
    """If a secret is missing, the error names the secret, and the attempt is retried because it may be created soon."""
    with pytest.raises(SecretUnavailable, match=r"'gone' \(prod/gone in the setting"):
        secret("gone")


@pytest.mark.usefixtures("deployed")
def test_the_local_stack_provides_values_of_declared_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local stack uses the values of declared secrets and does not read secrets from AWS."""
    monkeypatch.setenv("DUETIME_SECRET_GONE", "of this machine")
    assert secret("gone") == "of this machine"


def test_outside_aws_secrets_are_read_from_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pull worker's container or a unit test, secrets are variables in capitals with underscores."""
    monkeypatch.delenv(Variable.HANDLERS, raising=False)
    monkeypatch.setenv("DUETIME_SECRET_SHOP_MAIL_KEY", "m")
    assert secret("shop/mail-key") == "m"
    with pytest.raises(SecretMissing, match="set the environment variable DUETIME_SECRET_STRIPE"):
        secret("stripe")


def test_secrets_are_removed_after_each_test() -> None:
    """Secrets are removed after each test, because leftover secrets would hide that another test sets none."""
    assert FOR_TESTS == {}
