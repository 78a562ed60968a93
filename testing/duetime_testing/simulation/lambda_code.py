"""Finds the Lambda functions' code: the package `functions` in a checkout, or the copy in the test kit's wheel."""

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
