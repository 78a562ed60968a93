"""A test kit for duetime tasks, schedules and topologies. Tests run in one process, in virtual time and without AWS.

The fixture `duetime` of the pytest plugin is a `Duetime`. Names are imported on first use, so that the plugin does not
slow down tests that do not use it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duetime_testing.duetime_fixture import Duetime, Mode
    from duetime_testing.errors import NeedsVirtualTime, NotIdle, NotJson
    from duetime_testing.executions import Execution
    from duetime_testing.http_endpoints import HttpReply, HttpRequest

__all__ = ["Duetime", "Execution", "HttpReply", "HttpRequest", "Mode", "NeedsVirtualTime", "NotIdle", "NotJson"]

_MODULES = {
    "Duetime": "duetime_fixture",
    "Mode": "duetime_fixture",
    "NeedsVirtualTime": "errors",
    "NotIdle": "errors",
    "NotJson": "errors",
    "Execution": "executions",
    "HttpReply": "http_endpoints",
    "HttpRequest": "http_endpoints",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is named
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(f"duetime_testing.{_MODULES[name]}"), name)
