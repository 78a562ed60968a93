"""The subjects of operations; each subject is built once, and many runs then start from its saved state."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from duetime.domain.times import MINUTE, SECOND, to_iso
from duetime.environment_variables import Variable
from tests.pairs import operations
from tests.pairs.world import Saved, World
from tests.simulation import works
from tests.simulation.account import PULLED
from tests.simulation.endpoints import URL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.tasks.task import Task
    from tests.pairs.operations import Operation
    from tests.simulation.users import Reply


@dataclass(frozen=True)
class Subject:
    """A subject on which operations are run, in one state.

    Attributes:
        build: creates the subject in a new account.
        operations: the possible operations on the subject.
        is_compared: whether its ends are compared with the ends of orders, which requires that no other work is in
            progress.
        lives: whether part of it is running, so that it cannot be saved and must be built again for each run.
    """

    name: str
    build: Callable[[World], None] = field(compare=False)
    operations: tuple[Operation, ...] = field(compare=False)
    lives: bool = False
    is_compared: bool = True

    def world(self) -> World:
        """An account that contains the subject."""
        # The account is saved first, because only one account exists at a time.
        saved = _quiet() if self.lives else _saved(self)
        world = World()
        world.restore(saved)
        if self.lives:
            self.build(world)
        return world


@cache
def _saved(subject: Subject) -> Saved:
    quiet = _quiet()
    world = World()
    try:
        world.restore(quiet)
        subject.build(world)
        return world.saved()
    finally:
        world.end()


@cache
def _quiet() -> Saved:
    """An account whose trigger has read all earlier minutes."""
    world = World()
    try:
        for _ in range(2):
            world.do(partial(operations.TRIGGER.act, world))
        world.about["minute"] = world.time.now() // MINUTE * MINUTE
        return world.saved()
    finally:
        world.end()


def answered(world: World, method: str, path: str, body: object = None, **more: str) -> Reply:
    """Send a request, and wait for its response."""
    reply = world.do(partial(world.ask, method, path, body, **more))
    assert reply is not None
    return reply


def made(world: World, label: str = "task", **fields: object) -> dict[str, Any]:
    """Create a task, which becomes the subject unless another label is given."""
    body = {"type": works.PLAIN, "name": "old", "notify_within_seconds": 60, **fields}
    reply = answered(world, "POST", "/v1/tasks", body)
    assert reply.status == 201, reply
    world.about[label] = reply.body["id"]
    world.about.setdefault("labels", {})[reply.body["id"]] = label
    world.about["version"] = reply.body["version"]
    world.watching.accepted.append(reply.body["id"])
    return dict(reply.body)


def _task_now(world: World) -> Task:
    task = world.watching.record(world.about["task"])
    assert task is not None
    return task


def asked(world: World, verb: str, body: object = None) -> None:
    """Send a control request for the subject's task."""
    reply = answered(world, "POST", f"/v1/tasks/{world.about['task']}/{verb}", body)
    assert reply.status < 300, reply
    world.about["version"] = reply.body["version"]


def worked(world: World, behavior: str = "done") -> None:
    """Let a worker process due tasks."""
    world.behavior = behavior
    world.time.run_until(world.time.now() + 2 * SECOND)
    world.do(partial(operations.WORKER.act, world))
    world.behavior = "done"
    task = _task_now(world)
    world.about["fence"], world.about["version"] = task.fence, task.version


def state_is(world: World, wanted: str) -> None:
    """Check that the subject's task is in this state."""
    state = str(_task_now(world).state)
    assert state == wanted, state


def scheduled(world: World) -> None:
    """A task that is due in ten minutes."""
    made(world, delay_seconds=600)


def queued(world: World) -> None:
    """A task that is due; its message is on the queue."""
    made(world, type=works.UNDONE, rollback_on_failure=True)
    world.time.run_until(world.time.now() + 2 * SECOND)


def too_late(world: World) -> None:
    """A task on the queue whose first attempt would be too late."""
    made(world, type=works.UNDONE, rollback_on_failure=True, expires_seconds=1)
    world.time.run_until(world.time.now() + 5 * SECOND)


def pulled_too_late(world: World) -> None:
    """A task of pull workers whose first attempt would be too late."""
    made(world, type=PULLED, expires_seconds=1)
    world.time.run_until(world.time.now() + 5 * SECOND)


def unique(world: World) -> None:
    """A task with a unique key; the task is due in some minutes."""
    made(world, type=works.UNDONE, delay_seconds=600, **operations.unique_key())


def unique_queued(world: World) -> None:
    """A task with a unique key whose message is on the queue."""
    made(world, type=works.UNDONE, **operations.unique_key("started"))
    world.time.run_until(world.time.now() + 2 * SECOND)


def unique_ending(world: World) -> None:
    """A task on the queue that keeps its unique key until its end and may have only one attempt."""
    made(world, retry={"max_attempts": 1}, **operations.unique_key())
    world.time.run_until(world.time.now() + 2 * SECOND)


def unique_failed(world: World) -> None:
    """A failed task that had a unique key."""
    made(world, retry={"max_attempts": 1}, **operations.unique_key())
    worked(world, "fails")
    state_is(world, "failed")


def unique_expired(world: World) -> None:
    """A task that failed without having started, and had a unique key until then."""
    made(world, expires_seconds=1, **operations.unique_key("started"))
    world.time.run_until(world.time.now() + 5 * SECOND)
    worked(world)
    state_is(world, "failed")


def queued_phased(world: World) -> None:
    """A task on the queue whose handler has all phases, and which needs a lock."""
    made(world, type=works.PHASED, rollback_on_failure=True, lock={"key": "db"}, payload=operations.LARGE)
    world.time.run_until(world.time.now() + 2 * SECOND)


def soon(world: World) -> None:
    """A task that is due in a minute which the trigger has already read."""
    made(world, delay_seconds=60)


def retrying(world: World) -> None:
    """A task that failed once; its next attempt follows after some minutes."""
    made(world, retry={"max_attempts": 3, "initial_seconds": 300, "max_seconds": 300})
    worked(world, "fails")
    state_is(world, "waiting")


def locked_out(world: World) -> None:
    """A task that waits for a lock that a pull worker holds."""
    made(world, type=PULLED, lock={"key": "db"}, label="holder", name="holder", timeout_seconds=600)
    world.do(partial(world.lease, "X", 60))
    assert world.about["lease"]
    made(world, lock={"key": "db"})
    worked(world)
    state_is(world, "waiting")


def paused(world: World) -> None:
    """A task that was paused before it began."""
    made(world, delay_seconds=600)
    asked(world, "pause")


def paused_midway(world: World) -> None:
    """A task whose attempt was paused and left a checkpoint."""
    made(world, type=PULLED)
    world.do(partial(world.lease, "X", 60))
    asked(world, "pause")
    world.do(partial(world.end_lease, "pause", {"checkpoint": operations.LARGE}))
    state_is(world, "paused")


def accepted(world: World) -> None:
    """A task whose target has accepted the work, and will report its end later."""
    made(world)
    worked(world, "accepts")
    state_is(world, "running")


def accepted_locked(world: World) -> None:
    """A task whose target has accepted the work and that holds a lock for which another task waits."""
    made(world, lock={"key": "db"})
    worked(world, "accepts")
    made(world, lock={"key": "db"}, label="waiter", name="waiter")
    task, world.about["task"] = world.about["task"], world.about["waiter"]
    worked(world)
    world.about["task"] = task
    world.about["fence"] = _task_now(world).fence


def succeeded(world: World) -> None:
    """A task that has succeeded."""
    made(world, type=works.UNDONE, rollback_on_failure=True)
    worked(world)
    state_is(world, "succeeded")


def failed(world: World) -> None:
    """A task that has finally failed."""
    made(world, type=works.UNDONE, retry={"max_attempts": 1}, payload=operations.LARGE)
    worked(world, "fails")
    state_is(world, "failed")


def _expired(world: World, build: Callable[[World], None]) -> None:
    """A task that ended so long ago that TTL can remove the task and its contents at any time."""
    world.about["environ"] = {Variable.RETENTION_DAYS: "0.01"}
    world.environ.update(world.about["environ"])
    build(world)
    world.time.run_until(world.time.now() + 25 * MINUTE)
    for _ in range(3):
        world.do(partial(operations.TRIGGER.act, world))
    # At this time, the task may no longer exist.
    world.watching.accepted.clear()


def queued_http(world: World) -> None:
    """A task on the queue whose target is an HTTP endpoint."""
    phases = ["prepare", "clean", "rollback"]
    made(
        world, target={"kind": "http", "url": URL, "phases": phases}, rollback_on_failure=True, payload=operations.LARGE
    )
    world.time.run_until(world.time.now() + 2 * SECOND)


def event_twice(world: World) -> None:
    """An event that was delivered twice."""
    fields = {
        "type": works.PLAIN,
        "name": "event",
        "timeout_seconds": 60,
        "notify_within_seconds": 60,
        "delay_seconds": 5,
    }
    event = {"id": "event", "source": "users", "time": to_iso(world.time.now()), "detail": fields}
    for _ in range(2):
        world.sqs.send_message(QueueUrl=world.intake, MessageBody=json.dumps(event))
    world.watching.events["event"] = world.time.now()


def rolling_back(world: World) -> None:
    """A task that will be rolled back; its message is on the queue."""
    succeeded(world)
    asked(world, "rollback")
    world.time.run_until(world.time.now() + 2 * SECOND)


def rolled_back(world: World) -> None:
    """A task that was rolled back."""
    rolling_back(world)
    worked(world)
    state_is(world, "rolled_back")


def cancelled(world: World) -> None:
    """A task that was cancelled."""
    made(world, delay_seconds=600)
    world.do(partial(world.ask, "POST", f"/v1/tasks/{world.about['task']}/cancel"))


def dead_lettered(world: World) -> None:
    """A task whose message was received too often."""
    queued(world)
    for queue in world.sqs.queues.values():
        for held in queue.messages:
            held.received = 10_000
    for url in world.sqs.queues:
        world._receive(url) if "dead" not in url else None


def worker_lost(world: World) -> None:
    """A task whose worker died during the attempt; the worker's lease has ended."""
    made(world, retry={"max_attempts": 3, "initial_seconds": 1})
    world.time.run_until(world.time.now() + 2 * SECOND)
    actor = world.begin(operations.LISTENING)
    assert world.run_until(lambda: _task_now(world).state == "running")
    world.time.run_until(world.time.now() + SECOND)
    for machine in list(world.machines):
        if machine.strand is not None:
            machine.die()
    assert world.run_until(lambda: actor.is_done)
    world.behavior = "done"
    world.actors.clear()
    world.time.run_until(world.time.now() + 40 * SECOND)
    world.about["fence"] = _task_now(world).fence


def pulled(world: World) -> None:
    """A due task of a pulled type; its message is on the queue of that type."""
    made(world, type=PULLED, timeout_seconds=600)
    world.time.run_until(world.time.now() + 2 * SECOND)


def pulled_locked(world: World) -> None:
    """A due task of a pulled type with a lock; its message is on the queue of that type."""
    made(world, type=PULLED, lock={"key": "db"}, timeout_seconds=600)
    world.time.run_until(world.time.now() + 2 * SECOND)


def leased(world: World) -> None:
    """A task that a pull worker has leased and acknowledged."""
    made(world, type=PULLED, timeout_seconds=600)
    world.do(partial(world.lease, "X", 60))
    world.do(partial(world.end_lease, "heartbeat"))
    state_is(world, "running")


def leased_limited(world: World) -> None:
    """A task that a pull worker has leased; no other task of its type may run at the same time."""
    reply = answered(world, "PUT", f"/v1/switches/type/{PULLED}", {"max_concurrent": 1})
    assert reply.status < 300, reply
    world.time.run_until(world.time.now() + SECOND)
    leased(world)


def leased_pausing(world: World) -> None:
    """A task that a pull worker has leased, and whose pause was requested."""
    leased(world)
    asked(world, "pause")


def leased_stopping(world: World) -> None:
    """A task that a pull worker has leased and that was asked to stop."""
    leased(world)
    reply = answered(world, "POST", f"/v1/tasks/{world.about['task']}/cancel", {"force": True})
    assert reply.status == 202


def leased_locked(world: World) -> None:
    """A task that a pull worker has leased and that holds a lock for which another task waits."""
    made(world, type=PULLED, lock={"key": "db"}, timeout_seconds=600)
    world.do(partial(world.lease, "X", 60))
    made(world, lock={"key": "db"}, label="waiter", name="waiter")
    task, world.about["task"] = world.about["task"], world.about["waiter"]
    worked(world)
    world.about["task"] = task
    world.about["fence"] = _task_now(world).fence


def lease_over(world: World) -> None:
    """A task that a pull worker leased without ever reporting on it; the lease has ended."""
    made(world, type=PULLED, lock={"key": "db"}, timeout_seconds=600, retry={"max_attempts": 3, "initial_seconds": 1})
    world.do(partial(world.lease, "X", 5))
    world.time.run_until(world.time.now() + 15 * SECOND)


def _taken(world: World, what: str, body: dict[str, Any]) -> None:
    """Create an accepted bulk operation that has not begun."""
    world.about["bulk"] = "none"
    reply = answered(world, "POST", what, {"filter": {"name": "old"}, "per_second": 0.5, **body})
    assert reply.status == 202, reply
    world.about["bulk"] = reply.body["id"]


def bulk_cancelling(world: World) -> None:
    """A task that a bulk operation will cancel."""
    scheduled(world)
    _taken(world, "/v1/tasks/cancel", {})


def bulk_changing(world: World) -> None:
    """A task that a bulk operation will change."""
    scheduled(world)
    _taken(world, "/v1/tasks/update", {"update": {"priority": "high"}})


def bulk_redriving(world: World) -> None:
    """A failed task that a bulk operation will retry."""
    failed(world)
    _taken(world, "/v1/tasks/retry", {})


def nothing(world: World) -> None:
    """An account in which nothing exists yet."""


def schedule_made(world: World, in_minutes: int = 1, **fields: object) -> None:
    """Create a schedule that runs once a minute for twenty minutes and begins in this many minutes."""
    first = world.about["minute"] // MINUTE % 60 + in_minutes
    minutes = ",".join(str((first + number) % 60) for number in range(20))
    name, task = operations.SCHEDULE, {"type": works.PLAIN, "notify_within_seconds": 60}
    body = {"name": name, "task": task, **({} if "permanent" in fields else {"cron": f"{minutes} * * * *"})}
    world.schedules.made(name, world.time.now())
    world.schedules.disturbed.add(name)
    reply = answered(world, "POST", "/v1/schedules", {**body, **fields})
    assert reply.status == 201, reply
    world.about["schedule"] = name


def overlap_control(world: World) -> None:
    """A schedule that covers twenty minutes.

    Its next occurrence is placed, and the trigger is about to place another occurrence.
    """
    schedule_made(world, in_minutes=3)
    world.time.run_until(world.time.now() + MINUTE)


def recurring_due(world: World) -> None:
    """A schedule that covers twenty minutes, with an occurrence on its queue."""
    schedule_made(world)
    world.time.run_until((world.time.now() // MINUTE + 1) * MINUTE + 2 * SECOND)


def recurring_busy(world: World) -> None:
    """A schedule that covers twenty minutes, with a running occurrence."""
    recurring_due(world)
    world.do(partial(operations.ACCEPTING.act, world))
    world.behavior = "done"


def recurring_held(world: World) -> None:
    """A paused schedule that covers twenty minutes."""
    schedule_made(world, in_minutes=3)
    reply = answered(world, "POST", f"/v1/schedules/{operations.SCHEDULE}/pause")
    assert reply.status == 200, reply


def recurring_gone(world: World) -> None:
    """A schedule that was deleted after one of its occurrences had been placed."""
    overlap_control(world)
    reply = answered(world, "DELETE", f"/v1/schedules/{operations.SCHEDULE}")
    assert reply.status == 200, reply


def permanent(world: World) -> None:
    """A schedule that runs again after the end of its last run, with a run in progress."""
    schedule_made(world, permanent={"gap_seconds": 45})
    world.time.run_until(world.time.now() + 2 * SECOND)
    world.do(partial(operations.ACCEPTING.act, world))
    world.behavior = "done"


def with_calendar(world: World) -> None:
    """A schedule with a calendar."""
    reply = answered(world, "PUT", "/v1/calendars/holidays", {"dates": ["2026-12-25"]})
    assert reply.status < 300, reply
    schedule_made(world, in_minutes=3, calendars=["holidays"])


def filling_back(world: World) -> None:
    """A schedule with a slow backfill in progress."""
    _fill_back(world, minutes=30, per_minute=1)


def filled_back(world: World) -> None:
    """A schedule with a backfilled period, whose runs have ended."""
    _fill_back(world, minutes=1, per_minute=20)
    for _ in range(3):
        world.do(partial(operations.TRIGGER.act, world))
        world.time.run_until(world.time.now() + 20 * SECOND)
        world.do(partial(operations.WORKER.act, world))


def _fill_back(world: World, minutes: int, per_minute: int) -> None:
    schedule_made(world, in_minutes=3)
    start = world.about["minute"] - 100 * MINUTE
    period = {"scheduled_after": to_iso(start), "scheduled_before": to_iso(start + minutes * MINUTE)}
    path = f"/v1/schedules/{operations.SCHEDULE}/backfills"
    reply = answered(world, "POST", path, {**period, "per_minute": per_minute, "only_missing": True})
    assert reply.status == 201, reply
    world.about["backfill"] = reply.body["id"]


def tagged(world: World) -> None:
    """A schedule whose tasks have a tag."""
    task = {"type": works.PLAIN, "notify_within_seconds": 60, "tags": operations.TAGS}
    schedule_made(world, in_minutes=3, task=task)


def tagged_held(world: World) -> None:
    """A paused schedule whose tasks have a tag."""
    tagged(world)
    reply = answered(world, "POST", f"/v1/schedules/{operations.SCHEDULE}/pause")
    assert reply.status == 200, reply


def switched_off(world: World) -> None:
    """A task that is due while everything is stopped."""
    queued(world)
    reply = answered(world, "PUT", "/v1/switches/all/all", {"stopped": True})
    assert reply.status < 300, reply


def topology_begun(world: World, **nodes: object) -> None:
    """Create a topology, and wait until its execution has begun."""
    reply = answered(world, "POST", "/v1/topologies", {"nodes": nodes})
    assert reply.status == 201, reply
    world.about["task"] = reply.body["id"]
    world.about["labels"] = {reply.body["id"]: "task"}
    world.watching.accepted_topologies.append(reply.body["id"])
    world.topologies.controlled.add(reply.body["id"])
    world.time.run_until(world.time.now() + 2 * SECOND)
    world.do(partial(operations.WORKER.act, world))
    world.time.run_until(world.time.now() + 5 * SECOND)
    task = _task_now(world)
    world.about["fence"] = task.fence
    world.about["node"] = next(
        each.id.text for each in world.watching.tasks() if each.node_ref and each.node_ref.key == "a"
    )


_NODES = {"a": {"type": PULLED, "timeout_seconds": 600}, "b": {"type": works.PLAIN, "depends_on": ["a"]}}


def topology(world: World) -> None:
    """A topology whose first node is leased by a pull worker, and whose second node waits for the first node."""
    topology_begun(world, **_NODES)
    fence = world.about["fence"]
    world.do(partial(world.lease, "X", 60))
    assert world.about.get("lease")
    world.about["fence"], world.about["ends"] = fence, "succeeded"


def topology_condition(world: World) -> None:
    """A topology that runs its second node if its first node returns a large number, and otherwise its third node.

    A pull worker has leased the first node.
    """
    after = {"type": works.PLAIN, "depends_on": ["a"]}
    large, small = {**after, "when": "parents.a.result > `100`"}, {**after, "when": "parents.a.result <= `100`"}
    topology_begun(world, a=_NODES["a"], b=large, c=small)
    fence = world.about["fence"]
    world.do(partial(world.lease, "X", 60))
    assert world.about.get("lease")
    world.about["fence"], world.about["ends"] = fence, "succeeded"


def topology_node_ends(world: World) -> None:
    """A topology whose first node is due on a queue of the workers."""
    topology_begun(world, a={"type": works.PLAIN}, b={"type": works.PLAIN, "depends_on": ["a"]})
    world.about["ends"] = "succeeded"


def topology_failed(world: World) -> None:
    """A topology that has failed because its first node has failed."""
    once = {"max_attempts": 1}
    topology_begun(world, a={"type": works.PLAIN, "retry": once}, b={"type": works.PLAIN, "depends_on": ["a"]})
    world.behavior = "fails"
    for _ in range(20):
        world.do(partial(operations.WORKER.act, world))
        world.time.run_until(world.time.now() + 30 * SECOND)
        if _task_now(world).finished_at is not None:
            break
    world.behavior = "done"
    world.time.run_until(world.time.now() + MINUTE)
    world.do(partial(operations.TRIGGER.act, world))
    state_is(world, "failed")


def topology_retry(world: World) -> None:
    """A failed topology with an accepted retry; its message is on the queue."""
    topology_failed(world)
    reply = answered(world, "POST", f"/v1/topologies/{world.about['task']}/retry")
    assert reply.status == 200, reply
    world.time.run_until(world.time.now() + 2 * SECOND)
    world.about["ends"] = "succeeded"


_TASKS, _LEASES, _STEPS = operations.OF_TASKS, operations.OF_LEASES, operations.STEPS


def named(names: str, among: Sequence[Operation]) -> tuple[Operation, ...]:
    """Select operations by their names."""
    by_name = {each.name: each for each in among}
    return tuple(by_name[name] for name in names.split())


_TICK = (operations.TRIGGER,)
# A client can only guess an attempt's fence before the lease is handed out. If a report with a guessed fence ends the
# attempt, a lock that is taken afterwards is held until the lease ends.
_NOT_REPORTED = tuple(each for each in _TASKS if not each.name.startswith("notify"))
# If an occurrence is on its queue, a requested run is delivered together with the occurrence. With `skip`, only one of
# the two runs takes place, whatever the order of the requests.
_OF_ONE_RUN = tuple(each for each in operations.OF_SCHEDULES if each.name != "make-and-run")
_WORK = named("worker worker-listening worker-failing worker-accepting trigger", _STEPS)
_ENDS = named("cancel-by-force notify-success notify-failure heartbeat", _TASKS)
_DEAD = named("worker trigger deadletter", _STEPS)
_ON_BULK = named("patch-at-05 patch-name patch-priority pause run cancel", _TASKS)
_ENDED = (
    *named("get patch-name retry rollback cancel bulk-cancel redrive", _TASKS),
    operations.TTL,
    operations.TRIGGER,
)

_OF_LATE = operations.OF_EXPIRY + named("get patch-soon pause resume run retry cancel cancel-by-force", _TASKS)

_OF_ENDING = named("create-keep", operations.OF_UNIQUE) + named("retry cancel", _TASKS) + named("worker-failing", _WORK)
_OF_UNIQUE = operations.OF_UNIQUE + named("get patch-at-05 pause run retry rollback cancel", _TASKS)

_ON_BACKFILL = named("get patch-cron pause resume run backfill delete make-again trigger", operations.OF_SCHEDULES)
_ON_TAGGED = named("get patch-task pause resume run delete make-again trigger", operations.OF_SCHEDULES)
_ON_CONDITION = (
    *named("topology-cancel topology-retry cancel-node plan finish worker trigger", operations.OF_TOPOLOGIES),
    *named("lease-complete lease-fail lease-cancel", _LEASES),
)

SUBJECTS = (
    Subject("unique", unique, _OF_UNIQUE + _TICK),
    Subject("unique-queued", unique_queued, _OF_UNIQUE + _WORK),
    Subject("unique-ending", unique_ending, _OF_ENDING),
    Subject("unique-failed", unique_failed, (*_OF_UNIQUE, operations.TTL)),
    Subject("unique-expired", unique_expired, operations.OF_UNIQUE + named("retry cancel", _TASKS) + _WORK[:1]),
    Subject("scheduled", scheduled, _TASKS + operations.OF_FAIRNESS + _TICK),
    Subject("soon", soon, _TASKS + operations.OF_FAIRNESS + _TICK),
    Subject("queued", queued, _TASKS + _WORK),
    Subject("too-late", too_late, _OF_LATE + _WORK),
    Subject("pulled-too-late", pulled_too_late, _OF_LATE + _LEASES[:2] + _TICK),
    Subject("queued-http", queued_http, named("cancel cancel-by-force pause notify-success", _TASKS) + _WORK),
    Subject("succeeded-expired", partial(_expired, build=succeeded), _ENDED),
    Subject("failed-expired", partial(_expired, build=failed), _ENDED),
    Subject("event-twice", event_twice, (operations.INTAKE, operations.TRIGGER, operations.TTL, operations.WORKER)),
    Subject("queued-phased", queued_phased, _TASKS + _WORK),
    Subject("retrying", retrying, _TASKS + operations.OF_FAIRNESS + _TICK),
    Subject("locked-out", locked_out, _TASKS + _LEASES + _TICK),
    Subject("paused", paused, _TASKS + _TICK),
    Subject("paused-midway", paused_midway, _TASKS + _TICK),
    Subject("accepted", accepted, _TASKS + _TICK),
    Subject("accepted-locked", accepted_locked, _TASKS + _TICK),
    Subject("succeeded", succeeded, _TASKS),
    Subject("failed", failed, _TASKS),
    Subject("rolling-back", rolling_back, _TASKS + _DEAD),
    Subject("rolled-back", rolled_back, _TASKS),
    Subject("cancelled", cancelled, _TASKS),
    Subject("dead-lettered", dead_lettered, _TASKS + _DEAD),
    Subject("worker-lost", worker_lost, _TASKS + _WORK),
    Subject("pulled", pulled, _TASKS + _LEASES + _TICK),
    Subject("pulled-locked", pulled_locked, _NOT_REPORTED + _LEASES + _TICK),
    Subject("leased", leased, _TASKS + _LEASES + _TICK),
    Subject("leased-pausing", leased_pausing, _TASKS + _LEASES + _TICK),
    Subject("leased-stopping", leased_stopping, _TASKS + _LEASES + _TICK),
    Subject("leased-locked", leased_locked, _TASKS + _LEASES + _TICK),
    Subject("lease-over", lease_over, _TASKS + _LEASES + _TICK),
    Subject("bulk-cancelling", bulk_cancelling, operations.OF_BULK + _ON_BULK + _TICK),
    Subject("bulk-changing", bulk_changing, operations.OF_BULK + _ON_BULK + _TICK),
    Subject("bulk-redriving", bulk_redriving, operations.OF_BULK + named("get retry rollback", _TASKS) + _DEAD),
    Subject("nothing", nothing, operations.OF_KEYS),
    Subject("recurring", overlap_control, operations.OF_SCHEDULES),
    Subject("recurring-due", recurring_due, _OF_ONE_RUN),
    Subject("recurring-busy", recurring_busy, operations.OF_SCHEDULES),
    Subject("recurring-held", recurring_held, operations.OF_SCHEDULES),
    Subject("recurring-gone", recurring_gone, operations.OF_SCHEDULES),
    Subject("permanent", permanent, operations.OF_SCHEDULES),
    Subject("with-calendar", with_calendar, operations.OF_SCHEDULES + operations.OF_CALENDARS),
    Subject("filling-back", filling_back, operations.OF_BACKFILLS[1:] + _ON_BACKFILL),
    Subject("filled-back", filled_back, operations.OF_BACKFILLS + _ON_BACKFILL),
    Subject("tagged", tagged, operations.OF_TAGS + _ON_TAGGED),
    Subject("tagged-held", tagged_held, operations.OF_TAGS + _ON_TAGGED),
    Subject("topology-condition", topology_condition, _ON_CONDITION, lives=True, is_compared=False),
    Subject("topology", topology, operations.OF_TOPOLOGIES + _LEASES[2:], lives=True, is_compared=False),
    Subject("topology-node-ends", topology_node_ends, operations.OF_TOPOLOGIES, lives=True, is_compared=False),
    Subject(
        "topology-failed", topology_failed, (*operations.OF_TOPOLOGIES, operations.RETRY_AND_WORK), is_compared=False
    ),
    Subject("topology-retry", topology_retry, operations.OF_TOPOLOGIES, is_compared=False),
    Subject("lock-leased", leased_locked, _LEASES + operations.OF_LOCKS + _TICK + (operations.WORKER,)),
    Subject("lock-accepted", accepted_locked, _ENDS + operations.OF_LOCKS + _TICK + (operations.WORKER,)),
    Subject("switched-off", switched_off, operations.OF_SWITCHES + _WORK),
    Subject("switch-pulled", pulled_locked, operations.OF_SWITCHES + _LEASES),
    Subject("switch-leased", leased_limited, operations.OF_SWITCHES + _LEASES),
)
