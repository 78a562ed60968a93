"""Tests the tasks that the demo creates for the console's pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from duetime.handlers import Context, Unretriable
from duetime_local import demo_showcase

if TYPE_CHECKING:
    from duetime_testing import Duetime


def _refuse(_context: Context, payload: object) -> NoReturn:
    raise Unretriable(f"refuses {payload!r}")


def test_the_showcase_has_content_for_each_page(duetime: Duetime) -> None:
    """The demo leaves failed, locked and future tasks and colliding schedules; a second demo changes no schedule."""
    for name in ("echo", "sleep", "ci.job"):
        duetime.register(name, lambda _context, payload: payload)
    duetime.register("echo.refuse", _refuse)
    demo_showcase.create(duetime.client, duetime.now)
    locked = [task.lock for task in duetime.client.tasks.list() if task.lock]
    assert [lock["key"] for lock in locked] == [demo_showcase.LOCK] * 3
    before = [schedule.version for schedule in duetime.client.schedules.list()]
    demo_showcase.create(duetime.client, duetime.now)
    assert [schedule.version for schedule in duetime.client.schedules.list()] == before
    duetime.advance(minutes=1)
    tasks = list(duetime.client.tasks.list(tags={demo_showcase.TAG: demo_showcase.SHOWCASE}))
    assert {task.type for task in tasks if task.state == "failed"} == {"echo.refuse"}
    assert {task.name for task in tasks if task.state == "scheduled"} == {"send invitation"}
    collisions = duetime.client.schedules.get_forecast().collisions
    assert {"demo-nightly", "demo-backup"} <= {name for each in collisions for name in each.schedules}
