from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from duetime.adapters.dynamodb.task_items import item_of
from tests.adapters.examples import fresh, numbered
from tests.adapters.strategies import TASKS, properties
from tests.metering import item_size, value_size, write_units

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from tests.adapters.clouds import Cloud


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "caf\u00e9"}, 5),
        ({"N": "0"}, 1),
        ({"N": "7"}, 2),
        ({"N": "27"}, 2),
        ({"N": "-27"}, 3),
        ({"N": "1795228380250"}, 8),
        ({"N": "120"}, 3),
        ({"N": "1200"}, 2),
        ({"N": "0.5"}, 2),
        ({"B": b"123"}, 3),
        ({"BOOL": True}, 1),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"N": "1"}]}, 3 + 3 + 3),
        ({"M": {"team": {"S": "dba"}}}, 3 + 1 + 4 + 3),
    ],
)
def test_values_have_their_documented_sizes(value: dict[str, Any], size: int) -> None:
    """The sizes of values follow the Developer Guide, whose rule for digits is approximate."""
    assert value_size(value) == size


@pytest.mark.engine
@properties
@given(any_task=TASKS)
def test_computed_write_units_equal_those_of_the_engine(metered_table: tuple[Cloud, str], any_task: Task) -> None:
    """For any record, the computed write units equal the write units that the engine reports."""
    cloud, table = metered_table
    item = item_of(fresh(any_task))
    answer = cloud.dynamodb.put_item(TableName=table, Item=item, ReturnConsumedCapacity="INDEXES")
    assert answer["ConsumedCapacity"]["Table"]["CapacityUnits"] == write_units(item_size(item))


@pytest.mark.engine
@pytest.mark.parametrize(("size", "units"), [(1_024, 1), (1_025, 2), (2_048, 2)])
def test_a_byte_above_a_kilobyte_costs_another_write_unit(
    metered_table: tuple[Cloud, str], size: int, units: int
) -> None:
    """One byte more than a kilobyte costs a second write unit, both in the computation and in the engine."""
    cloud, table = metered_table
    item: dict[str, Any] = {"p": {"S": "x#1"}, "s": {"S": numbered(size).text}, "b": {"S": ""}}
    item["b"]["S"] = "x" * (size - item_size(item))
    answer = cloud.dynamodb.put_item(TableName=table, Item=item, ReturnConsumedCapacity="INDEXES")
    assert (item_size(item), write_units(size)) == (size, units)
    assert answer["ConsumedCapacity"]["Table"]["CapacityUnits"] == units
