"""What operations cost does not depend on how many tasks are stored: counted over fakes of AWS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from bench.growth import worst
from bench.growth_operations import Used, measured, operations_on
from bench.stored_tasks import FAILING, SUCCEEDING, Contents, Filler
from duetime import composition
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Registered
from tests.functions.stack import Stack
from tests.metering import item_size, read_units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FEW = 200
"""Enough for a full page."""
GROWING = {"list, a tag of few"}
"""It looks through what there is, up to a limit."""
SETTINGS: dict[str, str] = {Variable.SHARDS: "1", Variable.SUMMARY_SPREAD: "1"}
"""With one shard, one partition of the list of tasks has them all: so few tasks fill its pages."""


@dataclass
class FakeMeter:
    """Counts the calls of fakes, and read units of what is answered, by DynamoDB's documented rule.

    The fakes filter nothing that they have read; of a projection, only the attributes count that are answered.
    """

    session: Any
    total_requests: int = 0
    table_units: float = 0.0
    index_units: float = 0.0
    read_units: float = 0.0

    def __post_init__(self) -> None:
        """Listen to every call."""
        self.session.heard = self._heard
        for name in ("get_item", "query", "batch_get_item"):
            setattr(self.session.dynamodb, name, self._reading(getattr(self.session.dynamodb, name)))

    def reset(self) -> None:
        """Begin anew."""
        self.total_requests, self.read_units = 0, 0.0

    def _heard(self, _operation: str, _request: Mapping[str, Any]) -> None:
        self.total_requests += 1

    def _reading(self, call: Any) -> Any:  # noqa: ANN401 - a method of a fake
        def read(**request: Any) -> Any:  # noqa: ANN401 - its arguments and its answer
            answer = call(**request)
            for items in answer.get("Responses", {}).values():
                self.read_units += sum(read_units(item_size(item), consistent=False) for item in items)
            if "Responses" not in answer:
                items = answer.get("Items", [answer.get("Item", {})])
                consistent = request.get("ConsistentRead", False)
                self.read_units += read_units(sum(map(item_size, items)), consistent=consistent)
            return answer

        return read


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is composed and the handlers are gone afterwards."""
    for type_ in (SUCCEEDING, FAILING):
        monkeypatch.setitem(REGISTRY, type_, Registered({}))
    yield
    composition.use(None)


def used_with(tasks: int) -> dict[str, Used]:
    """What each operation uses with so many tasks."""
    stack = Stack.faked(SETTINGS)
    client: Any = stack.cloud.dynamodb
    session, table, put = client._session, stack.environ[Variable.TABLE], client.fake.put_item
    filler = Filler(
        stack,
        Contents(tasks, a_minute=10, minutes=1),
        lambda items: [put(TableName=table, Item=item) for item in items],
    )
    waiting, meter = filler.fill(), FakeMeter(session)
    return {
        each.name: measured(replace(each, repeats=1, rehearsed=False), meter) for each in operations_on(stack, waiting)
    }


def test_calls_and_read_units_do_not_grow_with_the_stored_tasks() -> None:
    """With four times as many tasks, every operation but one makes the same calls and reads as much."""
    few, many = used_with(FEW), used_with(4 * FEW)
    flat = few.keys() - GROWING
    assert {name: (many[name].calls, many[name].read_units) for name in flat} == {
        name: (few[name].calls, few[name].read_units) for name in flat
    }


def test_what_has_grown_most_is_named_with_its_ratio() -> None:
    """Of each measure another operation may be the one; what an operation does not use at all has no ratio."""
    few = {"get": Used(1, 1.0, 0.0, 0.002), "create": Used(2, 0.0, 2.0, 0.003)}
    many = {"get": Used(1, 1.5, 0.0, 0.002), "create": Used(3, 0.0, 2.0, 0.006)}
    assert worst(few, many) == {
        "growth_calls_worst": ("create", 1.5),
        "growth_read_units_worst": ("get", 1.5),
        "growth_write_units_worst": ("create", 1.0),
        "growth_cpu_worst": ("create", 2.0),
    }
