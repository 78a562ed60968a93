"""A test that every response of a deprecated operation, including errors, announces the deprecation."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from duetime.contract.tasks import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.functions.api.gateway import Gateway

ENDS = {"Deprecation": "@1803859200", "Sunset": "Wed, 01 Mar 2028 00:00:00 GMT"}


@pytest.fixture
def going() -> Iterator[None]:
    """Marks the operation that reads a task as deprecated."""
    days = {"deprecated": date(2027, 3, 1), "sunset": date(2028, 3, 1)}
    for name, day in days.items():
        object.__setattr__(operations.READ, name, day)
    yield
    for name in days:
        object.__setattr__(operations.READ, name, None)


@pytest.mark.usefixtures("going")
def test_all_responses_of_a_deprecated_operation_have_the_headers(api: Gateway) -> None:
    """All responses of a deprecated operation (even 304s and errors) have the headers; no other responses do."""
    task = api.create({"type": "report", "delay_seconds": 60})
    path = f"/v1/tasks/{task['id']}"
    answers = {
        200: api.send("GET", path),
        304: api.send("GET", path, headers={"If-None-Match": "*"}),
        400: api.send("GET", path, query="color=red"),
        404: api.send("GET", "/v1/tasks/01M7XZ8CGJ0013P2ZBN3YDT3DX"),
    }
    assert [answer.status for answer in answers.values()] == list(answers)
    for answer in answers.values():
        assert {name: answer.headers.get(name) for name in ENDS} == ENDS, answer.status
    for other in (api.send("GET", "/v1/tasks"), api.send("DELETE", path, query="a=b"), api.send("GET", "/v1/nothing")):
        assert not ENDS.keys() & other.headers.keys()
