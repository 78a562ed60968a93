"""Defines Huey's task, which is kept in the storage given by an environment variable."""

import os

import scheduled_tasks
from huey import RedisHuey, SqliteHuey

STORAGE = "COMPARISON_STORAGE"
"""The storage, which is either a URL `redis://…` or the path of an SQLite file."""
_storage = os.environ[STORAGE]
if _storage.startswith("redis:"):
    huey = RedisHuey("comparison", url=_storage)
else:
    huey = SqliteHuey("comparison", filename=_storage)


@huey.task()
def note(number: int) -> None:
    """Record the start."""
    scheduled_tasks.note(number)
