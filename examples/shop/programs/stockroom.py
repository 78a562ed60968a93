"""A pull worker beside a database that nothing outside can reach: `duetime worker run stockroom:worker`."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

from duetime_client.worker import Context, Unretriable, Worker

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE = "stock.count"
"""Declared in the settings as a pulled type."""
worker = Worker(concurrency=2)


def connect(path: str) -> sqlite3.Connection:
    """The database; each count remembers the fence of the attempt that wrote it."""
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS counts (article TEXT PRIMARY KEY, number INTEGER, task TEXT, fence INTEGER)"
    )
    return connection


def record(connection: sqlite3.Connection, task: str, fence: int, payload: Mapping[str, object]) -> bool:
    """Store a count; returns whether it was stored.

    An older attempt of the same task may still be alive when a newer one has written: its fence is lower, and it is
    refused. Storing the same count twice changes nothing.
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
    """Count an article."""
    if "article" not in payload:
        raise Unretriable("count what?")
    connection = connect(os.environ.get("STOCK_DATABASE", "stock.sqlite"))
    try:
        return {"stored": record(connection, context.task_id, context.fence, payload)}
    finally:
        connection.close()
