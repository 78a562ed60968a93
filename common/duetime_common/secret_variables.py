"""Names the environment variables that contain the values of handler secrets in processes outside AWS."""

from __future__ import annotations

import re

VARIABLE_PREFIX = "DUETIME_SECRET_"
"""Prefix of environment variables with secret values outside AWS."""


class SecretMissing(LookupError):
    """A handler asked for a secret that is neither in the settings nor in the process's environment."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is no secret {name!r}: add it to the setting `handlers_environment`, such as"
            f" HandlersEnvironment(secrets={{{name!r}: 'NAME IN SECRETS MANAGER'}}); outside AWS set the environment"
            f" variable {variable_of(name)}"
        )


def variable_of(name: str) -> str:
    """The environment variable with a secret's value in a process outside AWS, such as `DUETIME_SECRET_STRIPE`."""
    return f"{VARIABLE_PREFIX}{re.sub('[^A-Z0-9]', '_', name.upper())}"
