"""The operations on a subject: requests to the API, and steps of the functions and of DynamoDB's TTL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.domain.bulk import OPERATION
from duetime.domain.times import MINUTE, SECOND, to_iso
from tests.pairs.footprints import received
from tests.simulation import works
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.pairs.world import World
    from tests.simulation.users import Reply

ENDING = frozenset(
    {"cancel", "cancel-by-force", "topology-cancel", "cancel-node", "lease-fail", "lease-cancel", "roll-back-node"}
)
"""Operations by which a user ends a subject in a different way than planned."""
OK, UNAVAILABLE, REFUSALS = 200, 503, 300
ACCEPTED, REFUSED, UNKNOWN = "accepted", "refused", "unknown"


def by_status(reply: Reply | None) -> str:
    """Classify a request as accepted, refused, or unknown."""
    if reply is None or reply.status == UNAVAILABLE:
        return UNKNOWN
    return ACCEPTED if reply.status < REFUSALS else REFUSED


def by_count(node_ref: str) -> Callable[[Reply | None], str]:
    """Classify requests that are accepted even if they find nothing to do, by the count in the response."""

    def told(reply: Reply | None) -> str:
        found = by_status(reply)
        if found is not ACCEPTED or reply is None:
            return found
        count = reply.body[node_ref]
        return ACCEPTED if (count if isinstance(count, int) else len(count)) else REFUSED

    return told


def _reads(reply: Reply | None) -> str:
    """Classify an operation that only reads and therefore changes nothing, whatever the response."""
    return UNKNOWN if by_status(reply) is UNKNOWN else REFUSED


@dataclass(frozen=True)
class Operation:
    """An operation that can be applied to a subject.

    Attributes:
        act: runs the operation, as a client in virtual time.
        is_step: whether it is a step of a function or of DynamoDB that does due work, and not a user's request.
        is_asked: whether it is a step that makes a change requested by a user.
        goes_on: whether it is a request that continues after its deciding write (for example, it passes on a lock or
            places occurrences), so that other operations may run in between.
        classify: returns the meaning of a response.
        is_repeatable: whether an effect that already exists may count as the operation's own effect.
        repeats: the numbers, from 0, of its requests whose effect may already exist, so that either response is
            correct.
        is_in_parts: whether it may be only partly completed if a call fails, which its response then reports.
        begun: runs only the first of several requests, as if the next request had no effect on the subject.
        promise: checks accepted effects after everything has ended.
        not_beside: another operation whose work this operation may partly do, regardless of the operations' order.
    """

    name: str
    act: Callable[[World], Any]
    is_step: bool = False
    is_asked: bool = False
    goes_on: bool = False
    classify: Callable[[Reply | None], str] = by_status
    promise: Callable[[World, Sequence[Reply | None]], None] | None = None
    is_repeatable: bool = False
    repeats: frozenset[int] = frozenset()
    is_in_parts: bool = False
    begun: Callable[[World], Any] | None = None
    not_beside: str = ""

    @property
    def takes_time(self) -> bool:
        """Whether other operations may run before this operation has ended."""
        return self.is_step or self.goes_on


def _is_over(world: World, _replies: Sequence[Reply | None]) -> None:
    """Check that a stopped task neither runs nor waits to run."""
    task = world.watching.record(world.about["task"])
    assert task is not None
    world.watching.check(task.is_terminal, f"a cancel was accepted, and the task is {task.state}")


def _is_cancelled(world: World, replies: Sequence[Reply | None]) -> None:
    """Check that a task cancelled at once stays cancelled, and that a task which was asked to stop is not retried."""
    _is_over(world, replies)
    task = world.watching.record(world.about["task"])
    for reply in replies:
        if task is None or reply is None or by_status(reply) is not ACCEPTED or task.state == "cancelled":
            continue
        told = f"and the task is {task.state} in its attempt {task.attempt}"
        world.watching.check(reply.status != OK, f"a cancel was accepted at once, {told}")
        world.watching.check(task.attempt <= reply.body["attempt"], f"a stop was accepted, {told}")


def _is_there(world: World, _replies: Sequence[Reply | None]) -> None:
    """Check that a reopened task is kept, even if TTL was about to remove it."""
    world.watching.check(world.watching.record(world.about["task"]) is not None, "a task was reopened, and is gone")


def _task(world: World) -> str:
    return f"/v1/tasks/{world.about['task']}"


def _on_task(verb: str, body: object = None, **more: str) -> Callable[[World], Any]:
    return lambda world: world.ask("POST", f"{_task(world)}/{verb}", body, **more)


def _patch(world: World, **fields: object) -> Reply | None:
    return world.ask("PATCH", _task(world), fields)


def _patch_at(seconds: int, world: World) -> Reply | None:
    return _patch(world, due_at=to_iso(world.about["minute"] + 6 * MINUTE + seconds * SECOND))


def _patch_matching(seconds: int, world: World) -> Reply | None:
    """Change the task only if its version is still the version that was read for the subject."""
    at = to_iso(world.about["minute"] + 6 * MINUTE + seconds * SECOND)
    headers = {"If-Match": f'"{world.about["version"]}"'}
    return world.ask("PATCH", _task(world), {"due_at": at, "name": "matched"}, headers=headers)


def _notify(outcome: dict[str, Any], world: World) -> Reply | None:
    # After reporting an attempt's end, neither a pull worker nor a handler's external work continues the attempt.
    world.leases.clear()
    for effect in world.watching.live:
        effect.ended = effect.ended or world.time.now()
    fence = world.about.get("fence", 1)
    world.watching.reported.add((world.about["task"], fence))
    return world.ask("POST", f"{_task(world)}/notify", {"fence": fence, **outcome})


def _beat(world: World) -> Reply | None:
    body = {"fence": world.about.get("fence", 1)}
    return world.ask("POST", f"{_task(world)}/heartbeat", body)


def _on_lease(verb: str, body: object = None) -> Callable[[World], Any]:
    return lambda world: world.end_lease(verb, body)


def _bulk(what: str, body: dict[str, Any], world: World) -> Reply | None:
    return world.ask("POST", f"/v1/tasks/{what}", {"filter": {"name": "old"}, **body})


LARGE = ["%08x" % (n * 2654435761 % 2**32) for n in range(200)]
"""A payload that does not fit into a record."""
_FAILED = {"outcome": "failed", "error": {"type": "Boom", "message": "told"}}
_ERROR = {"error": {"type": "Boom", "message": "told"}}

# Steps of functions


_READERS = {"dead": "deadletter", **dict.fromkeys(("pulled", "intake", "sink", "rejects"), "")}
"""The functions that read the queues that workers do not read; `""` if no function does or a separate operation runs
it.
"""


def _create_task(name: str, world: World, **fields: object) -> Reply | None:
    """Send a request to create a task with the subject's unique key."""
    return world.ask("POST", "/v1/tasks", {"type": works.PLAIN, "name": name, "delay_seconds": 600, **fields})


def unique_key(until: str = "ended", on_conflict: str = "keep") -> dict[str, Any]:
    """The field of a create request that contains the subjects' unique key."""
    return {"unique": {"key": "only", "on_conflict": on_conflict, "until": until}}


def _take_in(world: World) -> None:
    """Let the intake process one message from its queue."""
    answer = world.sqs.receive_message(
        QueueUrl=world.intake, MaxNumberOfMessages=1, MessageSystemAttributeNames=["All"]
    )
    if batch := answer.get("Messages", []):
        world._touch(received(world.intake))
        world._work(world.intake, "intake", list(batch))


def _work(function: str, world: World) -> None:
    """Let a function process the visible messages on its queues."""
    for url, queue in world.sqs.queues.items():
        if function != _READERS.get(queue.name, "worker"):
            continue
        batch = world._receive(url)
        if batch:
            world._work(url, function, batch)


def _listening(world: World) -> None:
    """Let the workers process their messages, with targets that run until they receive a request to stop or pause."""
    world.behavior = "listens"
    _work("worker", world)


def _failing(world: World) -> None:
    world.behavior = "fails"
    _work("worker", world)


def _accepting(world: World) -> None:
    world.behavior = "accepts"
    _work("worker", world)


def _tick(world: World) -> None:
    world.wait_for(world.invoke("trigger", {}))


def _carry_out(world: World) -> None:
    """Carry out the subject's bulk operation."""
    world.wait_for(world.invoke("bulk", {OPERATION: world.about["bulk"]}))


def _expire(world: World) -> None:
    """Remove all expired items, one after the other."""
    for item in list(world.table.every()):
        if schema.TTL in item and int(item[schema.TTL]["N"]) * SECOND < world.time.now():
            key = (item[schema.PARTITION_KEY]["S"], item[schema.SORT_KEY]["S"])
            world.point(f"ttl removes {key}")
            now = world.table.get(key)
            if now is not None and schema.TTL in now and int(now[schema.TTL]["N"]) * SECOND < world.time.now():
                world.table.write(world.time.now(), key, None)


WORKER = Operation("worker", partial(_work, "worker"), is_step=True)
LISTENING = Operation("worker-listening", _listening, is_step=True)
FAILING = Operation("worker-failing", _failing, is_step=True)
ACCEPTING = Operation("worker-accepting", _accepting, is_step=True)
DEADLETTER = Operation("deadletter", partial(_work, "deadletter"), is_step=True)
TRIGGER = Operation("trigger", _tick, is_step=True)
BULK = Operation("bulk", _carry_out, is_step=True, is_asked=True)
INTAKE = Operation("intake", _take_in, is_step=True)
TTL = Operation("ttl", _expire, is_step=True)

GET = Operation("get", lambda world: world.ask("GET", _task(world)), classify=_reads)
OF_TASKS = (
    GET,
    Operation("patch-at-05", partial(_patch_at, 5)),
    Operation("patch-at-55", partial(_patch_at, 55)),
    Operation("patch-soon", lambda world: _patch(world, due_at=to_iso(world.about["minute"] + 2 * MINUTE))),
    Operation("patch-matching-05", partial(_patch_matching, 5)),
    Operation("patch-matching-55", partial(_patch_matching, 55)),
    Operation("patch-name", lambda world: _patch(world, name="kept")),
    Operation("patch-payload", lambda world: _patch(world, payload=LARGE)),
    Operation("patch-priority", lambda world: _patch(world, priority="high")),
    Operation("pause", _on_task("pause")),
    Operation("resume", _on_task("resume")),
    Operation("run", _on_task("run")),
    Operation("retry", _on_task("retry"), promise=_is_there),
    Operation("rollback", _on_task("rollback"), promise=_is_there),
    Operation("cancel", lambda world: world.ask("POST", f"{_task(world)}/cancel"), promise=_is_cancelled),
    Operation(
        "cancel-by-force",
        lambda world: world.ask("POST", f"{_task(world)}/cancel", {"force": True}),
        promise=_is_cancelled,
    ),
    Operation("notify-success", partial(_notify, {"outcome": "succeeded", "result": 1}), goes_on=True),
    Operation("notify-failure", partial(_notify, _FAILED), goes_on=True),
    Operation("heartbeat", _beat),
    Operation("bulk-cancel", partial(_bulk, "cancel", {}), classify=by_count("affected"), is_repeatable=True),
    Operation(
        "bulk-cancel-by-force",
        partial(_bulk, "cancel", {"force": True}),
        classify=by_count("affected"),
        is_repeatable=True,
    ),
    Operation("bulk-change", partial(_bulk, "update", {"update": {"tags": {"a": "b"}}}), classify=by_count("affected")),
    Operation(
        "redrive",
        lambda world: world.ask("POST", "/v1/tasks/retry", {"filter": {"name": "old"}}),
        classify=by_count("affected"),
    ),
    Operation(
        "bulk-delete",
        lambda world: world.ask("POST", "/v1/tasks/delete", {"filter": {"name": "old"}}),
        classify=by_count("affected"),
    ),
)
OF_UNIQUE = (
    Operation("create-keep", lambda world: _create_task("kept", world, **unique_key())),
    Operation("create-started", lambda world: _create_task("begins", world, **unique_key("started"))),
    Operation("create-replace", lambda world: _create_task("replaced", world, **unique_key(on_conflict="replace"))),
    Operation("create-refuse", lambda world: _create_task("refused", world, **unique_key(on_conflict="refuse"))),
)
OF_EXPIRY = (
    Operation("patch-no-expiry", lambda world: _patch(world, expires_seconds=None)),
    Operation("patch-expiry", lambda world: _patch(world, expires_seconds=3_600)),
)
OF_FAIRNESS = (Operation("patch-fair-key", lambda world: _patch(world, fair_key="customer-17", fair_weight=3)),)
OF_BULK = (
    BULK,
    Operation("stop-bulk", lambda world: world.ask("POST", f"/v1/bulk-operations/{world.about['bulk']}/cancel")),
    Operation(
        "get-bulk", lambda world: world.ask("GET", f"/v1/bulk-operations/{world.about['bulk']}"), classify=_reads
    ),
)
OF_LEASES = (
    Operation("lease", lambda world: world.lease("Y", 30), classify=by_count("leases"), goes_on=True),
    Operation("lease-short", lambda world: world.lease("X", 5), classify=by_count("leases"), goes_on=True),
    Operation("lease-heartbeat", _on_lease("heartbeat"), goes_on=True),
    Operation("lease-complete", _on_lease("complete", {"result": 1}), goes_on=True),
    Operation("lease-fail", _on_lease("fail", _ERROR), goes_on=True),
    Operation("lease-release", _on_lease("release"), goes_on=True),
    Operation("lease-pause", _on_lease("pause", {"checkpoint": {"row": 1}}), goes_on=True),
    Operation("lease-cancel", _on_lease("cancel"), goes_on=True),
)
STEPS = (WORKER, LISTENING, FAILING, ACCEPTING, TRIGGER, DEADLETTER, TTL)

# Schedules

SCHEDULE = "nightly"
_NEW = {"name": SCHEDULE, "cron": "* * * * *", "task": {"type": works.UNDONE, "notify_within_seconds": 60}}
_OWN = f"/v1/schedules/{SCHEDULE}"


def _delete(world: World) -> None:
    world.ask("DELETE", _OWN)


def _make(world: World) -> None:
    world.ask("POST", "/v1/schedules", _NEW)


def _make_again(world: World) -> None:
    """Delete a schedule, and create another schedule with the same name."""
    _delete(world)
    _make(world)


def _run_once(world: World) -> None:
    world.ask("POST", f"{_OWN}/run")
    world.take(SECOND)
    _accepting(world)


def _make_and_run(world: World) -> None:
    """Create a schedule, and start one of its runs, whose target continues to run."""
    _make(world)
    _run_once(world)


def _on_schedule(verb: str, body: object = None) -> Callable[[World], Any]:
    return lambda world: world.ask("POST", f"{_OWN}/{verb}", body)


def _update_schedule(world: World, **fields: object) -> Reply | None:
    return world.ask("PATCH", _OWN, fields)


def _patch_overlap(world: World) -> Reply | None:
    world.occurrences.overlapping.add(SCHEDULE)
    return _update_schedule(world, overlap="allow_all")


def _fill_back(world: World) -> Reply | None:
    start = world.about["minute"] - 100 * MINUTE
    return world.ask(
        "POST",
        f"{_OWN}/backfills",
        {"scheduled_after": to_iso(start), "scheduled_before": to_iso(start + 2 * MINUTE), "per_minute": 20},
    )


def _fill_missing(world: World) -> Reply | None:
    """Backfill the missing runs of a period that has been partly backfilled."""
    start = world.about["minute"] - 100 * MINUTE
    period = {"scheduled_after": to_iso(start), "scheduled_before": to_iso(start + 3 * MINUTE), "per_minute": 20}
    return world.ask("POST", f"{_OWN}/backfills", {**period, "only_missing": True})


TAGS = {"team": "dba"}
"""The tags that some schedules give to their tasks."""


def _tagged(verb: str) -> Callable[[World], Any]:
    return lambda world: world.ask("POST", f"/v1/schedules/{verb}", {"filter": {"tags": TAGS}, "reason": "so"})


def _calendar(method: str, body: object = None) -> Callable[[World], Any]:
    return lambda world: world.ask(method, "/v1/calendars/holidays", body)


OF_SCHEDULES = (
    Operation("get", lambda world: world.ask("GET", _OWN), classify=_reads),
    Operation("patch-cron", lambda world: _update_schedule(world, cron="*/2 * * * *"), goes_on=True),
    # While a backfill is being placed, each of its tasks has either the old or the new definition.
    Operation(
        "patch-task",
        lambda world: _update_schedule(world, task={"type": works.UNDONE, "notify_within_seconds": 60}),
        goes_on=True,
        not_beside="backfill",
    ),
    Operation("patch-overlap", _patch_overlap, goes_on=True),
    Operation("pause", _on_schedule("pause", {"reason": "so"})),
    Operation("resume", _on_schedule("resume"), goes_on=True),
    Operation("run", _on_schedule("run"), goes_on=True),
    Operation("backfill", _fill_back, goes_on=True),
    Operation("delete", lambda world: world.ask("DELETE", _OWN), is_repeatable=True),
    Operation("create", lambda world: world.ask("POST", "/v1/schedules", _NEW), goes_on=True),
    Operation("make-again", _make_again, goes_on=True, begun=_delete, repeats=frozenset({0})),
    # The run's message may be delivered with the messages of a backfill.
    Operation("make-and-run", _make_and_run, goes_on=True, begun=_make, not_beside="backfill"),
    TRIGGER,
    WORKER,
    ACCEPTING,
    FAILING,
)
OF_BACKFILLS = (
    Operation("backfill-missing", _fill_missing, goes_on=True),
    Operation("cancel-backfill", lambda world: world.ask("DELETE", f"{_OWN}/backfills/{world.about['backfill']}")),
)
OF_TAGS = (
    Operation("pause-tagged", _tagged("pause"), classify=by_count("affected"), is_repeatable=True),
    Operation("resume-tagged", _tagged("resume"), classify=by_count("affected"), goes_on=True, is_repeatable=True),
)
OF_CALENDARS = (
    Operation("put-calendar", _calendar("PUT", {"dates": ["2026-12-26"]})),
    Operation("delete-calendar", _calendar("DELETE")),
    Operation("patch-calendars", lambda world: _update_schedule(world, calendars=["holidays"]), goes_on=True),
    Operation("patch-no-calendars", lambda world: _update_schedule(world, calendars=[]), goes_on=True),
)


def _free(world: World) -> Reply | None:
    """Take a lock away from its holders, which may run alongside the next holder until they notice the loss."""
    world.watching.freed("db")
    reply = world.ask("DELETE", "/v1/locks/db")
    world.watching.freed("db")
    return reply


OF_LOCKS = (
    Operation("free", _free, goes_on=True),
    Operation("cancel-waiter", lambda world: world.ask("POST", f"/v1/tasks/{world.about['waiter']}/cancel")),
    Operation("pause-waiter", lambda world: world.ask("POST", f"/v1/tasks/{world.about['waiter']}/pause")),
    Operation(
        "defer-waiter", lambda world: world.ask("PATCH", f"/v1/tasks/{world.about['waiter']}", {"delay_seconds": 400})
    ),
)
_ALL, _PULLED = "/v1/switches/all/all", f"/v1/switches/type/{PULLED}"
OF_SWITCHES = (
    Operation("switch-off", lambda world: world.ask("PUT", _ALL, {"stopped": True})),
    Operation("switch-on", lambda world: world.ask("DELETE", _ALL)),
    Operation("cap-one", lambda world: world.ask("PUT", _PULLED, {"max_concurrent": 1})),
    Operation("uncap", lambda world: world.ask("DELETE", _PULLED)),
)


# Requests to create tasks


def _create(body: dict[str, Any], world: World) -> Reply | None:
    """Create a task with an idempotency key."""
    minute = world.about["minute"]
    fields = {"type": works.PLAIN, "name": "keyed", "due_at": to_iso(minute + 8 * MINUTE), **body}
    reply = world.ask("POST", "/v1/tasks", fields, headers={"Idempotency-Key": "key"})
    if by_status(reply) is ACCEPTED and reply is not None:
        world.watching.accepted.append(reply.body["id"])
    return reply


def _create_many(world: World) -> Reply | None:
    tasks = [{"type": works.PLAIN, "name": name, "due_at": to_iso(world.about["minute"] + 8 * MINUTE)} for name in "ab"]
    reply = world.ask("POST", "/v1/tasks/batch", {"tasks": tasks}, headers={"Idempotency-Key": "key"})
    if by_status(reply) is ACCEPTED and reply is not None:
        world.watching.accepted += [each["task"]["id"] for each in reply.body["results"] if "task" in each]
    return reply


OF_KEYS = (
    Operation("create-keyed", partial(_create, {})),
    Operation("create-keyed-large", partial(_create, {"payload": LARGE})),
    Operation("create-keyed-otherwise", partial(_create, {"payload": 1})),
    Operation("create-keyed-now", partial(_create, {"due_at": None})),
    Operation("create-many-keyed", _create_many, is_in_parts=True),
    TTL,
)


# Topologies


def _on_topology(verb: str) -> Callable[[World], Reply | None]:
    return lambda world: world.ask("POST", f"/v1/topologies/{world.about['task']}/{verb}")


def _retry(world: World) -> Reply | None:
    """Request another run of a topology, which must then succeed."""
    reply = _on_topology("retry")(world)
    if by_status(reply) is ACCEPTED:
        world.about["ends"] = "succeeded"
    return reply


def _on_node(verb: str, body: object = None) -> Callable[[World], Any]:
    return lambda world: world.ask("POST", f"/v1/tasks/{world.about['node']}/{verb}", body)


def _state(state: str, world: World) -> None:
    """Let the state machine's function run one state again."""
    world.wait_for(
        world.invoke("topology", {"state": state, "task_id": world.about["task"], "fence": world.about["fence"]})
    )


def _stop_execution(world: World) -> None:
    """Stop the execution as if a user did so in the Step Functions console."""
    for execution in world.states.running():
        world.point("states.stop_execution")
        world.states.break_execution(execution.arn)


def _retry_and_work(world: World) -> None:
    _retry(world)
    world.take(SECOND)
    _work("worker", world)


OF_TOPOLOGIES = (
    Operation("topology-cancel", _on_topology("cancel"), promise=_is_over, goes_on=True),
    Operation("topology-pause", _on_topology("pause"), goes_on=True),
    Operation("topology-resume", _on_topology("resume"), goes_on=True),
    Operation("topology-retry", _retry, goes_on=True),
    Operation("cancel-node", _on_node("cancel", {"force": True})),
    Operation("pause-node", _on_node("pause")),
    Operation("resume-node", _on_node("resume")),
    Operation("retry-node", _on_node("retry"), goes_on=True),
    Operation("plan", partial(_state, "plan"), is_step=True),
    Operation("finish", partial(_state, "finish"), is_step=True),
    Operation("stop-execution", _stop_execution, is_step=True),
    WORKER,
    TRIGGER,
)
RETRY_AND_WORK = Operation("retry-and-work", _retry_and_work, goes_on=True)
