"""Runs the snippets in the Python SDK guide one after another in virtual time."""

from __future__ import annotations

import asyncio
import re
from inspect import getmembers
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime_client import Client, Task
from tests.client.test_contract import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from duetime_testing import Duetime

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-the-python-sdk.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| (`client\.[^|]*) \| ([^|]*) \|$", re.MULTILINE)


def _methods() -> Iterator[str]:
    """Return the methods in the table of resources."""
    for resources, methods in ROW.findall(PAGE.read_text()):
        found = re.findall(r"client\.(\w+)", resources)
        yield from (f"{found[0]}.{name}" for name in re.findall(r"`(\w+)`", methods) if len(found) == 1)


def test_the_snippets_run(duetime: Duetime, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's snippets create, find and end tasks, and raise the errors that the page catches."""
    for task_type in ("report", "charge"):
        duetime.register(task_type, lambda _context, payload: payload)
    names: dict[str, Any] = {}
    for number, block in enumerate(BLOCK.findall(PAGE.read_text())):
        exec(block, names)  # noqa: S102 - our own page
        if number == 0:
            assert isinstance(names["client"], Client)
            names["client"].close()
            names["client"] = duetime.client
    printed = capsys.readouterr().out
    assert "succeeded {'month': '2026-11'}" in printed
    assert "state_conflict" in printed
    assert "[('priority', 'not_allowed')]" in printed
    assert "schedule_not_found" in printed
    assert len(names["results"]) == 3
    assert all(isinstance(result, Task) for result in names["results"])
    assert names["rejected"] == []
    assert asyncio.run(names["reports"](duetime.async_client))
    duetime.advance(minutes=2)
    duetime.assert_ran("charge", times=2)
    found = [task.payload for task in duetime.client.tasks.list(type="report", expand=["payload"])]
    assert found.count({"month": "2026-10"}) == 1


def test_the_table_names_every_method() -> None:
    """The table names exactly the methods that exist, except those of leases and watch tickets."""
    shown = {method for method in METHODS if method.split(".")[0] not in {"leases", "watch_tickets"}} | {"tasks.of"}
    assert {*_methods()} == shown
    assert {each.split(".")[0] for each in shown} <= {name for name, _ in getmembers(Client)}
