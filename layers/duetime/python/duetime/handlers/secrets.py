"""Reads secrets for handlers from AWS, and caches each secret for five minutes."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from duetime.environment_variables import Variable
from duetime_common.secret_variables import SecretMissing, variable_of

if TYPE_CHECKING:
    from collections.abc import Mapping

SECRET_LIFE_SECONDS = 300
"""How long a process caches a secret, in seconds."""
PARAMETER = "ssm:"
"""Prefix of a secret's source if the source is a Systems Manager parameter."""
FOR_TESTS: dict[str, str] = {}
"""Secret values that a test sets. These values take precedence."""


class SecretUnavailable(RuntimeError):
    """AWS did not return a secret."""

    def __init__(self, name: str, source: str, why: str) -> None:
        super().__init__(f"the secret {name!r} ({source} in the setting `handlers_environment`): {why}")


def secret(name: str, *, fresh: bool = False) -> str:
    """Return the text of a secret in the setting `handlers_environment`.

    The secret is read from AWS on the first call, and read again after five minutes. The secret's value is not logged.

    Args:
        name: name of the secret in the settings.
        fresh: read the secret again now, for example if a service has rejected its old value after a rotation.

    Raises:
        SecretMissing: the settings do not contain the secret.
        SecretUnavailable: AWS did not return the secret.
    """
    if name in FOR_TESTS:
        return FOR_TESTS[name]
    sources = _sources()
    is_deployed = Variable.HANDLERS in os.environ
    set_here = os.environ.get(variable_of(name))
    if set_here is not None and (name in sources or not is_deployed):
        return set_here
    if name not in sources:
        raise SecretMissing(name)
    return _read(name, sources[name], fresh=fresh)


def _sources() -> Mapping[str, str]:
    # The module is imported only by handlers that use secrets.
    from duetime.settings import with_settings_module  # noqa: PLC0415 - see the line above

    text = with_settings_module(os.environ).get(Variable.HANDLER_SECRETS, "")
    sources: dict[str, str] = json.loads(text) if text else {}
    return sources


def _read(name: str, source: str, *, fresh: bool) -> str:
    # The module is imported only by handlers that use secrets.
    from aws_lambda_powertools.utilities import parameters  # noqa: PLC0415 - see the line above

    life, again = SECRET_LIFE_SECONDS, fresh
    try:
        if source.startswith(PARAMETER):
            parameter = source.removeprefix(PARAMETER)
            return parameters.get_parameter(parameter, decrypt=True, max_age=life, force_fetch=again)
        value = parameters.get_secret(source, max_age=life, force_fetch=again)
    except parameters.GetParameterError as error:
        raise SecretUnavailable(name, source, str(error)) from error
    return value if isinstance(value, str) else value.decode()
