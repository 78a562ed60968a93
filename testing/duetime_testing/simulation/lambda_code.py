"""The code of the Lambda functions: in a checkout it is the package `functions`; the kit's wheel carries a copy."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_BUNDLED = "duetime_testing.functions"
_PACKAGE = _BUNDLED if find_spec(_BUNDLED) else "functions"


def handler_of(function: str) -> Callable[..., Any]:
    """The entry point that Lambda invokes for a function."""
    handler: Callable[..., Any] = importlib.import_module(f"{_PACKAGE}.{function}.handler").handler
    return handler
