"""A whole duetime in virtual time: the real use cases over in-memory stores, with ticks and workers that can die."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from duetime.adapters.bulk_invoker import LambdaBulkStarter
from duetime.adapters.dynamodb.bulk import DynamoBulkStore
from duetime.adapters.memory.cursors import MemoryCursorStore
from duetime.adapters.memory.idempotency_keys import MemoryKeyStore
from duetime.adapters.memory.locks import MemoryLockStore
from duetime.adapters.memory.schedules import MemoryCalendarStore, MemoryScheduleStore
from duetime.adapters.memory.shards import MemoryShardStore
from duetime.domain.dispatch.timers import Precision
from duetime.domain.errors import MinutesUnread, Unavailable
from duetime.domain.tasks.attempt_results import Ending, Failed, Succeeded, TargetEnding, failure
from duetime.domain.tasks.target_rules import TargetRules
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import Priority, Task, TaskSpec
from duetime.domain.times import DAY, MINUTE, SECOND, Millis
from duetime.domain.topologies.stored_graph import outline_of
from duetime.ports.queues import Outgoing
from duetime.ports.runtime import Runtime
from duetime.services.bulk.manage import BulkOperations
from duetime.services.enqueue import Enqueuer, message_for
from duetime.services.locks.admin import LockAdmin
from duetime.services.locks.locking import LockManager
from duetime.services.outcomes.callbacks import CallbackSender
from duetime.services.outcomes.completion_steps import DelegatedCompletion, InlineCompletion
from duetime.services.outcomes.outcome import OutcomeWriter
from duetime.services.outcomes.rollback import RollbackWriter
from duetime.services.schedules.expander import ScheduleExpander
from duetime.services.schedules.manage import ScheduleManager
from duetime.services.schedules.occurrence_tasks import OccurrenceTasks
from duetime.services.schedules.overlap import OverlapControl
from duetime.services.schedules.preview import SchedulePreview
from duetime.services.shards import Shards
from duetime.services.tasks.control import TaskControl
from duetime.services.tasks.create import Order, TaskCreator
from duetime.services.tasks.read import TaskReader
from duetime.services.tasks.update import TaskUpdater
from duetime.services.trigger.dispatcher import Dispatcher
from duetime.services.trigger.due_messages import DueMessages
from duetime.services.worker.attempt import AttemptRunner
from duetime.services.worker.batch import BatchWorker
from duetime.services.worker.dead_letters import DeadLetterService
from duetime.services.worker.handler_availability import HandlerAvailability
from tests.adapters.tables import new_table
from tests.clocks import NOW
from tests.fakes.dynamodb import FakeDynamoDB
from tests.fakes.telemetry import FakeTelemetry
from tests.simulation.virtual_time import SeededRandom, Strand, VirtualTime
from tests.virtual.faults import FaultyContentStore, FaultyQueues, FaultyTaskStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.locks import LockClaim
    from duetime.domain.tasks.states import State
    from duetime.ports.queues import Delivery
    from duetime.ports.targets import Work

START = NOW
LEASE = 30 * SECOND
RETENTION = 30 * DAY
LOOK_AHEAD = 180 * SECOND
OWNER = "me"
PULLED = "pulled"
"""The type that pull workers lease, if there are any: `tests.virtual.pulling`."""
FOREVER = 1000 * DAY


@dataclass(frozen=True)
class Effect:
    """One call of a target, as the outside world sees it."""

    task_id: TaskId
    attempt: int
    fence: int
    at: Millis
    phase: Phase = Phase.RUN


Facts = FakeTelemetry


class Nothing:
    """No caps, no handlers that could be broken, and no topologies."""

    def caps(self, _task: Task) -> tuple[LockClaim, ...]:
        """No caps."""
        return ()

    def why_broken(self) -> str | None:
        """No reason."""
        return None

    def inputs_of(self, _task: Task) -> bytes | None:
        """No inputs."""
        return None

    def check_topology(self, _task: Task) -> None:
        """No topology."""

    def follow(self, _task: Task) -> bool:
        """No node."""
        return False


class World:
    """Everything, wired as the composition root wires it.

    Attributes:
        ticking: whether the trigger is run every minute.
        behave: what targets do.
        offered: the phases that targets offer.
        effects: every call of a target.
        told: every callback.
        hear: what becomes of callbacks.
        crashes: how many workers ended their process.
    """

    def __init__(
        self,
        *,
        shards: int = 4,
        tasks: FaultyTaskStore | None = None,
        around: Callable[[Any], Any] = lambda store: store,
    ) -> None:
        self.time = VirtualTime(START)
        self.random_source = SeededRandom()
        self.facts = Facts()
        self.tasks: FaultyTaskStore = around(tasks or FaultyTaskStore())
        self.contents: FaultyContentStore = around(FaultyContentStore())
        self.cursors: MemoryCursorStore = around(MemoryCursorStore())
        self.locks: MemoryLockStore = around(MemoryLockStore())
        self.schedules: MemoryScheduleStore = around(MemoryScheduleStore())
        self.calendars: MemoryCalendarStore = around(MemoryCalendarStore())
        self.queues: FaultyQueues = around(FaultyQueues(self.time, 900 * SECOND, self._look_for_messages, {PULLED}))
        self.around = around
        self.shards = Shards(MemoryShardStore(), self.time, shards)
        self.ticking = True
        self.receiving = True
        self.behave: Callable[[Work], TargetEnding] = lambda _work: Succeeded(b'"done"')
        self.offered: frozenset[Phase] = frozenset({Phase.RUN})
        self.effects: list[Effect] = []
        self.told: list[tuple[Task, str]] = []
        self.hear: Callable[[Task], Failed | None] = lambda _task: None
        self.crashes = 0
        self.workers: list[Strand] = []
        self._wire()
        self.time.start_process(self._tick_for_ever)
        self._receiver = self.time.start_process(self._receive_for_ever)

    def _wire(self) -> None:
        time, facts, rules, nothing = self.time, self.facts, TargetRules({PULLED}), Nothing()
        self.runtime = runtime = Runtime(time, self.random_source, time, facts)
        fake: Any = FakeDynamoDB(time.now)
        self.stores: Any = SimpleNamespace(
            tasks=self.tasks,
            contents=self.contents,
            cursors=self.cursors,
            locks=self.locks,
            schedules=self.schedules,
            calendars=self.calendars,
            keys=MemoryKeyStore(),
            bulk=DynamoBulkStore(fake, new_table(fake)),
        )
        stores = self.stores
        self.enqueuer = Enqueuer(self.tasks, self.queues, runtime, LOOK_AHEAD, Precision.NORMAL)
        self.task_creator = TaskCreator(stores, self.enqueuer, runtime, self.shards, rules)
        self.task_reader = TaskReader(stores)
        self.lock_manager = LockManager(stores, self.enqueuer, runtime, LEASE, nothing)
        self.task_updater = TaskUpdater(stores, self.enqueuer, runtime, RETENTION, self.lock_manager, rules, outline_of)
        occurrence_tasks = OccurrenceTasks(self.contents, self.enqueuer, time, rules)
        self.expander = ScheduleExpander(stores, occurrence_tasks, runtime, LOOK_AHEAD)
        self.overlap_control = OverlapControl(stores, self.enqueuer, self.expander, runtime)
        self.schedule_preview = SchedulePreview(stores, time)
        self.schedule_manager = ScheduleManager(
            stores, self.enqueuer, self.expander, runtime, self.shards, LOOK_AHEAD, RETENTION
        )
        closing = InlineCompletion(
            stores=stores,
            targets=self,
            runtime=runtime,
            retention=RETENTION,
            callback_sender=CallbackSender(self, runtime),
            occurrence_listener=self.overlap_control,
            node_listener=nothing,
        )
        outcome_writer = OutcomeWriter(stores, self.enqueuer, closing, runtime, RETENTION)
        elsewhere = DelegatedCompletion(self.queues)
        finishing_elsewhere = replace(outcome_writer, completion=elsewhere)
        self.lock_admin = LockAdmin(self.locks, self.lock_manager, runtime)
        self.task_control = TaskControl(
            stores, self.enqueuer, self.task_updater, finishing_elsewhere, elsewhere, self.lock_manager, runtime
        )
        self.attempt_runner = AttemptRunner(
            stores=stores,
            targets=self,
            outcome_writer=outcome_writer,
            rollback_writer=RollbackWriter(outcome_writer, self.enqueuer, runtime),
            completion=closing,
            lock_manager=self.lock_manager,
            runtime=runtime,
            lease=LEASE,
            start_gate=self.overlap_control,
            handler_availability=HandlerAvailability(nothing, runtime),
            input_reader=nothing,
            topology_checker=nothing,
        )
        self.batch_worker = BatchWorker(self.tasks, self.queues, self.attempt_runner, runtime, self, LEASE)
        starter = LambdaBulkStarter(fake, "", facts)
        self.bulk_operations = BulkOperations(stores, starter, runtime, self.shards, LOOK_AHEAD)
        due_messages = DueMessages(
            self.queues, self.expander, self.bulk_operations, runtime, LOOK_AHEAD, Precision.NORMAL
        )
        self.dispatcher = Dispatcher(stores, self.queues, self, runtime, self.shards, LOOK_AHEAD, due_messages)
        self.dead_letters = DeadLetterService(
            self.tasks, self.queues, self.enqueuer, finishing_elsewhere, elsewhere, runtime
        )

    # The world plays the targets, the process and the fan-out itself.

    def phases(self, task: Task) -> frozenset[Phase]:
        """What the target offers."""
        del task
        return self.offered

    def run(self, work: Work) -> TargetEnding:
        """Have the target do a phase: note the effect, then behave."""
        task = work.task
        self.effects.append(Effect(task.id, task.attempt, task.fence, self.time.now(), work.phase))
        return self.behave(work)

    def call_back(self, task: Task, url: str) -> Failed | None:
        """Be told of an outcome."""
        self.told.append((task, url))
        return self.hear(task)

    def end(self) -> None:
        """End the worker's process that asks for it."""
        self.crashes += 1
        self.time.kill(self.time.process())

    def read_groups(self, groups: Sequence[int]) -> None:
        """Read each group in a strand of its own."""
        for group in groups:
            self.time.start_process(
                partial(self._invoke, partial(self.dispatcher.read_group, group, f"fan-out-{group}"))
            )

    # What users and the cloud do.

    def create(self, spec: TaskSpec | None = None) -> Task:
        """Accept a task, due now unless the specification says otherwise."""
        return self.task_creator.create(OWNER, self.order_of(spec or TaskSpec("report")))

    def order_of(self, spec: TaskSpec) -> Order:
        """What a user sends to have a task created."""
        return Order(spec)

    def get(self, task: Task) -> Task:
        """Read a task back."""
        return self.task_reader.get(OWNER, task.id)

    def pass_time(self, milliseconds: Millis) -> None:
        """Let the world go on for a while."""
        self.time.run_until(self.time.now() + milliseconds)

    def kill_workers(self) -> None:
        """Kill every worker in mid-work; their messages come back at the visibility they have."""
        workers, self.workers = self.workers, []
        for worker in workers:
            self.time.kill(worker)

    def lose_messages(self) -> None:
        """Lose every message that is queued or under way."""
        self.queues._queued.clear()

    def send_again(self, task: Task) -> None:
        """Send a second copy of a task's message."""
        self.queues.send([Outgoing(message_for(self.get(task)), 0)])

    # What targets may do.

    def take(self, milliseconds: Millis) -> Ending:
        """Take some time, then succeed."""
        self.time.sleep_until(self.time.now() + milliseconds)
        return Succeeded(b'"done"')

    def hang(self, work: Work, attempts: int) -> Ending:
        """Never return, in so many first attempts; then succeed."""
        return self.take(FOREVER if work.task.attempt <= attempts else 0)

    def fail(self, work: Work, attempts: int, *, retriable: bool = True, wait: Millis = 0) -> Ending:
        """Fail in so many first attempts, then succeed."""
        if work.task.attempt > attempts:
            return Succeeded(b'"done"')
        return failure("Boom", f"attempt {work.task.attempt}", retriable=retriable, wait_at_least=wait)

    def states(self) -> Counter[State]:
        """How many tasks there are in each state."""
        return Counter(task.state for task in self.tasks._tasks.values())

    def _tick_for_ever(self) -> None:
        tick = 0
        while True:
            tick += 1
            if self.ticking:
                self.time.start_process(partial(self._invoke, partial(self.dispatcher.tick, f"tick-{tick}")))
            self.time.sleep_until((self.time.now() // MINUTE + 1) * MINUTE)

    def _invoke(self, use_case: Callable[[], None]) -> None:
        """Invoke the trigger: what it raises fails that invocation, and nobody repeats it."""
        try:
            use_case()
        except (MinutesUnread, Unavailable):
            self.facts.count("ticks_failed")

    def _receive_for_ever(self) -> None:
        while True:
            for priority in Priority if self.receiving else ():
                while batch := self.queues.receive_batch(priority):
                    self.workers.append(self.time.start_process(partial(self._work, batch)))
            # At most a day: whatever changes the queues before that wakes the receiver.
            now = self.time.now()
            longest = DAY if self.receiving else MINUTE
            next_at = self.queues.next_visible_at() if self.receiving else None
            self.time.sleep_until(max(now + 1, min(next_at or now + longest, now + longest)))

    def _look_for_messages(self) -> None:
        self.time.nudge(self._receiver)

    def _work(self, batch: list[Delivery]) -> None:
        kept = self.batch_worker.work(batch, "worker")
        for delivery in batch:
            if delivery not in kept:
                self.queues.delete([delivery])
