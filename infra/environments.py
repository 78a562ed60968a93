"""All settings of every environment. Choose one with `-c env=dev|staging|prod|local`.

To run this checkout in your own account, edit this file to set your handlers, your identity provider and your limits.
Without a checkout, `duetime init` creates a project with a file like this one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime_cdk.environments import DEV, LOCAL_STACK, PROD, STAGING, Environment, UnknownEnvironment
from duetime_cdk.handlers_packages import HandlersPackage

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXAMPLES = "examples/handlers"

_DEV = replace(DEV, handlers_folder=_EXAMPLES)
_STAGING = replace(STAGING, handlers_folder=_EXAMPLES)
# This environment has no handlers until you name your own folder; the examples are not meant for production.
_PROD = PROD
_LOCAL = replace(
    LOCAL_STACK,
    handlers_folder=_EXAMPLES,
    # A team's separate package, which runs in its own function.
    handlers_packages=(HandlersPackage(name="billing", folder="examples/billing", types=("billing.*",)),),
)

ENVIRONMENTS: Mapping[str, Environment] = {
    environment.name: environment for environment in (_DEV, _STAGING, _PROD, _LOCAL)
}


def environment_named(name: str) -> Environment:
    """The settings of the environment `name`.

    Raises:
        UnknownEnvironment: no environment has that name.
    """
    try:
        return ENVIRONMENTS[name]
    except KeyError:
        raise UnknownEnvironment(name, ENVIRONMENTS) from None
