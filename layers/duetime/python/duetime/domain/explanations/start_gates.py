"""The gates that a due task passes before its target is called, as they are now: closed, or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.circuit_breakers import CircuitState
from duetime.domain.explanations.durations import span
from duetime.domain.explanations.gate import (
    Gate,
    GateName,
    GateState,
    HeldLock,
    HoldingSchedule,
    OpenCircuit,
    OtherTask,
    OtherTasks,
    SetSwitch,
)
from duetime.domain.schedules.overlap import may_overlap, skipped
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.explanations.facts import Facts, LockFacts
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


def closed_gates(task: Task, facts: Facts) -> tuple[Gate, ...]:
    """The gates that would keep a task from beginning now, in the order in which it comes to them."""
    return tuple(_closed(task, facts))


def _closed(task: Task, facts: Facts) -> Iterator[Gate]:
    yield from _switches(task, facts)
    yield from _of_schedule(task, facts)
    for needed in facts.locks:
        if needed.is_closed_for(task.id):
            yield _limit(task, facts, needed) if needed.is_cap else _lock(task, facts, needed)
    if facts.circuit is not None and facts.circuit.state(facts.now) is not CircuitState.CLOSED:
        circuit = facts.circuit
        what = "is not called" if circuit.state(facts.now) is CircuitState.OPEN else "is tried by one call at a time"
        failed = f"; it failed last with {circuit.reason}" if circuit.reason else ""
        text = f"The host {circuit.host} {what} since {_since(circuit.opened_at, facts.now)}, for it kept failing"
        yield _ahead(GateName.CIRCUIT, f"{text}{failed}.", OpenCircuit(circuit), circuit.open_until)


def _switches(task: Task, facts: Facts) -> Iterator[Gate]:
    """What stops the task: the widest switch only, as for its worker."""
    switch = next((switch for switch in facts.switches.of(task) if switch.stopped), None)
    if switch is not None:
        why = f": {switch.reason}" if switch.reason else ""
        by = f" by {switch.updated_by}" if switch.updated_by else ""
        text = f"A switch stops {switch.key} since {_since(switch.updated_at, facts.now)}, set{by}{why}."
        yield _ahead(GateName.SWITCH, text, SetSwitch(switch))


def _of_schedule(task: Task, facts: Facts) -> Iterator[Gate]:
    """What the schedule has against a run that has not begun."""
    ref, stored = task.schedule_ref, facts.schedule
    if ref is None or task.attempt_history:
        return
    if stored is None or stored.mark != ref.mark:
        yield _ahead(GateName.SCHEDULE, f"The schedule {ref.schedule!r} was deleted: this run will be skipped.")
        return
    if (skip := skipped(stored, ref)) is not None:
        holding = HoldingSchedule(stored.name, stored.state, stored.paused_reason, stored.updated_at)
        why = f" ({stored.paused_reason})" if stored.paused_reason else ""
        yield _ahead(GateName.SCHEDULE, f"{_capital(skip.reason)}{why}: this run will be skipped.", holding)
    elif facts.earlier_runs and not may_overlap(stored):
        tasks = ", ".join(f"{each.task_id} ({each.state})" for each in facts.earlier_runs)
        text = f"An earlier run of the schedule {stored.name!r} has not ended: {tasks}."
        yield _ahead(GateName.OVERLAP, text, OtherTasks(facts.earlier_runs))


def _lock(task: Task, facts: Facts, needed: LockFacts) -> Gate:
    limit, key = needed.claim.limit, needed.claim.name.key
    position = needed.position(task.id)
    held = HeldLock(key, limit, needed.holders, position)
    by = ", ".join(_holder(each, facts.now) for each in needed.holders) or "nobody: it is handed on"
    place = f" It is number {position} in the line." if position else ""
    several = f", which {limit} tasks may hold at once," if limit > 1 else ""
    return _ahead(GateName.LOCK, f"The lock {key}{several} is held by {by}.{place}", held)


def _limit(task: Task, facts: Facts, needed: LockFacts) -> Gate:
    """A limit of running tasks; whose they are is not told, for they may be other owners'."""
    name, position = needed.claim.name.key, needed.position(task.id)
    switch = next(each for each in facts.switches.of(task) if f"{each.key.scope}/{each.key.name}" == name)
    running = len(needed.lock.holders)
    why = f": {switch.reason}" if switch.reason else ""
    by = f" by {switch.updated_by}" if switch.updated_by else ""
    place = f" It is number {position} in the line." if position else ""
    text = (
        f"No more than {needed.claim.limit} of {switch.key} may run at once since "
        f"{_since(switch.updated_at, facts.now)}, set{by}{why}; {running} run now.{place}"
    )
    return _ahead(GateName.CONCURRENCY_LIMIT, text, SetSwitch(switch, running, position))


def _holder(holder: OtherTask, now: Millis) -> str:
    since = "" if holder.since is None else f" since {_since(holder.since, now)}"
    return f"the task {holder.task_id}{since}"


def _since(at: Millis, now: Millis) -> str:
    return f"{to_iso(at)} ({span(max(0, now - at))} ago)"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ahead(
    name: GateName,
    text: str,
    waits_for: HeldLock | SetSwitch | OpenCircuit | HoldingSchedule | OtherTasks | None = None,
    until: Millis | None = None,
) -> Gate:
    return Gate(name=name, state=GateState.AHEAD, text=text, waits_for=waits_for, until=until)
