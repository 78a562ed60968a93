"""Tests a process's garbage collector settings."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.runtime import garbage_collection

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    """Restore the process's collector settings after the test."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_imported_objects_are_frozen_and_garbage_collection_continues() -> None:
    """Imported objects are frozen at startup, and new garbage is collected as usual."""
    usual = garbage_collection._USUAL
    gc.set_threshold(*usual)
    garbage_collection.postpone()
    assert gc.get_threshold()[0] == garbage_collection.STARTING
    imported: dict[str, list[int]] = {"made": []}
    garbage_collection.resume()
    assert gc.get_threshold() == usual
    assert not any(each is imported for each in gc.get_objects())


def test_garbage_collection_is_configured_once_per_process() -> None:
    """A second composition in a process freezes nothing and keeps thresholds that were set in the meantime."""
    gc.set_threshold(1_234, 5, 6)
    made: dict[str, list[int]] = {"later": []}
    garbage_collection.resume()
    assert gc.get_threshold() == (1_234, 5, 6)
    assert any(each is made for each in gc.get_objects())
