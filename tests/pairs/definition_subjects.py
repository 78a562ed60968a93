"""Topology definitions, and the operations that replace, remove, and run them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from duetime.domain.schedules.schedule import ScheduleState
from tests.pairs.invariants import DEFINITION
from tests.pairs.operations import ACCEPTED, SCHEDULE, TRIGGER, Operation, by_status
from tests.pairs.subjects import Subject, answered
from tests.simulation import works
from tests.simulation.schedule_watching import OWNER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.pairs.world import World
    from tests.simulation.users import Reply

_PATH = f"/v1/topologies/definitions/{DEFINITION}"
_SCHEDULE = f"/v1/schedules/{SCHEDULE}"


def _graph(node: str) -> dict[str, Any]:
    return {"nodes": {node: {"type": works.PLAIN}}}


def _put(node: str, world: World, headers: Mapping[str, str] | None = None) -> Reply | None:
    """Store a graph as the next version, and check that no other content has the version's number."""
    reply = world.ask("PUT", _PATH, _graph(node), headers=dict(headers or {}))
    if reply is not None and by_status(reply) is ACCEPTED:
        known, number = world.about["versions"], reply.body["version"]
        other = known.get(number, node)
        world.watching.check(other == node, f"version {number} was given to {other} and to {node}")
        # The dictionary in the saved state must not change.
        world.about["versions"] = {**known, number: node}
    return reply


def _run(body: Mapping[str, Any], world: World) -> Reply | None:
    """Run a version, and check that the run has the graph of the version in the response."""
    reply = world.ask("POST", f"{_PATH}/runs", dict(body))
    if reply is not None and by_status(reply) is ACCEPTED:
        number, nodes = reply.body["target"]["definition"]["version"], list(reply.body["payload"]["nodes"])
        wanted = world.about["versions"].get(number)
        # The content of a version is unknown if the response to its creation has not arrived yet.
        world.watching.check(wanted is None or nodes == [wanted], f"a run of version {number}, {wanted}, has {nodes}")
        world.watching.accepted_topologies.append(reply.body["id"])
    return reply


def _delete(world: World) -> Reply | None:
    return world.ask("DELETE", _PATH)


def _put_anew(world: World) -> None:
    """Delete a definition, and store another definition with the same name."""
    _delete(world)
    _put("anew", world)


def _schedule(cron: str, world: World) -> Reply | None:
    """Create a schedule that runs the definition."""
    target = {"kind": "topology", "definition": {"name": DEFINITION}}
    task = {"type": "import", "target": target}
    return world.ask("POST", "/v1/schedules", {"name": SCHEDULE, "cron": cron, "task": task})


def _schedule_soon(world: World) -> Reply | None:
    """Create a schedule that runs the definition every minute from now on."""
    world.schedules.made(SCHEDULE, world.time.now())
    world.schedules.disturbed.add(SCHEDULE)
    return _schedule("* * * * *", world)


def _runs_or_is_paused(world: World, _replies: Sequence[Reply | None]) -> None:
    """Check that a schedule which was created while its definition was being deleted either runs or is paused."""
    stored, _ = world.schedules.store.read(OWNER, SCHEDULE)
    has_run = any(task.schedule_ref is not None for task in world.watching.tasks())
    is_paused = stored is None or stored.state is ScheduleState.PAUSED
    world.watching.check(has_run or is_paused, "a schedule of a definition neither runs nor is paused")


OF_DEFINITIONS = (
    Operation("put-north", partial(_put, "north")),
    Operation("put-south", partial(_put, "south")),
    Operation("put-same", partial(_put, "first")),
    Operation("put-matching", partial(_put, "matching", headers={"If-Match": '"1"'})),
    Operation("put-new-only", partial(_put, "new", headers={"If-None-Match": "*"})),
    Operation("put-anew", _put_anew, goes_on=True, begun=_delete, repeats=frozenset({0}), is_in_parts=True),
    Operation("delete-definition", _delete, is_repeatable=True),
    Operation("run-definition", partial(_run, {})),
    Operation("run-first", partial(_run, {"version": 1})),
)
SCHEDULE_SOON = Operation("schedule-definition", _schedule_soon, goes_on=True, promise=_runs_or_is_paused)
OF_THEIR_SCHEDULES = (
    Operation("run-schedule", lambda world: world.ask("POST", f"{_SCHEDULE}/run"), goes_on=True),
    Operation("resume-schedule", lambda world: world.ask("POST", f"{_SCHEDULE}/resume"), goes_on=True),
    Operation("delete-schedule", lambda world: world.ask("DELETE", _SCHEDULE), is_repeatable=True),
)


def defined(world: World) -> None:
    """A definition with one version."""
    world.about["versions"] = {}
    world.about["schedule"] = SCHEDULE
    reply = world.do(partial(_put, "first", world))
    assert reply is not None
    assert reply.status == 201, reply


def defined_scheduled(world: World) -> None:
    """A definition with two versions, and a schedule that runs the definition."""
    defined(world)
    reply = world.do(partial(_put, "second", world))
    assert reply is not None
    assert reply.status == 200, reply
    made = world.do(partial(_schedule, "0 0 1 1 *", world))
    assert made is not None
    assert made.status == 201, made


def undefined(world: World) -> None:
    """A definition that was deleted."""
    defined(world)
    reply = answered(world, "DELETE", _PATH)
    assert reply.status == 200, reply


SUBJECTS = (
    Subject("defined", defined, OF_DEFINITIONS),
    # If a schedule is created while its definition is being deleted, the result can differ from the results of both
    # orders.
    Subject("defined-used", defined, (SCHEDULE_SOON, *OF_DEFINITIONS, TRIGGER), is_compared=False),
    Subject("undefined", undefined, OF_DEFINITIONS),
    Subject("defined-scheduled", defined_scheduled, (*OF_DEFINITIONS, *OF_THEIR_SCHEDULES, TRIGGER)),
)
