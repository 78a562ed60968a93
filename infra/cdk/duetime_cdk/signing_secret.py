"""Creates the secret with which HTTP calls are signed."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Validations
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from duetime_cdk.encryption import key_of
from duetime_cdk.removal_policies import removal_of

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment

LENGTH = 64
"""Length in letters and digits, which are the base64 of 48 bytes; Standard Webhooks requires 24 to 64 bytes."""


class Signing(Construct):
    """The keys from which owners' secrets are derived; `duetime_common.signing_keys` describes the contents.

    CloudFormation generates the first key. `duetime secrets rotate` stores additional keys, and the rotation schedule.
    """

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_)
        self.secret = secretsmanager.Secret(
            self,
            "Secret",
            description=f"duetime {environment.name}: signs HTTP calls (Standard Webhooks)",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                password_length=LENGTH,
                exclude_punctuation=True,
                # This repeats `exclude_punctuation` as a list of characters, which is all that the embedded AWS
                # supports.
                exclude_characters=string.punctuation,
                include_space=False,
            ),
            encryption_key=key_of(self, environment),
            removal_policy=removal_of(environment),
        )
        Validations.of(self.secret).acknowledge(
            Acknowledgment(
                id="AwsSolutions-SMG4",
                reason="The secrets derived from it are rotated by the schedule that it contains, without a function",
            )
        )
