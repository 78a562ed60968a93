"""duetime as a construct of the AWS CDK: `DuetimeStack(app, "Scheduler", handlers="handlers", environment="prod")`.

Only the names in `__all__` are public; other modules may change in any version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import Precision
from duetime.domain.quotas import Quotas
from duetime.domain.tasks.allowed_targets import HttpSecret
from duetime.domain.tasks.task_options import Priority
from duetime.settings import Authentication
from duetime_cdk.canary import Canary
from duetime_cdk.environments import (
    DEV,
    LOCAL_STACK,
    PRESETS,
    PROD,
    SIZES,
    STAGING,
    Environment,
    FunctionName,
    FunctionSize,
    Pollers,
    UnknownEnvironment,
    UnknownSetting,
    WorkerBatch,
)
from duetime_cdk.errors import NotDeployable, UnsafeEnvironment
from duetime_cdk.handlers_environment import HandlersEnvironment, Vpc
from duetime_cdk.handlers_folder import HandlersNotFound
from duetime_cdk.handlers_packages import HandlersPackage
from duetime_cdk.layers.handler_import import HandlersMisplaced, HandlersUnimportable
from duetime_cdk.layers.target import Target

if TYPE_CHECKING:
    from duetime_cdk.definitions import DefinitionInvalid, Schedule, TopologyDefinition
    from duetime_cdk.stack import DuetimeStack

__all__ = [
    "DEV",
    "LOCAL_STACK",
    "PRESETS",
    "PROD",
    "SIZES",
    "STAGING",
    "Authentication",
    "Canary",
    "DefinitionInvalid",
    "DuetimeStack",
    "Environment",
    "FunctionName",
    "FunctionSize",
    "HandlersEnvironment",
    "HandlersMisplaced",
    "HandlersNotFound",
    "HandlersPackage",
    "HandlersUnimportable",
    "HttpSecret",
    "NotDeployable",
    "Pollers",
    "Precision",
    "Priority",
    "Quotas",
    "Schedule",
    "Target",
    "TopologyDefinition",
    "UnknownEnvironment",
    "UnknownSetting",
    "UnsafeEnvironment",
    "Vpc",
    "WorkerBatch",
]


_OF_MODULES = {
    "DuetimeStack": "duetime_cdk.stack",
    "DefinitionInvalid": "duetime_cdk.definitions",
    "Schedule": "duetime_cdk.definitions",
    "TopologyDefinition": "duetime_cdk.definitions",
}


def __getattr__(name: str) -> object:
    """Import the constructs on first access, because the construct library starts a Node process."""
    if name not in _OF_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_OF_MODULES[name]), name)
