"""The invariants that two operations must keep in any interleaving."""

from __future__ import annotations

import json
import re
import zlib
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from duetime.adapters.content_store import SplitContentStore
from duetime.adapters.dynamodb.attribute_values import inflated
from duetime.adapters.dynamodb.locks import DynamoLockStore
from duetime.adapters.dynamodb.schedules import DynamoCalendarStore
from duetime.adapters.dynamodb.switches import DynamoSwitchStore
from duetime.adapters.dynamodb.topology_definitions import DynamoDefinitionStore
from duetime.domain.locks import RESERVED, LockName
from duetime.domain.tasks.states import LEASED, STARTABLE
from duetime.domain.tasks.targets import definition_of as definition_in
from duetime.domain.tasks.task import Cause
from duetime.domain.times import MINUTE, SECOND
from tests.simulation.schedule_watching import OWNER

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.definitions import Definition
    from duetime_testing.fakes.attribute_values import Item
    from tests.pairs.world import World

State: TypeAlias = tuple[Any, ...]
_SOON = 2 * MINUTE
_ABOUT = 5 * MINUTE
_REQUESTED = {Cause.MANUAL, Cause.BACKFILL}
"""The causes of runs that are due at or after their request, and therefore fall on a full second only by chance."""
_MANY = 100
_ROUNDED = SECOND // 2
DEFINITION = "import"
"""The name of the topology definition that all subjects use."""
_TIMES = re.compile(r"\b(?P<ms>1[789]\d{11})\b|\b(?P<s>1[789]\d{8})\b|(?P<hex>1a[0-9a-f]{9})(?![0-9a-f])")
"""Matches times in milliseconds, TTL times in seconds, and hexadecimal milliseconds in compressed data."""
_NONCES = re.compile(r"\b[a-z]+-\d+\.\d+\b")
_DEFINED = {"due", "name", "tags", "priority", "payload", "state-of-schedule", "is", "cron", "task", "overlap"} | {
    *("calendars", "note", "dates", "are", "versions", "rate"),
}
_PRODUCED = (*(f"{each} " for each in Cause), "lock=")


def state_of(world: World) -> State:
    """The part of an account's state that does not depend on the times of its writes."""
    tasks = sorted(_task_state(world, task) for task in world.watching.tasks())
    others = (_bulk_states, _lock_states, _schedule_states, _setting_states, _definition_states)
    return (*tasks, *(part for states in others for part in states(world)))


def fingerprint_of(world: World) -> str:
    """The data that determine how an account settles: all items without nonces, at half-second precision."""
    base = world.about["minute"]

    def rounded(found: re.Match[str]) -> str:
        match found.lastgroup:
            case "ms":
                at = int(found[0])
            case "s":
                at = int(found[0]) * SECOND
            case _:
                at = int(found[0], 16)
        return str((at - base) // _ROUNDED)

    items = sorted(_item_text(item) for item in world.table.every())
    messages = sorted(
        repr((queue.name, held.body, held.visible_at, held.received, held.receipt != ""))
        for queue in world.sqs.queues.values()
        for held in queue.messages
    )
    promised = sorted(
        actor.operation.name
        for actor in world.actors
        if actor.operation.promise is not None and "accepted" in actor.outcome
    )
    leases = sorted((task, each.fence, each.ends_at) for task, each in world.leases.items())
    jobs = sorted((job.name, job.status) for job in world.executions_of_tasks.executions.values())
    told = repr((items, messages, promised, jobs, leases, sorted(world.s3.objects), world.faulty, world.time.now()))
    return sha256(_TIMES.sub(rounded, _NONCES.sub("", told)).encode()).hexdigest()


def _item_text(item: Item) -> str:
    """The text of an item; compressed parts are decompressed first, because they also contain times."""
    parts = []
    for name, stored in sorted(item.items()):
        value, packed = stored, stored.get("B")
        with suppress(zlib.error):
            # A part that is not compressed stays unchanged.
            value = value if packed is None else {"B": inflated(packed)}
        parts.append((name, value))
    return repr(parts)


def without_placed(state: State) -> State:
    """A state without placed occurrences that have not begun, because the trigger places missing occurrences later."""
    not_begun = ("state=scheduled", "state=cancelled")
    return tuple(
        part
        for part in state
        if not (part[0].startswith((f"{Cause.SCHEDULE} ", f"{Cause.CATCH_UP} ")) and part[1] in not_begun)
    )


def definition_of(state: State) -> State:
    """The part of a state that only users write; no step of a function may change it."""
    return tuple(
        (part[0], *(each for each in part[1:] if each.partition("=")[0] in _DEFINED))
        for part in state
        if not part[0].startswith(_PRODUCED)
    )


def _bulk_states(world: World) -> list[State]:
    operation = world.bulk_operation()
    return [] if operation is None else [("bulk", f"bulk={operation.state}")]


def _schedule_states(world: World) -> list[State]:
    name = world.about.get("schedule")
    if name is None:
        return []
    schedule, activity = world.schedules.store.read(OWNER, name)
    if schedule is None:
        return [(f"schedule={name}", "is=gone")]
    active = activity.of(schedule.uid).active
    running = world.watching.record(active.text) if active is not None else None
    return [
        (
            f"schedule={name}",
            f"state-of-schedule={schedule.state}",
            f"cron={schedule.spec.written.cron}",
            f"task={schedule.spec.task.type}",
            f"overlap={schedule.spec.overlap}",
            f"calendars={schedule.spec.calendars}",
            f"paused_reason={schedule.paused_reason}",
            f"backfills={len(schedule.backfills)}",
            f"running={running is not None and not running.is_terminal}",
        )
    ]


def _setting_states(world: World) -> list[State]:
    """The state of calendars and switches, without the times of their writes."""
    calendar = DynamoCalendarStore(world.dynamodb, "tasks", None).read(OWNER, "holidays")  # type: ignore[arg-type]  # same
    switches = DynamoSwitchStore(world.dynamodb, "tasks").read(consistent=True).in_force  # type: ignore[arg-type]  # a fake
    told = [
        (key, each.stopped, each.max_concurrent, each.rate) for key, each in sorted(switches.by_key.items(), key=str)
    ]
    found: list[State] = [("calendar=holidays", f"dates={sorted(calendar.dates)}")] if calendar is not None else []
    return [*found, ("switches", f"are={told}")] if told else found


def _definition_states(world: World) -> list[State]:
    """The readable versions of a definition, each with the node in its graph."""
    if "versions" not in world.about:
        return []
    store = DynamoDefinitionStore(world.dynamodb, "tasks", world.time)  # type: ignore[arg-type]  # stands in for a client
    latest, incarnation = store.read(OWNER, DEFINITION)
    if latest is None:
        return [(f"definition={DEFINITION}", "is=gone")]
    numbers = range(incarnation.created, latest.version)
    earlier = [store.read_earlier(OWNER, DEFINITION, number) for number in numbers]
    told = {each.version if each else number: _node_of(each) for number, each in zip(numbers, earlier, strict=True)}
    return [(f"definition={DEFINITION}", f"versions={sorted({**told, latest.version: _node_of(latest)}.items())}")]


def _node_of(definition: Definition | None) -> str:
    return "lost" if definition is None else "+".join(json.loads(definition.content)["nodes"])


def _label(world: World, task_id: object) -> str:
    return str(world.about.get("labels", {}).get(str(task_id), "another"))


def _name_of(world: World, task: Task) -> str:
    if task.node_ref is not None:
        return f"node {task.node_ref.key} of run {task.node_ref.run}"
    if task.schedule_ref is None:
        return _label(world, task.id)
    nominal = task.schedule_ref.nominal - world.about["minute"] if task.schedule_ref.cause is not Cause.MANUAL else ""
    return f"{task.schedule_ref.cause} {nominal} {task.type}"


def _task_state(world: World, task: Task) -> State:
    contents = SplitContentStore(world.dynamodb, "tasks", world.s3, "contents")  # type: ignore[arg-type]  # fakes
    payload = contents.fetch(task.id, task.payload)
    looked_at = ""
    if task.state in STARTABLE:
        is_soon = task.next_at < world.time.now() + _SOON
        looked_at = "soon" if is_soon else "due" if task.next_at == task.due_at else "later"
    return (
        _name_of(world, task),
        f"state={task.state}",
        f"due={_due(world, task)}",
        f"name={task.name}",
        f"tags={sorted(task.tags.items())}",
        f"priority={task.priority}",
        f"asked={task.requested_action}",
        f"attempt={task.attempt}",
        f"deferred={task.awaiting_notification and task.state in LEASED}",
        f"checkpoint={task.checkpoint is not None}",
        f"waits={task.waiting_for is not None}",
        f"ended={task.finished_at is not None}",
        f"next={looked_at}",
        f"payload={len(payload)}",
        f"outcomes={[str(line.outcome) for line in task.attempt_history]}",
        f"rate={task.rate and task.rate.limit}",
        f"job={task.job is not None}",
        f"definition={found.version if (found := definition_in(task.target)) else None}",
    )


def _due(world: World, task: Task) -> Millis | str:
    """The task's due time, rounded if it depends on the arrival of a request that may be slow."""
    at: Millis = task.due_at - world.about["minute"]
    counts_from_request = task.schedule_ref is not None and task.schedule_ref.cause in _REQUESTED
    return at if at % SECOND == 0 and not counts_from_request else f"about {at // _ABOUT}"


def _lock_states(world: World) -> list[State]:
    found: list[State] = []
    for key in sorted({task.lock.key for task in world.watching.tasks() if task.lock is not None}):
        store = DynamoLockStore(world.dynamodb, "tasks", None)  # type: ignore[arg-type]  # nothing is read at once
        lock, line = store.read(LockName(OWNER, key), _MANY)
        living = [each for each in lock.holders if each.expires_at > world.time.now()]
        for holder in living:
            task = world.watching.record(holder.task_id.text)
            # If an attempt ends before it takes the lock, the previous attempt's hold is still in the lock.
            is_well = world.faulty or holder.fence in {RESERVED, task.fence if task else RESERVED}
            world.watching.check(
                task is None or task.state not in LEASED or is_well,
                f"lock {key} is held under fence {holder.fence} for an attempt of fence {task.fence if task else None}",
            )
        waits = [each for each in line if _waits(world, each.task_id.text, each.generation)]
        holders = sorted(_label(world, each.task_id) for each in living)
        found.append((f"lock={key}", f"holders={holders}", f"line={sorted(_label(world, w.task_id) for w in waits)}"))
    return found


def _waits(world: World, task_id: str, generation: int) -> bool:
    task = world.watching.record(task_id)
    return task is not None and task.generation == generation and task.state in STARTABLE
