"""The secret that signs the local stack's HTTP calls."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from duetime_local.emulator import Emulator
from duetime_local.project import STACK

OUTPUT = "SigningSecretArn"


def signing_secret(aws_endpoint_url: str) -> str:
    """The current secret of the stack with this embedded AWS."""
    emulator = Emulator(urlsplit(aws_endpoint_url).port or 0, Path())
    (stack,) = emulator.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    return emulator.client("secretsmanager").get_secret_value(SecretId=outputs[OUTPUT])["SecretString"]
