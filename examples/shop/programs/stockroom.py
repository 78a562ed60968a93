"""A pull worker for a database without a public address, started with `duetime worker run stockroom:worker`."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

from duetime_client.worker import Context, Unretriable, Worker

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE = "stock.count"
"""The task type, which the settings declare as pulled."""
worker = Worker(concurrency=2)


def connect(path: str) -> sqlite3.Connection:
    """Open the database, in which each count is stored with the fence of the attempt that wrote the count."""
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS counts (article TEXT PRIMARY KEY, number INTEGER, task TEXT, fence INTEGER)"
    )
    return connection


def record(connection: sqlite3.Connection, task: str, fence: int, payload: Mapping[str, object]) -> bool:
    """Store a count, and return whether it was stored.

    An older attempt at the same task can still be running after a newer attempt has stored a count. The older attempt
    has a lower fence, so its count is rejected. Storing a count again has no effect.
    """
    with connection:
        cursor = connection.execute(
            "INSERT INTO counts VALUES (:article, :number, :task, :fence) ON CONFLICT (article) DO UPDATE"
            " SET number = excluded.number, task = excluded.task, fence = excluded.fence"
            " WHERE counts.task <> excluded.task OR counts.fence <= excluded.fence",
            {"article": payload["article"], "number": payload["number"], "task": task, "fence": fence},
        )
    return cursor.rowcount == 1


@worker.task(TYPE)
def count(context: Context, payload: dict[str, object]) -> dict[str, bool]:
    """Store a count of an article."""
    if "article" not in payload:
        raise Unretriable("count what?")
    connection = connect(os.environ.get("STOCK_DATABASE", "stock.sqlite"))
    try:
        return {"stored": record(connection, context.task_id, context.fence, payload)}
    finally:
        connection.close()
