"""duetime as a construct of the AWS CDK: `DuetimeStack(app, "Scheduler", handlers="handlers", environment="prod")`.

What is listed in `__all__` is the public interface; modules beside it may change with any version.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import Precision
from duetime.domain.tasks.allowed_targets import HttpSecret
from duetime.domain.tasks.task_options import Priority
from duetime.settings import Authentication
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
    UnsafeEnvironment,
)
from duetime_cdk.errors import NotDeployable
from duetime_cdk.handlers_folder import HandlersNotFound
from duetime_cdk.layers.handler_import import HandlersUnimportable
from duetime_cdk.layers.target import Target

if TYPE_CHECKING:
    from duetime_cdk.stack import DuetimeStack

__all__ = [
    "DEV",
    "LOCAL_STACK",
    "PRESETS",
    "PROD",
    "SIZES",
    "STAGING",
    "Authentication",
    "DuetimeStack",
    "Environment",
    "FunctionName",
    "FunctionSize",
    "HandlersNotFound",
    "HandlersUnimportable",
    "HttpSecret",
    "NotDeployable",
    "Pollers",
    "Precision",
    "Priority",
    "Target",
    "UnknownEnvironment",
    "UnknownSetting",
    "UnsafeEnvironment",
]

# Node 20 is enough for everything this package does with it, and its notice would be most of what a deploy prints.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")


def __getattr__(name: str) -> object:
    """Import the stack when it is asked for: the construct library starts a process of Node."""
    if name != "DuetimeStack":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from duetime_cdk.stack import DuetimeStack  # noqa: PLC0415 - see above

    return DuetimeStack
