"""Tests lists that are read from the key indexes."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.adapters.dynamodb.task_store import DynamoTaskStore
from duetime.ports.tasks import ListQuery
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.task_table import new_table
from tests.adapters.clouds import EXECUTOR, SilentTelemetry
from tests.adapters.examples import HOME, OWNER
from tests.adapters.test_task_store import spread


@pytest.mark.parametrize("page", [1, 2, 7])
@pytest.mark.parametrize("descending", [True, False])
def test_a_list_continues_after_a_short_dynamodb_page(page: int, *, descending: bool) -> None:
    """The list continues after a DynamoDB page that is shorter than its limit."""
    fake: Any = FakeDynamoDB(lambda: HOME)
    store = DynamoTaskStore(fake, new_table(fake), EXECUTOR, SilentTelemetry())
    ids = sorted(spread(store, OWNER, 60), reverse=descending)
    fake.page = page
    assert store.list_ids(ListQuery(OWNER, descending=descending, limit=100)) == ids
    assert store.list_ids(ListQuery(OWNER, descending=descending, limit=25)) == ids[:25]
