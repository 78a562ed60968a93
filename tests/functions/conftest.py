"""Fixtures that run the functions against AWS fakes, or against the embedded engine in cost tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime import composition
from duetime.handlers import REGISTRY, Registered
from tests.functions.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The Lambda functions over empty AWS fakes."""
    yield Stack.faked()
    composition.use(None)


@pytest.fixture
def noop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a handler that does no work for the type `canary.noop`."""
    monkeypatch.setitem(REGISTRY, "canary.noop", Registered({"run": lambda _context, _payload: None}))
