"""Reads the values of the handlers' secrets on this machine."""

from __future__ import annotations

import json
import os

from duetime_cdk.errors import NotDeployable
from duetime_cdk.source_folders import project_folder
from duetime_common.secret_variables import VARIABLE_PREFIX, variable_of

FILE = "secrets.local.json"
"""The name of the project's secrets file, which contains a JSON object of values by name and is not committed to
Git."""


class LocalSecretsInvalid(NotDeployable, ValueError):
    """The secrets file is not a JSON object of strings."""

    def __init__(self, why: str) -> None:
        super().__init__(f'{FILE} must be a JSON object such as {{"stripe": "sk_test_1"}}: {why}')


def local_secrets() -> dict[str, str]:
    """Return environment variables with the secrets from the project's file and from this process.

    Variables of this process take precedence.

    Raises:
        LocalSecretsInvalid: the file is not a JSON object of strings.
    """
    return {variable_of(name): value for name, value in _in_file().items()} | {
        name: value for name, value in os.environ.items() if name.startswith(VARIABLE_PREFIX)
    }


def _in_file() -> dict[str, str]:
    path = project_folder() / FILE
    if not path.is_file():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LocalSecretsInvalid(str(error)) from None
    if not isinstance(values, dict):
        raise LocalSecretsInvalid("the file contains another JSON value")
    for name, value in values.items():
        if not isinstance(value, str):
            raise LocalSecretsInvalid(f"the value of {name!r} is not a string")
    return values
