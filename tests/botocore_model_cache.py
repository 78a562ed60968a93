"""Tests make hundreds of sessions of botocore; what it knows of the services of AWS is read once in a process."""

from __future__ import annotations

from functools import wraps
from typing import Any

from botocore.loaders import Loader

_READ: dict[Any, Any] = {}
_init = Loader.__init__


def share_service_models() -> None:
    """Let all sessions that are made in this process from now on share the descriptions of services that they read."""
    Loader.__init__ = _sharing  # type: ignore[method-assign, assignment]


@wraps(_init)
def _sharing(loader: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as the original has them
    _init(loader, *arguments, **named)
    loader._cache = _READ
