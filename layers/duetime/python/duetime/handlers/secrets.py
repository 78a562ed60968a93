"""Secrets of handlers: read from AWS once, kept for some minutes, and read again after that."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from duetime.environment_variables import Variable
from duetime_common.secret_variables import SecretMissing, variable_of

if TYPE_CHECKING:
    from collections.abc import Mapping

SECRET_LIFE_SECONDS = 300
"""How long a process uses a secret before it reads it again."""
PARAMETER = "ssm:"
"""Prefix of the source of a secret that is a parameter of Systems Manager."""
FOR_TESTS: dict[str, str] = {}
"""Values that a test sets, which take precedence."""


class SecretUnavailable(RuntimeError):
    """AWS did not return a secret."""

    def __init__(self, name: str, source: str, why: str) -> None:
        super().__init__(f"the secret {name!r} ({source} in the setting `handlers_environment`): {why}")


def secret(name: str, *, fresh: bool = False) -> str:
    """The text of a secret in the setting `handlers_environment`.

    It is read from AWS at the first call, and again after five minutes. The value is not logged.

    Args:
        name: its name in the settings.
        fresh: read it again now, for example after the service has refused it because it was rotated.

    Raises:
        SecretMissing: the settings do not have it.
        SecretUnavailable: AWS did not return it.
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
    # Imported only by handlers that use secrets.
    from duetime.settings import with_settings_module  # noqa: PLC0415 - see the line above

    text = with_settings_module(os.environ).get(Variable.HANDLER_SECRETS, "")
    sources: dict[str, str] = json.loads(text) if text else {}
    return sources


def _read(name: str, source: str, *, fresh: bool) -> str:
    # Imported only by handlers that use secrets.
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
