"""Tests fields whose values are from a fixed set."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from duetime.contract.openapi.document import document
from duetime_client import literals, open_literals
from duetime_client.task import Task

if TYPE_CHECKING:
    from duetime_client import Client
    from tests.client.deployment import Deployment


@pytest.mark.parametrize("name", open_literals.__all__)
def test_literals_have_the_values_of_their_api_schemas(name: str) -> None:
    """Each literal type is named like its API schema and has the same values."""
    assert list(get_args(getattr(literals, name))) == document()["components"]["schemas"][name]["enum"]


def test_an_unknown_string_value_is_read_as_text(client: Client, deployment: Deployment) -> None:
    """An unknown string is read as text, but a value of another type is refused."""
    task = client.tasks.create("report")
    deployment.tasks[task.id] |= {"state": "dreaming", "priority": "highest"}
    newer = client.tasks.get(task.id)
    assert (newer.state, newer.priority, newer.is_terminal) == ("dreaming", "highest", False)
    with pytest.raises(ValueError, match="state"):
        Task.of_document({**task.document, "state": 7})
