"""Tests a small version of the benchmark for many schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.endurance import schedules
from bench.stored_tasks import FAILING, SUCCEEDING
from duetime import composition
from duetime.handlers import REGISTRY, Registered

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove the composition and the handlers after the test."""
    for type_ in (SUCCEEDING, FAILING):
        monkeypatch.setitem(REGISTRY, type_, Registered({}))
    yield
    composition.use(None)


def test_more_schedules_per_minute_need_fewer_calls_each() -> None:
    """With more schedules, each schedule needs fewer calls and units, as a tick reads its minutes only once."""
    few, many = schedules(20), schedules(60)
    assert 4 <= many["schedule_tick_write_units"] < few["schedule_tick_write_units"]
    assert 3 <= many["schedule_tick_calls"] < few["schedule_tick_calls"]
