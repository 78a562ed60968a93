"""Tasks that wait for a person, an event, or their rate, and the operations that decide about these tasks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.tasks.event_waits import AwaitedEvent, awaited_event
from duetime.domain.tasks.task_options import Rate
from duetime.domain.times import MINUTE, SECOND
from duetime_testing.simulation.machines import SKEW
from tests.pairs import operations
from tests.pairs.operations import ACCEPTED, OF_TASKS, REFUSED, TRIGGER, WORKER, Operation, by_status
from tests.pairs.subjects import Subject, made, named, state_is, topology_begun, worked
from tests.simulation import works
from tests.simulation.signal_watching import UserSignal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.pairs.world import World
    from tests.simulation.users import Reply

_TIMEOUT = 20
_LONG = 2_400
"""How many seconds a task waits for its event; a lost signal is found only at the end of this time."""
_SOON = 20 * MINUTE
"""The time after which a task has found its signal, even if a worker or a message was lost."""
_CRM = Rate("crm", 1, 60)
_RATE = {"key": "crm", "limit": 1, "per_seconds": 60}
_SWITCH = f"/v1/switches/type/{works.PLAIN}"


def _decide(approve: bool, said: object, world: World) -> Reply | None:  # noqa: FBT001 - the field of the request
    """Approve or reject the subject's task, and check that the response is possible at this time."""
    body = {"approve": approve, ("payload" if approve else "reason"): said}
    name = world.about.get("node", world.about["task"])
    world.topologies.signalled.add((name, approve))
    reply = world.ask("POST", f"/v1/tasks/{name}/signal", body)
    task, check = world.watching.record(name), world.watching.check
    if by_status(reply) is ACCEPTED and reply is not None:
        wanted = "succeeded" if approve else "failed"
        check(reply.body["state"] == wanted, f"it was decided ({approve}), and is {reply.body['state']}")
        check(task is None or task.due_at <= world.time.now() + SKEW, "it was decided before it was due")
        world.expiries.check_kept(name)
    elif by_status(reply) is REFUSED and task is not None:
        check(task.state != "running", "a decision was refused while a worker checked whether it has come")
    return reply


def _is_decided_once(world: World, _replies: Sequence[Reply | None]) -> None:
    """Check that at most one of two different decisions is accepted."""
    ways = {actor.operation.name for actor in world.actors if ACCEPTED in actor.outcome} & _DECISIONS
    world.watching.check(len(ways) < 2, f"it was decided by {sorted(ways)}")


def _signal(key: str, world: World) -> Reply | None:
    number = len(key)
    world.signal_users.signals[number] = UserSignal(key, world.time.now())
    return world.ask("POST", "/v1/signals", {"name": "paid", "key": key, "payload": number})


def _patch_target(world: World, **fields: object) -> Reply | None:
    return world.ask("PATCH", f"/v1/tasks/{world.about['task']}", {"target": fields})


def _waits_no_more(world: World, replies: Sequence[Reply | None]) -> None:
    """Check that a task for which a signal was accepted does not continue to wait for its event."""
    task = world.watching.record(world.about["task"])
    is_sent = any(by_status(reply) is ACCEPTED for reply in replies)
    is_waiting = (
        task is not None and awaited_event(task) == AwaitedEvent(task.owner, "paid") and task.state == "waiting"
    )
    world.watching.check(not (is_sent and is_waiting), "a signal was accepted, and the task waits for it")
    is_alone = {actor.operation.name for actor in world.actors} <= {"signal", "worker", "worker-failing", "trigger"}
    if is_sent and is_alone and task is not None and task.state == "succeeded" and task.finished_at is not None:
        is_late = task.finished_at - world.signal_users.signals[0].asked_at > _SOON
        world.watching.check(not is_late, "a signal was accepted, and the task has not taken it in time")


def _set_rate(limit: int, world: World) -> Reply | None:
    # As long as one task of the key has the higher rate, this rate applies to all tasks of the key.
    world.rates.asked.setdefault(_CRM.key, set()).update({_CRM, replace(_CRM, limit=limit)})
    return world.ask("PATCH", f"/v1/tasks/{world.about['task']}", {"rate": {"limit": limit}})


def _decision(name: str, said: object) -> Operation:
    return Operation(name, partial(_decide, name.startswith("approve"), said), promise=_is_decided_once)


OF_APPROVALS = (
    _decision("approve", None),
    _decision("approve-otherwise", works.LARGE),
    _decision("reject", ""),
    _decision("reject-otherwise", "not this week"),
)
_DECISIONS = {each.name for each in OF_APPROVALS}
OF_EVENTS = (
    Operation("signal", partial(_signal, ""), promise=_waits_no_more, is_repeatable=True, goes_on=True),
    Operation("signal-another", partial(_signal, "another"), is_repeatable=True, goes_on=True),
    Operation("patch-event", lambda world: _patch_target(world, key="another")),
    Operation("patch-event-timeout", lambda world: _patch_target(world, timeout_seconds=2_000)),
)
OF_RATES = (
    Operation("pause-rate", lambda world: world.ask("POST", "/v1/rates/crm/pause"), is_repeatable=True),
    Operation("patch-rate", partial(_set_rate, 2)),
    Operation("switch-rate", lambda world: world.ask("PUT", _SWITCH, {"rate": {"limit": 1, "per_seconds": 90}})),
    Operation("switch-no-rate", lambda world: world.ask("DELETE", _SWITCH)),
)


def approval(world: World) -> None:
    """A task that waits up to ten minutes for a person's decision."""
    _awaited(world, 600)


def approval_queued(world: World) -> None:
    """A task that is due and will wait for a person's decision; its message is on the queue."""
    made(world, target={"kind": "approval", "timeout_seconds": 600})
    world.time.run_until(world.time.now() + 2 * SECOND)


def approval_early(world: World) -> None:
    """A task that is due in ten minutes, and will then wait for a person's decision."""
    made(world, delay_seconds=600, target={"kind": "approval", "timeout_seconds": 600})


def approval_node(world: World) -> None:
    """A node of a topology; the node waits for a person's decision."""
    target = {"kind": "approval", "timeout_seconds": 600}
    topology_begun(world, a={"type": "approval", "target": target}, b={"type": works.PLAIN, "depends_on": ["a"]})
    world.do(partial(WORKER.act, world))


def approval_overdue(world: World) -> None:
    """A task that has waited too long for a person's decision; its message is on the queue."""
    _awaited(world, _TIMEOUT)
    world.time.run_until(world.time.now() + (_TIMEOUT + 2) * SECOND)


def approval_failed(world: World) -> None:
    """A task that has failed because nobody decided in time."""
    approval_overdue(world)
    worked(world)
    state_is(world, "failed")


def _awaited(world: World, seconds: int) -> None:
    made(world, target={"kind": "approval", "timeout_seconds": seconds})
    worked(world)
    state_is(world, "waiting")


def event_queued(world: World) -> None:
    """A task that is due and will wait for an event; its message is on the queue."""
    made(world, target={"kind": "wait_for_event", "event": "paid", "timeout_seconds": _LONG})
    world.time.run_until(world.time.now() + 2 * SECOND)


def event_waiting(world: World) -> None:
    """A task that waits up to forty minutes for an event."""
    event_queued(world)
    worked(world)
    state_is(world, "waiting")


def event_overdue(world: World) -> None:
    """A task that has waited too long for an event; its message is on the queue."""
    made(world, target={"kind": "wait_for_event", "event": "paid", "timeout_seconds": _TIMEOUT})
    worked(world)
    state_is(world, "waiting")
    world.time.run_until(world.time.now() + (_TIMEOUT + 2) * SECOND)


def rate_queued(world: World) -> None:
    """Two tasks with the same rate, both on queues; only one of the tasks may start in a minute."""
    made(world, label="other", name="other", priority="high", rate=_RATE)
    made(world, rate=_RATE)
    world.time.run_until(world.time.now() + 2 * SECOND)


def rate_waiting(world: World) -> None:
    """A task that waits for its turn, because another task with the same rate has started."""
    made(world, label="other", name="other", rate=_RATE)
    world.time.run_until(world.time.now() + 2 * SECOND)
    world.do(partial(WORKER.act, world))
    made(world, rate=_RATE)
    worked(world)
    state_is(world, "waiting")


def rate_due(world: World) -> None:
    """A task with a rate whose turn has come; its message and the message of another task are on the queue."""
    rate_waiting(world)
    world.time.run_until(world.time.now() + MINUTE)
    made(world, label="next", name="next", rate=_RATE)
    world.about["task"] = next(task for task, label in world.about["labels"].items() if label == "task")
    world.time.run_until(world.time.now() + 2 * SECOND)


_CONTROL = "get patch-name patch-priority pause resume run cancel cancel-by-force"
_ON_AWAITED = named(f"{_CONTROL} patch-soon patch-matching-05 retry rollback bulk-cancel notify-success", OF_TASKS)

SUBJECTS = (
    Subject("approval", approval, (*OF_APPROVALS, *_ON_AWAITED, TRIGGER)),
    Subject("approval-early", approval_early, (*OF_APPROVALS, *named("get run cancel", OF_TASKS), TRIGGER)),
    Subject("approval-queued", approval_queued, (*OF_APPROVALS, *named("get pause cancel", OF_TASKS), WORKER, TRIGGER)),
    Subject(
        "approval-node",
        approval_node,
        (*OF_APPROVALS, *named("topology-cancel finish worker", operations.OF_TOPOLOGIES)),
        lives=True,
        is_compared=False,
    ),
    Subject("approval-overdue", approval_overdue, (*OF_APPROVALS, *named(_CONTROL, OF_TASKS), WORKER, TRIGGER)),
    Subject(
        "approval-failed", approval_failed, (*OF_APPROVALS, *named("get patch-name retry cancel", OF_TASKS), WORKER)
    ),
    # A signal that finds the task running continues in the background.
    Subject(
        "event-queued",
        event_queued,
        (*OF_EVENTS, *named(_CONTROL, OF_TASKS), WORKER, operations.FAILING, TRIGGER),
        is_compared=False,
    ),
    Subject("event-waiting", event_waiting, (*OF_EVENTS, *_ON_AWAITED, WORKER, TRIGGER), is_compared=False),
    Subject(
        "event-overdue",
        event_overdue,
        (*OF_EVENTS, *named(_CONTROL, OF_TASKS), WORKER, TRIGGER),
        is_compared=False,
    ),
    Subject("rate-queued", rate_queued, (*OF_RATES, *named(_CONTROL, OF_TASKS), WORKER, operations.FAILING, TRIGGER)),
    Subject("rate-waiting", rate_waiting, (*OF_RATES, *named(f"{_CONTROL} patch-soon", OF_TASKS), WORKER, TRIGGER)),
    Subject("rate-due", rate_due, (*OF_RATES, *named(_CONTROL, OF_TASKS), WORKER, TRIGGER)),
)
