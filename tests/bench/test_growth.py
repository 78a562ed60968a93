"""Shows with AWS fakes that the cost of operations does not depend on the number of stored tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bench.growth import faked, worst
from bench.growth_operations import Used, measured, operations_on
from bench.stored_tasks import FAILING, SUCCEEDING, Contents, Filler
from duetime import composition
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Registered

if TYPE_CHECKING:
    from collections.abc import Iterator


FEW = 200
"""A number of tasks that is enough for a full page."""
GROWING = {"list, a tag of few"}
"""Operations that examine all tasks, up to a limit."""


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove the composition and the handlers after the test."""
    for type_ in (SUCCEEDING, FAILING):
        monkeypatch.setitem(REGISTRY, type_, Registered({}))
    yield
    composition.use(None)


def used_with(tasks: int) -> dict[str, Used]:
    """Return each operation's usage with this many tasks; there is one shard, so that few tasks fill a list's pages."""
    stack, put, meter = faked({Variable.SHARDS: "1", Variable.SUMMARY_SPREAD: "1"})
    waiting = Filler(stack, Contents(tasks, a_minute=10, minutes=1), put).fill()
    return {
        each.name: measured(replace(each, repeats=1, rehearsed=False), meter) for each in operations_on(stack, waiting)
    }


def test_calls_and_read_units_do_not_grow_with_the_stored_tasks() -> None:
    """With four times as many tasks, every operation except one makes the same calls and reads the same units."""
    few, many = used_with(FEW), used_with(4 * FEW)
    flat = few.keys() - GROWING
    assert {name: (many[name].calls, many[name].read_units) for name in flat} == {
        name: (few[name].calls, few[name].read_units) for name in flat
    }


def test_the_operation_that_grew_most_is_reported_with_its_ratio() -> None:
    """For each measure, the result names the operation that grew most; unused measures have no ratio."""
    few = {"get": Used(1, 1.0, 0.0, 0.002), "create": Used(2, 0.0, 2.0, 0.003)}
    many = {"get": Used(1, 1.5, 0.0, 0.002), "create": Used(3, 0.0, 2.0, 0.006)}
    assert worst(few, many) == {
        "growth_calls_worst": ("create", 1.5),
        "growth_read_units_worst": ("get", 1.5),
        "growth_write_units_worst": ("create", 1.0),
        "growth_cpu_worst": ("create", 2.0),
    }
