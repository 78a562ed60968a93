"""Creates sample tasks and schedules to look at in the console, including failing and waiting tasks."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from duetime_client import Conflict, NewTask

if TYPE_CHECKING:
    from duetime_client import Client

TAG = "demo"
SHOWCASE = "showcase"
LOCK = "ledger"
LONG_SECONDS = 120
"""The duration in seconds of tasks that show progress or hold a lock."""
STAYS = timedelta(hours=8)
"""How long the schedule `demo-refresh` keeps creating tasks, so that the console shows activity."""
_ZONE = "Europe/London"


def create(client: Client, now: datetime | None = None) -> None:
    """Create the samples, which outlive the demo.

    The tasks wait for a lock, report progress, fail, or are due in the future, and some schedules run at the same time.
    Schedules of an earlier demo are left unchanged.
    """
    now = now or datetime.now(UTC)
    tags = {TAG: SHOWCASE}
    for number in (1, 2, 3):
        client.tasks.create(
            "echo.refuse", payload={"file": f"statement-{number}.csv"}, name=f"statement {number}", tags=tags
        )
    for month in ("October", "November", "December"):
        nap, name = {"seconds": LONG_SECONDS}, f"close {month}"
        client.tasks.create(
            "sleep", payload=nap, name=name, lock={"key": LOCK}, timeout_seconds=2 * LONG_SECONDS, tags=tags
        )
    build = {"job": "build documentation", "work_ms": LONG_SECONDS * 1000}
    client.tasks.create(
        "ci.job", payload=build, name="build documentation", timeout_seconds=2 * LONG_SECONDS, tags=tags
    )
    client.tasks.create("echo", payload="tomorrow", name="send invitation", due_at=now + timedelta(hours=20), tags=tags)
    refresh, report = NewTask(type="echo", payload="refresh"), NewTask(type="echo", payload="report")
    with suppress(Conflict):
        client.schedules.create(
            "demo-refresh", cron="*/20 * * * * *", end_at=now + STAYS, overlap="allow_all", task=refresh
        )
    for name, cron in {
        "demo-nightly": "30 1 * * *",
        "demo-backup": "30 1,13 * * *",
        "demo-hourly": "0 * * * *",
    }.items():
        with suppress(Conflict):
            client.schedules.create(name, cron=cron, timezone=_ZONE, task=report)
