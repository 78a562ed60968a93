"""Tests of the nightly report on nights when London's clocks change."""

from __future__ import annotations

from typing import cast

import pytest
from duetime_testing import Duetime

from website import declare_schedules


@pytest.mark.parametrize(
    ("start", "nights"),
    [
        (
            "2027-03-26T12:00+00:00",
            [("2027-03-27", "01:30 GMT"), ("2027-03-28", "02:00 BST"), ("2027-03-29", "01:30 BST")],
        ),
        (
            "2027-10-29T12:00+00:00",
            [("2027-10-30", "01:30 BST"), ("2027-10-31", "01:30 BST"), ("2027-11-01", "01:30 GMT")],
        ),
    ],
    ids=["spring", "autumn"],
)
def test_each_night_has_one_report(duetime: Duetime, start: str, nights: list[tuple[str, str]]) -> None:
    """The report runs exactly once each night, even if half past one does not exist or occurs twice."""
    duetime.at(start)
    declare_schedules(duetime.client)
    duetime.advance(days=3)
    duetime.assert_ran("report", times=3)
    tasks = [duetime.client.tasks.get(task.id) for task in duetime.client.tasks.list(type="report")]
    assert sorted(tuple(cast("dict[str, str]", task.result).values()) for task in tasks) == nights
