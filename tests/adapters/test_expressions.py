from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.adapters.dynamodb.task_items import ValueNotStorable, update_of
from duetime.domain.conditional_writes import Guard, Write
from duetime.domain.tasks.states import Move
from tests.adapters.examples import numbered
from tests.adapters.strategies import TASKS, writes_to

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task

_WORDS = {"AND", "OR", "IN", "SET", "ADD", "REMOVE", "attribute_exists", "attribute_not_exists", "if_not_exists"}


@pytest.mark.slow
@settings(deadline=None)
@given(st.data(), TASKS)
def test_expressions_contain_only_placeholders_and_use_all_of_them(data: st.DataObject, any_task: Task) -> None:
    """Expressions contain only placeholders and use all of them, because DynamoDB refuses anything else."""
    request = update_of(data.draw(writes_to(any_task)), "tasks")
    words = set(re.findall(r"[#:]?\w+", request["ConditionExpression"] + " " + request["UpdateExpression"]))
    placeholders = {*request["ExpressionAttributeNames"], *request["ExpressionAttributeValues"]}
    assert {word for word in words if word[0] in "#:"} == placeholders
    assert {word for word in words if word[0] not in "#:"} <= _WORDS


@pytest.mark.slow
@settings(deadline=None)
@given(st.data(), TASKS)
def test_no_attribute_is_changed_twice(data: st.DataObject, any_task: Task) -> None:
    """No update expression changes an attribute twice, because DynamoDB refuses such expressions."""
    request = update_of(data.draw(writes_to(any_task)), "tasks")
    changes = re.sub(r"if_not_exists\(#\w+", "", request["UpdateExpression"])
    changed = [
        request["ExpressionAttributeNames"][name] for name in re.findall(r"(?:SET|ADD|REMOVE|,) (#\w+)", changes)
    ]
    assert len(changed) == len(set(changed)) > 1


def test_a_write_stays_within_the_size_limit_of_an_expression() -> None:
    """The largest claim is far below the 4 KB that DynamoDB allows an expression (Source: DynamoDB quotas)."""
    guard = Guard("ann", 1, 2, 3, 4, 5)
    request = update_of(Write(numbered(1), Move.CLAIM, "n", guard, {"lease_worker": "w"}, {"started_at": 1}), "tasks")
    assert len(request["ConditionExpression"]) + len(request["UpdateExpression"]) < 1_000


def test_only_numeric_fields_of_a_record_can_be_added_to() -> None:
    """A write that adds to a field that is not a number in the record raises an error that names the field."""
    with pytest.raises(ValueNotStorable, match="add_sent"):
        update_of(Write(numbered(1), Move.CHANGE, "n", adds={"sent": 0}), "tasks")
