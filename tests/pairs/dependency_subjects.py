"""Tasks that wait for other tasks: in the line of an ordered key, after a parent, and in a group."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.times import SECOND
from tests.pairs.operations import OF_LOCKS, OF_TASKS, TRIGGER, WORKER, Operation, by_count
from tests.pairs.subjects import Subject, made, named, state_is, worked
from tests.simulation import works

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.pairs.world import World
    from tests.simulation.users import Reply

_ORDER = {"key": "customer-17"}
_STOPPING = {**_ORDER, "on_failure": "stop"}
GROUP = "import-17"
_MEMBER = {"id": GROUP}
_GROUP = f"/v1/groups/{GROUP}"
_ONCE = {"max_attempts": 1}


def _join(world: World) -> Reply | None:
    """Create a member of the group."""
    body = {"type": works.PLAIN, "group": _MEMBER, "delay_seconds": 600, "notify_within_seconds": 60}
    return world.ask("POST", "/v1/tasks", body)


def _close(world: World) -> Reply | None:
    """Close the group with a task that runs once all members have ended."""
    task = {"type": works.PLAIN, "name": "report", "notify_within_seconds": 60}
    return world.ask("PUT", _GROUP, {"on_complete": {"task": task, "rule": "all_done"}})


def _follow(world: World) -> Reply | None:
    """Create a task that waits for the subject's task."""
    body = {"type": works.PLAIN, "after": [world.about["task"]], "notify_within_seconds": 60}
    return world.ask("POST", "/v1/tasks", body)


_of_group = partial(Operation, classify=by_count("affected"), goes_on=True)
OF_GROUPS = (
    Operation("join", _join),
    Operation("close-group", _close, goes_on=True, is_repeatable=True),
    _of_group("cancel-group", lambda world: world.ask("POST", f"{_GROUP}/cancel"), is_repeatable=True),
    _of_group("retry-group", lambda world: world.ask("POST", f"{_GROUP}/retry")),
)
FOLLOW = Operation("create-after", _follow, goes_on=True)


def _waiting_behind(world: World, **fields: object) -> None:
    """Create another task that waits for the subject's task; the subject does not change."""
    task, fence, version = (world.about.get(name) for name in ("task", "fence", "version"))
    made(world, label="waiter", name="waiter", **fields)
    world.about["task"] = world.about["waiter"]
    world.time.run_until(world.time.now() + 2 * SECOND)
    world.do(partial(WORKER.act, world))
    world.about.update({"task": task, "fence": fence, "version": version})


def ordered(world: World) -> None:
    """A task whose target has accepted the work; another task with the same ordered key waits behind this task."""
    made(world, order=_ORDER)
    worked(world, "accepts")
    _waiting_behind(world, order=_ORDER)


def ordered_later(world: World) -> None:
    """A task that is due in ten minutes; another task with the same ordered key waits behind this task."""
    made(world, order=_ORDER, delay_seconds=600)
    _waiting_behind(world, order=_ORDER)


def ordered_stopped(world: World) -> None:
    """A failed task that blocks the line in which another task waits."""
    made(world, order=_STOPPING, retry=_ONCE)
    worked(world, "fails")
    state_is(world, "failed")
    _waiting_behind(world, order=_STOPPING)


def parent(world: World) -> None:
    """A task whose target has accepted the work; another task runs after this task."""
    made(world)
    worked(world, "accepts")
    _waiting_behind(world, after=[world.about["task"]])


def parent_later(world: World) -> None:
    """A task that is due in ten minutes; another task runs after this task."""
    made(world, delay_seconds=600)
    _waiting_behind(world, after=[world.about["task"]])


def member(world: World) -> None:
    """A member of an open group that is due in ten minutes."""
    made(world, group=_MEMBER, delay_seconds=600)


def last_member(world: World) -> None:
    """The only member of a closed group.

    The member's target has accepted the work, and a retry would follow in minutes.
    """
    made(world, group=_MEMBER, retry={"max_attempts": 3, "initial_seconds": 300, "max_seconds": 300})
    worked(world, "accepts")
    reply = world.do(partial(_close, world))
    assert reply is not None
    assert reply.status < 300, reply
    world.about["labels"][reply.body["on_complete"]["task_id"]] = "report"


def failed_member(world: World) -> None:
    """The only member of an open group, which has failed."""
    made(world, group=_MEMBER, retry=_ONCE)
    worked(world, "fails")
    state_is(world, "failed")


def _letting_others_go_on(among: Sequence[Operation]) -> tuple[Operation, ...]:
    """Operations whose deciding write lets other tasks run; these tasks notice the write even if a later call fails."""
    return tuple(replace(each, goes_on=each.name not in {"get", "heartbeat"}) for each in among)


_ENDS = _letting_others_go_on(named("cancel-by-force notify-success notify-failure heartbeat", OF_TASKS))
_CONTROL = _letting_others_go_on(
    named("get patch-name patch-priority patch-soon pause run cancel bulk-cancel", OF_TASKS)
)
_REOPENED = _letting_others_go_on(named("get retry rollback redrive bulk-delete", OF_TASKS))
_OF_WAITERS = _letting_others_go_on(OF_LOCKS[1:])
_GO_ON = (WORKER, TRIGGER)

SUBJECTS = (
    Subject("ordered", ordered, _ENDS + _OF_WAITERS + _GO_ON),
    Subject("ordered-later", ordered_later, _CONTROL + _OF_WAITERS + _GO_ON),
    Subject("ordered-stopped", ordered_stopped, _REOPENED + _OF_WAITERS + _GO_ON),
    Subject("parent", parent, (*_ENDS, *_OF_WAITERS, FOLLOW, *_GO_ON)),
    Subject("parent-later", parent_later, (*_CONTROL, *_OF_WAITERS, FOLLOW, *_GO_ON)),
    Subject("member", member, _CONTROL + OF_GROUPS + _GO_ON),
    Subject("last-member", last_member, _ENDS + OF_GROUPS + _GO_ON),
    Subject("failed-member", failed_member, _REOPENED + OF_GROUPS + _GO_ON),
)
