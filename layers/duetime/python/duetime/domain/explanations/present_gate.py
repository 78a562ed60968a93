"""Determines the gate where an open task is now, and why it waits there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.circuit_breakers import CircuitState
from duetime.domain.dispatch.enqueue_plan import Entry, queue_of
from duetime.domain.explanations.gate import (
    EarlierTasks,
    Gate,
    GateName,
    GateState,
    HeldLock,
    HoldingSchedule,
    LeasedBy,
    NextAttempt,
    OnQueue,
    OpenCircuit,
    OtherTask,
    OtherTasks,
    SetSwitch,
    SpentRate,
    span,
)
from duetime.domain.operating_parameters import (
    LEASE_RETURN_MARGIN,
    MAX_CLOCK_DIFFERENCE,
    RATE_HOLD,
    RECOVERY_SCAN_DELAYS,
)
from duetime.domain.schedules.overlap import for_run, has_begun, may_overlap, skipped
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.aws_jobs import seeks_job
from duetime.domain.tasks.states import LEASED, State
from duetime.domain.tasks.targets import EventTarget, TopologyTarget
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.tasks.task_options import LockMode
from duetime.domain.tasks.wait_reasons import QUOTA_AWAITED, wait_reason
from duetime.domain.times import DAY, MINUTE, minute_of, start_of, to_iso
from duetime.domain.topologies.watchdog_times import search_ends_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.explanations.gate import Facts, LockFacts, RateFacts
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


_LISTED = 5


def present_gate(task: Task, facts: Facts, closed: Sequence[Gate]) -> Gate:
    """The gate where an open task is now.

    Args:
        task: the record.
        facts: the state of everything that the task can wait for.
        closed: the gates that would prevent the task from starting now.
    """
    if task.is_terminal:
        text = f"It has {task.state.replace('_', ' ')}; its follow-ups are not done yet."
        return _at(GateName.FOLLOW_UP, text)
    if task.state is State.BLOCKED:
        return blocked_gate(task, facts)
    if task.state is State.PAUSED:
        return _at(GateName.PAUSED, "It is paused until it is resumed.")
    if task.state in LEASED and task.lease_expires_at is not None:
        return _leased(task, facts)
    if task.next_at <= facts.now:
        return _on_its_way(task, facts)
    return _before_its_check(task, facts, closed)


_CHECKED_NOW = frozenset(
    {
        *(GateName.SWITCH, GateName.ORDER, GateName.LOCK, GateName.CONCURRENCY_LIMIT, GateName.RATE),
        *(GateName.CIRCUIT, GateName.OVERLAP),
    }
)
"""Gates whose present state an explanation reads, so that it knows whether they still keep the task from starting."""


def blocked_gate(task: Task, facts: Facts, state: GateState = GateState.WAITING) -> Gate:
    """The gate of a task that waits for other tasks."""
    parents = "its parents" if task.after is None else "the tasks in its `after`"
    named = "; ".join(filter(None, (_listed(facts.parents), *facts.occurrences)))
    rule = "" if task.after is None else f" Its trigger rule is {task.after.rule}."
    text = f"It waits for {parents}{': ' if named else ''}{named}.{rule}"
    return replace(_at(GateName.PARENTS, text), state=state, waits_for=OtherTasks(facts.parents))


def _before_its_check(task: Task, facts: Facts, closed: Sequence[Gate]) -> Gate:
    """The gate of a task whose next check is in the future."""
    away = f"{to_iso(task.next_at)}, in {span(task.next_at - facts.now)}"
    if task.waiting_for is not None and task.is_postponed:
        name = GateName(wait_reason(task.waiting_for).value)
        found = next((gate for gate in closed if gate.name is name), None)
        text = found.text if found else f"It was postponed ({task.waiting_for}), which no longer blocks it."
        if name in {GateName.APPROVAL, GateName.EVENT}:
            text = f"It waits for {task.waiting_for}{_condition(task.target)} until {to_iso(task.next_at)}."
            return _at(name, text, task.next_at)
        if name is GateName.RATE:
            found, text = _in_line(task, facts, found)
        elif name is GateName.GROUP:
            text = f"It waits until all members of the {task.waiting_for} have ended."
        elif found is None and (name not in _CHECKED_NOW or task.waiting_for.startswith(QUOTA_AWAITED)):
            text = f"It was postponed: {task.waiting_for}."
        waits_for = found.waits_for if found else None
        return Gate(
            name=name,
            state=GateState.WAITING,
            text=f"{text} It is checked again at {away}, at the latest.",
            until=task.next_at,
            waits_for=waits_for,
        )
    last = task.attempt_history[-1] if task.attempt_history else None
    if last is not None and last.outcome is AttemptOutcome.RETRIED:
        failed = f" with {task.error.type}" if task.error else ""
        version = f" in version {last.function_version} of its function" if last.function_version else ""
        text = (
            f"Attempt {task.attempt} of {task.retry.max_attempts} failed{failed}{version}; "
            f"attempt {task.attempt + 1} starts at {away}."
        )
        following = NextAttempt(task.attempt + 1, task.retry.max_attempts, task.error, last.function_version)
        return replace(_at(GateName.RETRY, text, task.next_at), waits_for=following)
    return _at(GateName.DUE, f"It is due at {away}.", task.next_at)


def _condition(target: Target) -> str:
    """The condition on the signal that a task waits for."""
    return f" with a signal for which {target.when}" if isinstance(target, EventTarget) and target.when else ""


def _in_line(task: Task, facts: Facts, closed: Gate | None) -> tuple[Gate | None, str]:
    """The gate and the text for a task that waits because a rate is paused, or waits in a rate's line."""
    waited = next((each for each in facts.rates if task.waiting_for == f"rate {each.rate.key}"), None)
    if waited is not None and waited.paused_at is not None and closed is not None:
        return closed, closed.text
    which = ""
    if waited is not None:
        which = f" ({waited.text})" if waited.is_own else f" ({waited.text}), which a switch sets"
    text = f"It waits in line for the {task.waiting_for}{which}."
    return (None if waited is None else _ahead(GateName.RATE, text, _spent(waited))), text


def _on_its_way(task: Task, facts: Facts) -> Gate:
    """The gate of a due task that no worker has claimed."""
    queue = queue_of(Entry.of(task))
    scan = _next_scan(task.next_at, facts.now)
    on_queue = OnQueue(task.pull_queue or queue, bool(task.pull_queue), scan)
    again = f"If its message was lost, it is sent again by {to_iso(scan)}."
    if facts.is_enqueued is False:
        text = f"The trigger, which runs every minute, has not put it on its queue yet. {again}"
        return replace(_at(GateName.TRIGGER, text, scan), waits_for=on_queue)
    whom = f"no pull worker of {task.pull_queue} has leased it" if task.pull_queue else "no worker has claimed it"
    sent = "It is on" if facts.is_enqueued else "It is on, or on its way to,"
    text = f"{sent} the queue {on_queue.queue}, and {whom} for {span(facts.now - task.next_at)}. {again}"
    if task.fair_key is not None:
        text += f" While its fair key {task.fair_key} has many tasks at work, SQS delivers those of other keys first."
    return replace(_at(GateName.QUEUE, text, scan), waits_for=on_queue)


def _leased(task: Task, facts: Facts) -> Gate:
    """The gate of a task that is or was leased by a worker."""
    lease_end = task.lease_expires_at or 0
    worker = task.lease_worker or ""
    if lease_end + MAX_CLOCK_DIFFERENCE <= facts.now:
        scan = _next_scan(max(lease_end, task.next_at), facts.now)
        soon = lease_end + LEASE_RETURN_MARGIN
        about = f"at about {to_iso(soon)}, and " if soon > facts.now else ""
        lost = f"The worker {worker} of attempt {task.attempt} was lost: its lease ended at {to_iso(lease_end)}. "
        if task.unacknowledged:
            lost = f"The worker {worker} never acknowledged its lease, which ended at {to_iso(lease_end)}. "
        text = f"{lost}Another worker takes the task over {about}by {to_iso(scan)} at the latest."
        return replace(_at(GateName.RECOVERY, text, scan), waits_for=LeasedBy(worker, lease_end))
    if task.awaiting_notification:
        return _awaiting(task, facts, LeasedBy(worker, lease_end))
    heartbeat = None if task.pull_queue or not facts.lease else max(task.run_at or 0, lease_end - facts.lease)
    percent = f", at {task.progress.percent}%" if task.progress else ""
    said = f" ({task.progress.message})" if task.progress and task.progress.message else ""
    text = (
        f"Attempt {task.attempt} is {task.state.replace('_', ' ')} on {worker}{percent}{said}; "
        f"its lease lasts until {to_iso(lease_end)}, unless a heartbeat renews it.{_requested(task)}"
    )
    return replace(_at(GateName.RUN, text), waits_for=LeasedBy(worker, lease_end, heartbeat))


def _awaiting(task: Task, facts: Facts, lease: LeasedBy) -> Gate:
    """The gate of a task whose target has accepted the work."""
    until = f"until {to_iso(lease.expires_at)}"
    if isinstance(task.target, TopologyTarget):
        nodes = f": {_listed(facts.nodes)}" if facts.nodes else ""
        gate = _at(GateName.RUN, f"Its nodes run, {until} at the latest{nodes}.{_requested(task)}", lease.expires_at)
        return replace(gate, waits_for=OtherTasks(facts.nodes) if facts.nodes else lease)
    if seeks_job(task):
        ends_at = search_ends_at(task)
        text = f"The start of its job got no response: the job is looked for until {to_iso(ends_at)}.{_requested(task)}"
        return replace(_at(GateName.NOTIFICATION, text, ends_at), waits_for=lease)
    text = f"Its target has accepted attempt {task.attempt}, and has {until} to report the outcome.{_requested(task)}"
    return replace(_at(GateName.NOTIFICATION, text, lease.expires_at), waits_for=lease)


def _requested(task: Task) -> str:
    match task.requested_action:
        case RequestedAction.PAUSE:
            return " It has been asked to pause, and has not done so yet."
        case RequestedAction.CANCEL:
            return " It has been asked to stop, and has not done so yet."
        case None:
            return ""


def _next_scan(at: Millis, now: Millis) -> Millis:
    """The latest time by which the next recovery scan of a minute will have resent the minute's tasks."""
    end = start_of(minute_of(at) + 1)
    scans = [end + delay + MINUTE for delay in RECOVERY_SCAN_DELAYS]
    return next((scan for scan in scans if scan > now), scans[-1] + -(-(now - scans[-1] + 1) // DAY) * DAY)


def _listed(tasks: Sequence[OtherTask]) -> str:
    named = [f"{each.node or each.task_id} ({each.state})" for each in tasks[:_LISTED]]
    return ", ".join(named) + (f" and {len(tasks) - _LISTED} more" if len(tasks) > _LISTED else "")


def _at(name: GateName, text: str, until: Millis | None = None) -> Gate:
    return Gate(name=name, state=GateState.WAITING, text=text, until=until)


def closed_gates(task: Task, facts: Facts) -> tuple[Gate, ...]:
    """The gates that would prevent a task from starting now, in the order in which the task reaches them."""
    return tuple(_closed(task, facts))


def _closed(task: Task, facts: Facts) -> Iterator[Gate]:
    yield from _switches(task, facts)
    yield from _of_schedule(task, facts)
    if facts.earlier is not None:
        yield _ahead(GateName.ORDER, _order_text(facts.earlier), facts.earlier)
    for needed in facts.locks:
        if needed.is_closed_for(task.id):
            yield _limit(task, facts, needed) if needed.is_cap else _lock(task, facts, needed)
    yield from _rates(task, facts)
    if facts.circuit is not None and facts.circuit.state(facts.now) is not CircuitState.CLOSED:
        circuit = facts.circuit
        is_open = circuit.state(facts.now) is CircuitState.OPEN
        calls = "no calls are made except single test calls" if is_open else "calls are made only one at a time"
        failed = f"; it failed last with {circuit.reason}" if circuit.reason else ""
        since = _since(circuit.opened_at, facts.now)
        text = f"The host {circuit.host} kept failing, so since {since} {calls}"
        yield _ahead(GateName.CIRCUIT, f"{text}{failed}.", OpenCircuit(circuit), circuit.open_until)


def _rates(task: Task, facts: Facts) -> Iterator[Gate]:
    """The rate that delays the task: a paused rate, or else the rate that lets the task start last."""
    asked_at = max(facts.now, task.next_at)
    for each in sorted(facts.rates, key=lambda each: (each.paused_at is None, -each.turn)):
        key = each.rate.key
        if each.paused_at is not None:
            text = f"The rate {key} has been paused since {_since(each.paused_at, facts.now)}."
            yield _ahead(GateName.RATE, text, _spent(each))
            return
        if each.turn > asked_at + RATE_HOLD and task.waiting_for != f"rate {key}":
            text = f"The rate {key} ({each.text}) would let it start at {to_iso(each.turn)}, after those in its line."
            yield _ahead(GateName.RATE, text, _spent(each), each.turn)
            return


def _spent(each: RateFacts) -> SpentRate:
    return SpentRate(each.rate, each.is_pinned, each.paused_at)


def _switches(task: Task, facts: Facts) -> Iterator[Gate]:
    """The switch that stops the task. Only the switch with the widest scope is used, as in the worker."""
    switch = next((switch for switch in facts.switches.of(task) if switch.stopped), None)
    if switch is not None:
        why = f": {switch.reason}" if switch.reason else ""
        by = f" by {switch.updated_by}" if switch.updated_by else ""
        text = f"A switch has stopped {switch.key} since {_since(switch.updated_at, facts.now)}, set{by}{why}."
        yield _ahead(GateName.SWITCH, text, SetSwitch(switch))


def _of_schedule(task: Task, facts: Facts) -> Iterator[Gate]:
    """Why the schedule does not let its run start."""
    ref, stored = task.schedule_ref, facts.schedule
    if ref is None or has_begun(task):
        return
    if stored is None or stored.mark != ref.mark:
        yield _ahead(GateName.SCHEDULE, f"The schedule {ref.schedule!r} was deleted: this run will be skipped.")
        return
    if (skip := skipped(stored, ref)) is not None:
        holding = HoldingSchedule(stored.name, stored.state, stored.paused_reason, stored.updated_at)
        why = f" ({stored.paused_reason})" if stored.paused_reason else ""
        yield _ahead(GateName.SCHEDULE, f"{_capital(skip.reason)}{why}: this run will be skipped.", holding)
    elif facts.earlier_runs and not may_overlap(for_run(stored, ref)):
        tasks = ", ".join(f"{each.task_id} ({each.state})" for each in facts.earlier_runs)
        text = f"An earlier run of the schedule {stored.name!r} has not ended: {tasks}."
        yield _ahead(GateName.OVERLAP, text, OtherTasks(facts.earlier_runs))


def _order_text(earlier: EarlierTasks) -> str:
    place = f"number {earlier.position}" if earlier.position else "far behind"
    text = f"It is {place} in the line of its ordered key {earlier.key}"
    if not earlier.tasks:
        return f"{text}, in which an earlier task is being created."
    first = f"{earlier.tasks[0].task_id} ({earlier.tasks[0].state})"
    if earlier.is_stopped:
        return f"{text}, which the task {first} stops: retry or delete that task."
    before = f", and just before it is {earlier.tasks[1].task_id}" if len(earlier.tasks) > 1 else ""
    return f"{text}: the task {first} must end first{before}."


def _lock(task: Task, facts: Facts, needed: LockFacts) -> Gate:
    limit, key = needed.claim.limit, needed.claim.name.key
    position = needed.position(task.id)
    is_shared = needed.claim.is_shared
    held = HeldLock(key, LockMode.SHARED if is_shared else LockMode.EXCLUSIVE, limit, needed.holders, position)
    by = ", ".join(_holder(each, facts.now) for each in needed.holders) or "nobody: it is being handed over"
    place = f" It is number {position} in line." if position else ""
    several = (
        ", which it would share," if is_shared else f", which {limit} tasks may hold at once," if limit > 1 else ""
    )
    return _ahead(GateName.LOCK, f"The lock {key}{several} is held by {by}.{place}", held)


def _limit(task: Task, facts: Facts, needed: LockFacts) -> Gate:
    """The gate of a concurrency limit; the limit's holders are not shown, because they may be other owners' tasks."""
    name, position = needed.claim.name.key, needed.position(task.id)
    switch = next(each for each in facts.switches.of(task) if f"{each.key.scope}/{each.key.name}" == name)
    running = len(needed.lock.holders)
    why = f": {switch.reason}" if switch.reason else ""
    by = f" by {switch.updated_by}" if switch.updated_by else ""
    place = f" It is number {position} in line." if position else ""
    text = (
        f"At most {needed.claim.limit} tasks of {switch.key} have been allowed at once since "
        f"{_since(switch.updated_at, facts.now)}, set{by}{why}; {running} are running.{place}"
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
    waits_for: HeldLock
    | EarlierTasks
    | SpentRate
    | SetSwitch
    | OpenCircuit
    | HoldingSchedule
    | OtherTasks
    | None = None,
    until: Millis | None = None,
) -> Gate:
    return Gate(name=name, state=GateState.AHEAD, text=text, waits_for=waits_for, until=until)
