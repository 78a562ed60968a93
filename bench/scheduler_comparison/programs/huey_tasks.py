"""The task of Huey, in the storage that the environment names."""

import os

import scheduled_tasks
from huey import RedisHuey, SqliteHuey

STORAGE = "COMPARISON_STORAGE"
"""`redis://…`, or the path of a file of SQLite."""
_storage = os.environ[STORAGE]
if _storage.startswith("redis:"):
    huey = RedisHuey("comparison", url=_storage)
else:
    huey = SqliteHuey("comparison", filename=_storage)


@huey.task()
def note(number: int) -> None:
    """Note the start."""
    scheduled_tasks.note(number)
