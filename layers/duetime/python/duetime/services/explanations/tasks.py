"""Explains tasks from their records and from the gates where tasks may wait; changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime.domain.dispatch.cursors import DISPATCH, GROUP_SIZE
from duetime.domain.dispatch.enqueue_plan import Entry, queue_of
from duetime.domain.explanations.gate import EarlierTasks, Facts, GateState, LockFacts, OtherTask, RateFacts
from duetime.domain.explanations.present_gate import blocked_gate, closed_gates
from duetime.domain.explanations.task_explanation import (
    SpentQuota,
    StartConditions,
    StartPreview,
    TaskExplanation,
    explain,
    preview,
)
from duetime.domain.limits import MAX_EXPLAINED_LINE, MAX_EXPLAINED_PLACES, MAX_EXPLAINED_TASKS
from duetime.domain.locks import RESERVED, claims_of
from duetime.domain.operating_parameters import QUOTA_WINDOW
from duetime.domain.quotas import Quota
from duetime.domain.rates import MICROS, RateControl, RateState, StartRequest, part_of
from duetime.domain.switches import SYSTEM
from duetime.domain.tasks.creation import due_of, new_id, new_task
from duetime.domain.tasks.states import LEASED, NOT_STARTED, STARTABLE, State
from duetime.domain.tasks.targets import HandlerTarget, Phase, PullTarget, TopologyTarget, host_of
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.tasks.task_options import unique_of
from duetime.domain.times import SECOND, minute_of
from duetime.services.unique_keys import key_status
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from duetime.domain.circuit_breakers import Circuit
    from duetime.domain.explanations.gate import Gate
    from duetime.domain.ids import TaskId
    from duetime.domain.locks import Holder, LockClaim
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.switches import Switches
    from duetime.domain.tasks.creation import Order
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Rate
    from duetime.domain.times import Millis
    from duetime.ports.queues import WorkQueues
    from duetime.ports.runtime import Clock
    from duetime.ports.stores import StepStore, Stores
    from duetime.services.quotas.admin import QuotaUsage
    from duetime.services.quotas.book import QuotaBook
    from duetime.services.tasks.create import TaskCreator
    from duetime.services.tasks.read import TaskReader
    from duetime.services.topologies.repository import TopologyRepository


@frozen
class TaskExplainer:
    """Explains why a task has not run yet, or how its time was spent.

    Attributes:
        lease: duration of a worker's lease, in milliseconds.
    """

    stores: Stores
    task_reader: TaskReader
    topology_repository: TopologyRepository
    steps: StepStore
    clock: Clock
    lease: Millis

    def explain(self, owner: str, task_id: TaskId) -> TaskExplanation:
        """Explain one task.

        Raises:
            TaskNotFound: the task does not exist, or belongs to another owner.
        """
        task = self.task_reader.record(owner, task_id)
        older = tuple(self.stores.contents.attempts_of(task.id)) if task.may_have_attempts_outside else ()
        now = self.clock.now()
        known = Facts(now=now, lease=self.lease, older=older, steps=self._steps(task))
        if task.state in NOT_STARTED:
            return explain(task, self._of_waiting(task, known))
        nodes = self._nodes(task) if task.state in LEASED and isinstance(task.target, TopologyTarget) else ()
        is_enqueued = self._is_enqueued(task, now) if task.state is State.ROLLING_BACK else None
        return explain(task, replace(known, nodes=nodes, is_enqueued=is_enqueued))

    def gates_ahead(self, task: Task) -> tuple[Facts, tuple[Gate, ...]]:
        """The current conditions that would delay the start of a task that is not created yet."""
        facts = self._of_waiting(task, Facts(now=self.clock.now(), lease=self.lease))
        waits = [blocked_gate(task, facts, GateState.AHEAD)] if facts.parents or facts.occurrences else []
        return facts, (*waits, *closed_gates(task, facts))

    def _steps(self, task: Task) -> tuple[str, ...]:
        """Names of the steps that the task's handler has completed."""
        if task.started_at is None or not isinstance(task.target, HandlerTarget | PullTarget):
            return ()
        return tuple(step.name for step in self.steps.list_of(task.id) if step.phase == Phase.RUN)

    def _of_waiting(self, task: Task, known: Facts) -> Facts:
        """The state of everything for which a task may wait before it starts."""
        switches = self.stores.switches.read(consistent=True).in_force
        stored, earlier_runs = self._schedule(task)
        return replace(
            known,
            switches=switches,
            locks=tuple(self._lock(task, claim, known.now) for claim in (*claims_of(task), *switches.caps(task))),
            earlier=None if task.order is None else self._earlier(task, known.now),
            rates=self._rates(task, switches, known.now),
            circuit=self._circuit(task),
            schedule=stored,
            earlier_runs=earlier_runs,
            **self._blockers(task),
            is_enqueued=self._is_enqueued(task, known.now) if task.state in STARTABLE else None,
        )

    def _lock(self, task: Task, claim: LockClaim, now: Millis) -> LockFacts:
        """A lock with its waiting tasks, and also with its holders if only this owner uses the lock."""
        lock, line = self.stores.locks.read(claim.name, MAX_EXPLAINED_LINE)
        lock = lock.living(now)
        if claim.name.owner == SYSTEM:
            return LockFacts(claim, lock, tuple(line), ())
        holders = {each.task_id: each for each in lock.holders[:MAX_EXPLAINED_TASKS] if each.task_id != task.id}
        found = self._read(task.owner, holders)
        return LockFacts(claim, lock, tuple(line), tuple(_holder(found[each], holders[each]) for each in found))

    def _earlier(self, task: Task, now: Millis) -> EarlierTasks | None:
        """The earlier tasks of a task's ordered key; `None` if the task has the turn, or would get it."""
        # Few tasks have an ordered key, so the module is not imported at startup.
        from duetime.domain.order_lines import holds_line, line_of, stops_line  # noqa: PLC0415 - see the line above

        if (name := line_of(task)) is None or task.order_number is None:
            return None
        turn = self.stores.order_lines.read(name, 0).turn
        if turn == task.id:
            return None
        places = self.stores.order_lines.list_before(name, task.order_number, MAX_EXPLAINED_PLACES)
        is_whole = len(places) < MAX_EXPLAINED_PLACES
        ids = [] if turn is None else [turn]
        ids += [places[-1].task_id, places[0].task_id] if places else []
        found = [each for each in self._read(task.owner, ids).values() if holds_line(each, now)]
        if not found and is_whole and not any(place.is_being_created(now) for place in places):
            return None
        return EarlierTasks(
            key=name.key,
            position=len(places) + 1 if is_whole else None,
            tasks=tuple(_other(each) for each in found[:1] + found[1:][-1:]),
            is_stopped=bool(found) and stops_line(found[0]),
        )

    def _rates(self, task: Task, switches: Switches, now: Millis) -> tuple[RateFacts, ...]:
        """The rates that limit a task's starts, with the state of the parts that the task would use."""
        asked = [(SYSTEM, rate) for rate in switches.rates(task)] + (
            [] if task.rate is None else [(task.owner, task.rate)]
        )
        return tuple(self._rate(task, owner, rate, now) for owner, rate in asked)

    def _rate(self, task: Task, owner: str, rate: Rate, now: Millis) -> RateFacts:
        name, pace = part_of(rate, owner, task.id)
        state = self.stores.rates.read_many([name]).get(name, RateState())
        rule = state.pin(rate.key) or rate
        if rule != rate:
            name, pace = part_of(rule, owner, task.id)
            state = self.stores.rates.read_many([name]).get(name, RateState())
        request = StartRequest(pace, task.priority, max(now, task.next_at) * MICROS)
        turn = -(-request.turn(request.converted(state)) // MICROS)
        is_own = owner == task.owner
        return RateFacts(rule, is_own, rule != rate, RateControl.of(rate.key, state).paused_at, turn)

    def _circuit(self, task: Task) -> Circuit | None:
        host = host_of(task.target)
        return None if host is None else self.stores.circuit_breakers.read(task.owner, host, consistent=False)

    def _schedule(self, task: Task) -> tuple[StoredSchedule | None, tuple[OtherTask, ...]]:
        """The schedule of a run that has not begun, and the earlier runs that are still open."""
        ref = task.schedule_ref
        if ref is None or task.attempt_history:
            return None, ()
        stored, activity = self.stores.schedules.read(task.owner, ref.schedule)
        if stored is None:
            return None, ()
        seen = activity.of(stored.uid)
        before = seen.waiting[: seen.waiting.index(task.id)] if task.id in seen.waiting else seen.waiting
        ids = [each for each in (seen.active, *before) if each is not None]
        if seen.active == task.id or not ids:
            return stored, ()
        found = self._read(task.owner, ids[:MAX_EXPLAINED_TASKS]).values()
        return stored, tuple(_other(each) for each in found if each.finished_at is None)

    def _blockers(self, task: Task) -> dict[str, Any]:
        """The dependencies of a blocked task."""
        if task.state is not State.BLOCKED or task.after is None:
            return {"parents": self._parents(task)} if task.state is State.BLOCKED else {}
        # Few tasks wait for other tasks, so the module is imported only for these tasks.
        from duetime.services.dependencies import DependencyReader  # noqa: PLC0415 - see the line above
        from duetime.services.schedules.preview import AwaitedOccurrences  # noqa: PLC0415

        occurrences = AwaitedOccurrences(self.stores, self.clock)
        found = DependencyReader(self.stores.tasks, lambda: occurrences).read(task.owner, task.after)
        is_open = [each for each in found if each.outcome is None]
        parents = tuple(_other(each.task) for each in is_open if each.task is not None)
        return {"parents": parents, "occurrences": tuple(each.name for each in is_open if each.task is None)}

    def _parents(self, task: Task) -> tuple[OtherTask, ...]:
        """The parents of a node that have not ended yet."""
        ref = task.node_ref
        run = None if ref is None else self.topology_repository.read(ref.topology)
        if ref is None or run is None or ref.key not in run.graph.by_key:
            return ()
        keys = run.graph.by_key[ref.key].depends_on[:MAX_EXPLAINED_TASKS]
        found = self._read(task.owner, [run.run_state.task_id(key) for key in keys]).values()
        return tuple(_other(each) for each in found if each.finished_at is None)

    def _nodes(self, task: Task) -> tuple[OtherTask, ...]:
        """The nodes of a topology that have begun, or may begin, but have not ended; empty for a large topology."""
        run = self.topology_repository.read(task.id)
        if run is None or not run.is_present or len(run.graph.by_key) > MAX_EXPLAINED_TASKS:
            return ()
        found = self._read(task.owner, [run.run_state.task_id(key) for key in run.graph.by_key]).values()
        return tuple(_other(each) for each in found if each.finished_at is None and each.state is not State.BLOCKED)

    def _is_enqueued(self, task: Task, now: Millis) -> bool | None:
        """Whether a due task's message was sent, according to its record or the trigger's cursors."""
        if task.next_at > now:
            return None
        if task.sent:
            return True
        cursors = self.stores.cursors.read(task.id.shard // GROUP_SIZE)
        if cursors is None:
            return False
        queue = queue_of(Entry.of(task))
        return cursors.progress(DISPATCH, queue).is_done(minute_of(task.next_at))

    def _read(self, owner: str, ids: Iterable[TaskId]) -> Mapping[TaskId, Task]:
        """An owner's tasks in the requested order; missing tasks are left out."""
        wanted = list(dict.fromkeys(ids))
        found = self.stores.tasks.read_many(wanted, consistent=True) if wanted else {}
        return {each: found[each] for each in wanted if each in found and found[each].exists_for(owner)}


def _holder(task: Task, holder: Holder) -> OtherTask:
    """A lock's holder, with the approximate time at which its hold began; `None` for a reservation."""
    since = None if holder.fence == RESERVED else task.run_at
    return OtherTask(task.id, task.state, "", since, holder.expires_at)


def _other(task: Task) -> OtherTask:
    return OtherTask(task.id, task.state, task.node_ref.key if task.node_ref else "", since=task.run_at)


_TAIL_BITS = 64
_REFUSING = (Quota.CREATES, Quota.PAYLOAD_BYTES, Quota.OPEN_TASKS)
_LAST_NUMBER = 10**15 - 1
"""A number that is greater than every number in the line of an ordered key."""
_DELAYING = (Quota.CONCURRENT_ATTEMPTS,)


@frozen
class StartPreviewer:
    """Estimates when a task would start if it were created now.

    Attributes:
        quotas: the quotas of owners and their usage; `None` if the deployment has no quotas.
    """

    creator: TaskCreator
    explainer: TaskExplainer
    queues: WorkQueues
    quotas: Callable[[], tuple[QuotaBook, QuotaUsage]] | None

    def preview(self, owner: str, order: Order, size: int) -> StartPreview:
        """Estimate when a task would start, with the reasons.

        Args:
            owner: owner of the task.
            order: the request.
            size: size of the request in bytes.

        Raises:
            FieldInvalid: as in `TaskCreator.create_once`.
            Unavailable: the store or a queue did not answer.
        """
        task = self._new_task(owner, order)
        facts, closed = self.explainer.gates_ahead(task)
        unique = unique_of(task.unique, task.debounce)
        holder = None if unique is None else key_status(self.explainer.stores, owner, unique.key).holder
        known = StartConditions(
            now=facts.now,
            closed=closed,
            unique=unique,
            holder=holder,
            quotas=tuple(self._spent(owner, size)),
            queue=task.pull_queue or queue_of(Entry.of(task)),
            backlog=self.queues.depth(task.priority, task.pull_queue).waiting,
        )
        return preview(task, known)

    def _new_task(self, owner: str, order: Order) -> Task:
        """The record that would be created, with its payload inside the record, regardless of the payload's size."""
        creator = self.creator
        spec = creator.resolved(owner, order)
        spec = replace(spec, target=creator.rules.accept(owner, spec, order.graph))
        now = creator.runtime.now()
        due = due_of(spec, now)
        task_id = new_id(due, now, 0, creator.runtime.random_source.bits(_TAIL_BITS))
        task = new_task(task_id, spec, owner, due, now, Content(ContentPlace.RECORD, "", spec.payload))
        if spec.order is not None:
            task = replace(task, order_number=_LAST_NUMBER)
        return task if spec.after is None else replace(task, state=State.BLOCKED, after=spec.after)

    def _spent(self, owner: str, size: int) -> Iterator[SpentQuota]:
        if self.quotas is None:
            return
        book, usage = self.quotas()
        limits = book.of(owner)
        # Rates are per second, on average over the window in which they are counted.
        share = SECOND / QUOTA_WINDOW
        amounts = {
            Quota.CREATES: share,
            Quota.PAYLOAD_BYTES: size * share,
            Quota.OPEN_TASKS: 1,
            Quota.CONCURRENT_ATTEMPTS: 1,
        }
        for quota in (*_REFUSING, *_DELAYING):
            limit = limits.limit(quota)
            if limit is not None and (used := usage.used(owner, quota)) + amounts[quota] > limit:
                yield SpentQuota(quota, limit, used, quota in _REFUSING)
