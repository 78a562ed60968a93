"""Fixtures for tests with frozen records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.handlers import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="module")
def registry() -> Iterator[None]:
    """After the module's tests, remove the handlers that frozen records need."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)
