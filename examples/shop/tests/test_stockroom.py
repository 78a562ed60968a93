"""Tests of the pull worker that stores counts in the database."""

from __future__ import annotations

from pathlib import Path

from duetime_testing import Duetime

from stockroom import TYPE, connect, record


def test_a_count_is_pulled_and_stored(duetime: Duetime, tmp_path: Path) -> None:
    """A pulled task's count is stored in the database, and the task ends when the worker reports the outcome."""
    duetime.pull(TYPE)
    task = duetime.client.tasks.create(TYPE, payload={"article": "kettle", "number": 12})
    (lease,) = duetime.client.leases.acquire([TYPE], wait_seconds=5)
    database = connect(str(tmp_path / "stock.sqlite"))
    payload = {"article": "kettle", "number": 12}
    duetime.client.leases.complete(lease.id, {"stored": record(database, task.id, lease.task.fence, payload)})
    assert duetime.client.tasks.get(task.id).result == {"stored": True}
    assert database.execute("SELECT article, number FROM counts").fetchall() == [("kettle", 12)]
    database.close()


def test_a_late_attempt_does_not_overwrite_a_newer_one(tmp_path: Path) -> None:
    """A count with a lower fence for the same task is rejected; repeated counts and a later task's count are stored."""
    database = connect(str(tmp_path / "stock.sqlite"))
    assert record(database, "task", 2, {"article": "kettle", "number": 11})
    assert not record(database, "task", 1, {"article": "kettle", "number": 12})
    assert record(database, "task", 2, {"article": "kettle", "number": 11})
    assert record(database, "a later task", 1, {"article": "kettle", "number": 10})
    assert database.execute("SELECT number FROM counts").fetchall() == [(10,)]
    database.close()
