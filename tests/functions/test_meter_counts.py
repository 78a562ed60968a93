"""A test that the meter counts concurrent calls of several threads."""

from __future__ import annotations

from collections import UserDict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3

from tests.functions.meter import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, ItemsView, Mapping


class _Interrupted(UserDict[str, Any]):
    """An item that lets another thread count a call while the item is measured."""

    def __init__(self, item: dict[str, Any], meanwhile: Callable[[], None]) -> None:
        super().__init__(item)
        self._meanwhile = meanwhile

    def items(self) -> ItemsView[str, Any]:
        self._meanwhile()
        return super().items()


def test_calls_of_several_threads_are_all_counted() -> None:
    """A call that another thread counts at the same time is not lost."""
    meter = Meter(boto3.Session(region_name="us-east-1"))
    model = SimpleNamespace(name="PutItem")
    refused = {"Error": {"Code": "ConditionalCheckFailedException"}}

    def count(item: Mapping[str, Any]) -> None:
        meter.count(model, {**refused, "Item": item})

    count(_Interrupted({"p": {"S": "a"}}, lambda: count({"p": {"S": "b"}})))
    assert (meter.table_units, meter.requests["PutItem"]) == (2, 2)
