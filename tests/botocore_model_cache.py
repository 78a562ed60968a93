"""Shares data that is the same in all botocore sessions, because tests create hundreds of sessions per process."""

from __future__ import annotations

from functools import wraps
from typing import Any

from botocore.hooks import EventAliaser
from botocore.loaders import Loader

_READ: dict[Any, Any] = {}
_ALIASES: dict[str, str] = {}
_init_loader = Loader.__init__
_init_aliaser = EventAliaser.__init__


def share_service_models() -> None:
    """Share service models and event names among all sessions that this process creates from now on."""
    Loader.__init__ = _loader  # type: ignore[method-assign, assignment]
    EventAliaser.__init__ = _aliaser  # type: ignore[method-assign, assignment]


@wraps(_init_loader)
def _loader(loader: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as in the original
    _init_loader(loader, *arguments, **named)
    loader._cache = _READ


@wraps(_init_aliaser)
def _aliaser(aliaser: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - same
    _init_aliaser(aliaser, *arguments, **named)
    # All aliasers use botocore's own table of aliases, so they can share the resulting names.
    aliaser._alias_name_cache = _ALIASES
