"""Tests create hundreds of botocore sessions; the service models are read once per process."""

from __future__ import annotations

from functools import wraps
from typing import Any

from botocore.loaders import Loader

_READ: dict[Any, Any] = {}
_init = Loader.__init__


def share_service_models() -> None:
    """Share the service models among all sessions that this process creates from now on."""
    Loader.__init__ = _sharing  # type: ignore[method-assign, assignment]


@wraps(_init)
def _sharing(loader: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as the original has them
    _init(loader, *arguments, **named)
    loader._cache = _READ
