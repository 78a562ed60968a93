"""Fixtures that run the functions against AWS fakes, or against the embedded engine in cost tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime import composition
from tests.functions.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The Lambda functions over empty AWS fakes."""
    yield Stack.faked()
    composition.use(None)
