"""Simulates a complete account in which any call can fail for several minutes; afterwards, all work must finish."""

from __future__ import annotations

import asyncio
import json
from enum import Enum
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from greenlet import GreenletExit

from duetime.adapters.dynamodb import schema
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis
from duetime.domain.tracebacks import class_name
from duetime.environment_variables import Variable
from duetime.handlers import Accepted, AttemptCancelled, AttemptPaused
from duetime_testing.simulation.code_versions import Generation
from duetime_testing.simulation.machines import Machine
from tests.simulation import works
from tests.simulation.account import Account
from tests.simulation.attempt_watching import AttemptWatching
from tests.simulation.bulk_users import BulkUsers
from tests.simulation.bulk_watching import BulkWatching
from tests.simulation.dependency_watching import DependencyWatching
from tests.simulation.endpoints import Asked
from tests.simulation.event_watching import EventWatching
from tests.simulation.expiry_watching import ExpiryWatching, expiry_of
from tests.simulation.group_watching import GroupUsers, GroupWatching
from tests.simulation.job_users import JobUsers
from tests.simulation.job_watching import JobWatching
from tests.simulation.lock_watching import LockWatching
from tests.simulation.node_watching import NodeWatching
from tests.simulation.occurrence_watching import OccurrenceWatching
from tests.simulation.order_watching import OrderWatching
from tests.simulation.rate_watching import RateWatching
from tests.simulation.schedule_users import ScheduleUsers
from tests.simulation.schedule_watching import ScheduleWatching
from tests.simulation.signal_watching import SignalUsers, SignalWatching
from tests.simulation.step_watching import StepWatching
from tests.simulation.stream_watching import StreamWatching
from tests.simulation.topology_users import TopologyUsers
from tests.simulation.topology_watching import TopologyWatching
from tests.simulation.unique_watching import UniqueWatching
from tests.simulation.users import Users
from tests.simulation.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.tasks.task import Task
    from duetime.handlers import BatchItem, Context
    from duetime_testing.fakes.job_services import FakeJobs
    from duetime_testing.fakes.stepfunctions import Execution
    from duetime_testing.simulation.faults import Call, Fault
    from duetime_testing.simulation.virtual_time import Strand
    from tests.simulation.watching import Effect

DELIVERIES = [(0, 0), (0, 60), (0, 300), (150, 300)]
"""Ranges of delivery times in milliseconds: either immediate, as in most tests, or realistic for SQS and Lambda."""
RATES = [0.0, 0.002, 0.01, 0.03]
STORM = 8 * MINUTE
_MILD = 0.4
"""The fraction of simulations with the fault rate 0 that have mild faults, which must not delay any task."""
_LARGE_RESULTS = 0.1
"""The fraction of the results that are stored outside their records."""
_GROWS, _MOST_SHARDS = 0.6, 16
_LOOKS = 5 * SECOND
_AGES, _MOMENTS = 5, 12
"""In one out of this many seeds, the account is checked at this many times during the following weeks."""
_STREAMED = 5
"""In one out of this many seeds, the table's stream is read, including the weeks in which TTL deletes tasks."""
_JOBS = 5
"""In one out of this many seeds, users also create tasks whose jobs AWS runs."""
_RETENTIONS = 3
"""In one out of this many seeds, some task types have a different retention."""
_HOT_KEYS = 4
"""In one out of this many seeds with tasks, tasks with the same key are created faster than messages are delivered."""
_GROUPS = 3
"""One out of this many seeds with tasks also has groups."""
_SIGNALS = 3
"""In one out of this many seeds with tasks, some tasks wait for events."""
_DEPENDENCIES = 3
"""In one out of this many seeds with tasks, some tasks start after other tasks."""
_SLOW_BULK = 3
"""One out of this many seeds with tasks and faults has bulk operations that last for minutes."""
_FROZEN_HOLDERS = 0.02
"""The probability that a process which runs a bulk operation is suspended before a call."""
_ORDERED = 3
"""In one out of this many seeds with tasks, users create many tasks with ordered keys."""
_RATES_CHANGE = 5
"""In one out of this many seeds with tasks, the rates of waiting tasks are raised and lowered."""
_RATES_CONTROLLED = 5
"""In one out of this many seeds with tasks, rates are paused, pinned and reset."""
_SILENCES = 6
"""In one out of this many seeds with faults, no function is invoked for days before the time without faults begins."""
_NOTICED = 15 * SECOND
"""The time within which a process that was suspended notices that it has lost a lease, and ends."""
TASKS_CALM, CALM = 75 * MINUTE, 13 * HOUR
"""The times from the last fault until all tasks, and all work with lost tokens, must have ended.

The second recovery scan, an hour later, finds all work that faults interrupted. A topology's state that waits with a
token which Step Functions has lost begins again after twelve hours.
"""


Given = ParamSpec("Given")
Returned = TypeVar("Returned")


class Theme(Enum):
    """The main activity of a simulation's users."""

    TASKS = "tasks"
    """Tasks, some of which are locked, deferred or pulled."""
    SCHEDULES = "schedules"
    TOPOLOGIES = "topologies"
    JOBS = "jobs"
    """Other tasks, and tasks whose targets are jobs that AWS runs."""


THEMES = [
    *2 * [(Theme.TASKS,)],
    (Theme.TASKS, Theme.SCHEDULES),
    (Theme.TASKS, Theme.TOPOLOGIES),
    (Theme.SCHEDULES, Theme.TOPOLOGIES),
]
PEOPLE = {1: 3, 2: 1}
"""The number of users who create and control tasks, by the number of themes in the simulation."""


class Boom(Exception):
    """An ordinary error that a target raises."""


class Panic(BaseException):
    """An error of a handler that is not an `Exception`, like the errors that Rust extensions raise."""


FILE = "caf\udce9.txt"
"""A handler's string that cannot be encoded in UTF-8, like a file name with a foreign byte."""
_ERRORS: list[Callable[[], BaseException]] = [
    *4 * [lambda: Boom("by chance")],
    lambda: Boom(FILE),
    lambda: asyncio.CancelledError(FILE),
    KeyboardInterrupt,
    GeneratorExit,
    lambda: Panic(FILE),
    lambda: BaseExceptionGroup("many", [Panic(), KeyboardInterrupt()]),
]
"""The errors that handlers raise at random."""
_REPORTS = 0.1
"""The fraction of handler calls whose reported progress is a string that cannot be encoded in UTF-8."""
_UNWRITABLE = {"file": FILE}
_BATCHES = 2
"""In one out of this many simulations, tasks have a batch handler."""
_FAILING_BATCHES = 0.1
"""The fraction of calls of a batch handler that fail all their tasks."""
_UNWRITABLE_RESULTS = 0.05
"""The fraction of results that cannot be stored."""
_LOSSES = 2
"""A task whose worker was lost when the faults ended loses its worker in this many later attempts."""
_LOST_WITH_MESSAGES = 0.5
"""The fraction of killed processes whose messages are also lost."""


def _is_step(call: Call) -> bool:
    """Whether a call records that an attempt moves to its next phase."""
    values = call.request.get("ExpressionAttributeValues") or {}
    if call.operation != "update_item" or ":state" not in values:
        return False
    is_from = {"preparing": ":from_running", "running": ":from_preparing"}.get(values[":state"]["S"])
    return is_from in values and ":from_scheduled" not in values


class FaultSimulation(Account):
    """An account with users and faults.

    Attributes:
        theme: the main activity of the users; `None` for a random one.
        is_brief: whether the simulation ends as soon as a promise is broken.
        faulty: whether calls may fail in ways that delay tasks.
        is_calm: whether the time of faults is over.
        calm_at: when the time of faults ended.
        silent_until: the end of the days without any invocation.
        received_from: the time before which no messages were received, so that earlier tasks begin late.
        watching: checks the general invariants; `locks`, `schedules`, `topologies` and others check those of their
            subjects.
        changed_schedules: the names of schedules that were written since the last check.
        calm_after: the time from the last fault until everything had ended.
        crash: the first error of a watcher. It ends the simulation here, because a function would handle it as its own
            error.
    """

    silent_until: Millis = 0

    def __init__(
        self, seed: int, rate: float | None = None, theme: Theme | None = None, *, start: Millis | None = None
    ) -> None:
        super().__init__(seed, start=start)
        self.theme = theme
        self.seed = seed
        drawn = self.random.choice(RATES)
        self.rate = self.reordering = drawn if rate is None else rate
        self.faulty = bool(self.rate)
        self.is_mild = not self.faulty and self.random.random() < _MILD
        self.is_calm = False
        # This uses a separate random generator, so that the other draws of a seed stay the same.
        self.delivery = Random(f"{seed} delivery").choice(DELIVERIES)  # noqa: S311 - repeatable on purpose
        self.most_receives = self.random.choice([1000, 1000, 25, 5] if self.faulty else [1000, 1000, 25])
        for queue in self.sqs.queues.values():
            queue.most_receives = self.most_receives if queue.dead_letters else 0
        self.table = self.dynamodb.tables["tasks"]
        self.changed_schedules: set[str] = set()
        self.schedules = ScheduleWatching(self)
        self.topologies = TopologyWatching(self)
        self.locks = LockWatching(self)
        self.attempts = AttemptWatching(self)
        self.expiries = ExpiryWatching(self)
        self.rates = RateWatching(self)
        self.unique_keys = UniqueWatching(self)
        self.groups, self.group_users = GroupWatching(self), GroupUsers(self)
        self.signals, self.signal_users = SignalWatching(self), SignalUsers(self)
        self.dependencies = DependencyWatching(self)
        self.ordered_keys = OrderWatching(self)
        self.bulk = BulkWatching(self)
        self._holders = Random(f"{seed} holders")  # noqa: S311 - repeatable
        self.events = EventWatching(self)
        self.streams = StreamWatching(self)
        self.occurrences = OccurrenceWatching(self)
        self.nodes = NodeWatching(self)
        self.watching = Watching(self)
        self.steps = StepWatching(self)
        self.joined: set[str] = set()
        self.crash: Exception | None = None
        self.table.watch = self.reporting(self.watching.written)
        self.users = Users(self)
        self.schedule_users = ScheduleUsers(self, self.users)
        self.topology_users = TopologyUsers(self, self.users)
        self.bulk_users = BulkUsers(self, self.users)
        self.jobs = JobWatching(self)
        self.job_users = JobUsers(self, self.users)
        self.is_brief = False
        self.pullers: list[Strand] = []
        self.calm_after: Millis = 0
        self.calm_at: Millis | None = None
        self._losses: dict[str, int] = {}
        if seed % _RETENTIONS == 0:
            self.environ[Variable.RETENTION_DAYS_BY_TYPE] = json.dumps(
                {works.PLAIN: 10, works.PHASED: 90, f"{works.UNDONE[:-1]}?": 50}
            )
        self.received_from: Millis = 0
        works.STAGE.append(self)

    def simulate(self, duration: Millis = STORM) -> None:
        """Let users and faults act for a while, then let all work end, and check the invariants."""
        try:
            end = self.time.now() + duration
            if self.seed % _STREAMED == 0:
                self.streams.begin()
            self._begin_users(end)
            if self.faulty:
                self.time.start_process(partial(self._cause_faults, end))
            looks = self.time.start_process(self._look)
            self._let_pass(end)
            if self._goes_on() and self._is_followed_by_silence:
                self._fall_silent()
            if self._goes_on():
                self._lose_workers()
                self._calm_down()
            if self._goes_on():
                self.watching.check_end()
                self.time.start_process(self.groups.check_end)
                self._let_pass(self.time.now() + MINUTE)
                compared = self.time.start_process(self.streams.check_end)
                self.time.run_while(lambda: not compared.done, self.time.now() + CALM)
                self.schedules.watch_on()
                self.schedules.check_explained()
            if self._goes_on() and self.seed % _AGES == 0:
                self.time.kill(looks)
                self._age()
        finally:
            works.STAGE.remove(self)
            self.close()
        if self.crash is not None:
            raise self.crash

    def reporting(self, watch: Callable[Given, Returned]) -> Callable[Given, Returned]:
        """Wrap a watcher that is called by the code it watches, so that the watcher's errors are kept in `crash`."""

        def call(*given: Given.args, **named: Given.kwargs) -> Returned:
            try:
                return watch(*given, **named)
            except Exception as error:
                self.crash = self.crash or error
                raise

        return call

    def _begin_batches(self, end: Millis) -> None:
        """Let users create groups, tasks with batch handlers, and tasks that wait for events, tasks or their turn."""
        if self.seed % _GROUPS == 1:
            self.time.start_process(partial(self.group_users.use, end))
        if self.seed % _SIGNALS == 2:
            self.time.start_process(partial(self.signal_users.use, end))
        if self.seed % _DEPENDENCIES == 0:
            self.time.start_process(partial(self.users.use_dependencies, end))
        if self.seed % _ORDERED == 0:
            self.time.start_process(partial(self.users.use_ordered_keys, end))
        if self.uses_batches:
            if self.faulty:
                # This happens only with faults, because without faults all tasks must be on time.
                self.worker_batch = 30, SECOND
            self.time.start_process(partial(self.users.use_batches, end))

    def _begin_users(self, end: Millis) -> None:
        # The trigger sends an occurrence only once. If a mild fault prevents this, the first scan sends it late.
        themes = [each for each in THEMES if Theme.SCHEDULES not in each] if self.is_mild else THEMES
        wanted = Theme.TASKS if self.theme is Theme.JOBS else self.theme
        themes = [each for each in themes if wanted in each] or themes
        uses = self.random.choice(themes)
        if self.theme is Theme.JOBS or (self.theme is None and self.seed % _JOBS == 3 and Theme.TASKS in uses):
            self.time.start_process(partial(self.job_users.use, end))
        for theme in uses:
            for _ in range(PEOPLE[len(uses)] if theme is Theme.TASKS else 1):
                self.time.start_process(partial(self._users_of(theme), end))
        if Theme.SCHEDULES in uses:
            self.time.start_process(partial(self.schedule_users.end_runs, end))
        if Theme.TASKS not in uses:
            return
        self.pullers = [self.time.start_process(self.users.pull) for _ in range(2)]
        self._begin_rates(end)
        if self._is_followed_by_silence:
            self.time.start_process(partial(self.users.use_days, end))
        if self.seed % _HOT_KEYS == 1:
            self.delivery = DELIVERIES[-1]
            self.time.start_process(partial(self.users.use_hot_keys, end))
        self._begin_batches(end)
        self._begin_bulk(end)

    def _begin_bulk(self, end: Millis) -> None:
        """Let users and operators act on many tasks at once; without faults, only force the release of locks."""
        if self.faulty:
            # These actions make tasks late on purpose.
            self.time.start_process(partial(self.bulk_users.use, end))
            if self.seed % _SLOW_BULK == 0:
                self.time.start_process(partial(self.bulk_users.change_slowly, end))
        elif not self.is_mild:
            self.time.start_process(partial(self.bulk_users.free_locks, end))

    @property
    def _is_followed_by_silence(self) -> bool:
        return self.faulty and self.seed % _SILENCES == 1

    def _begin_rates(self, end: Millis) -> None:
        if self.seed % _RATES_CHANGE == 2:
            self.time.start_process(partial(self.users.change_rates, end))
        if self.seed % _RATES_CONTROLLED == 4:
            self.time.start_process(partial(self.users.control_rates, end))

    def _look(self) -> None:
        """Repeatedly check conditions that cannot be checked when a write or a call occurs."""
        while True:
            self.take(_LOOKS)
            self.attempts.look()
            self.occurrences.look()

    def _goes_on(self) -> bool:
        """Whether the simulation continues."""
        return self.crash is None and not (self.is_brief and self.watching.violations)

    def _let_pass(self, until: Millis) -> None:
        """Let time pass until this time, or until the simulation need not continue."""
        if self.time.run_while(self._goes_on, until):
            return
        self.time.run_until(until)

    def job_raised(self, machine: Machine, error: Exception) -> None:
        """Record an error in one of a machine's threads; threads must not raise errors."""
        super().job_raised(machine, error)
        self.watching.check(False, f"a job of {machine} raised {error!r}")  # noqa: FBT003 - it does not hold

    def ends(self, machine: Machine) -> None:
        """Record that a process has ended itself."""
        if machine.strand is not None:
            self.watching.ending(machine.strand)

    def _users_of(self, theme: Theme) -> Callable[[Millis], None]:
        match theme:
            case Theme.TASKS | Theme.JOBS:
                return self.users.use
            case Theme.SCHEDULES:
                return self.schedule_users.use
            case Theme.TOPOLOGIES:
                return self.topology_users.use

    def _calm_down(self) -> None:
        self.rate = self.reordering = 0.0
        self.is_mild, self.is_calm = False, True
        self.ticking = self.receiving = True
        self.hot_until.clear()
        self.unread_until.clear()
        for poller in self._pollers.values():
            self.time.nudge(poller)
        self.before_call = None
        self.sends_fail_until = self.endpoint_down_until = self.creations_fail_until = 0
        began = self.calm_at = self.time.now()
        for machine in self.machines:
            machine.cut_off_until = 0
        while self._goes_on() and self.time.now() < began + CALM and self._is_going_on():
            self.time.start_process(self._resume_all)
            self._let_pass(self.time.now() + MINUTE)
            if self.time.now() - began == TASKS_CALM:
                self._check_tasks_are_over()
        self.calm_after = self.time.now() - began

    def _fall_silent(self) -> None:
        """Invoke no function for days, as if the account had failed, while TTL continues to delete items."""
        self.count("days of silence")
        ticking, self.ticking, self.receiving = self.ticking, False, False
        for puller in self.pullers:
            self.time.kill(puller)
        for _ in range(self.random.randrange(1, 4)):
            self._let_pass(self.time.now() + DAY + self.random.randrange(DAY))
            self._expire_some()
        self.ticking, self.receiving, self.silent_until = ticking, True, self.time.now()
        self.pullers = [self.time.start_process(self.users.pull) for _ in self.pullers]

    def _expire_some(self) -> None:
        """Delete some of the expired items, as TTL does."""
        over = [key for key, at in self._with_expiry() if at <= self.time.now()]
        for key in self.random.sample(over, self.random.randint(0, len(over))):
            self.table.write(self.time.now(), key, None)
        self.streams.expired()

    def _check_tasks_are_over(self) -> None:
        """Check that all tasks have ended.

        Skip the check if a token was lost, because only an hours-long timeout detects that.
        """
        if "token lost" not in self.faults:
            for task in self._open_tasks():
                self.watching.check(False, f"{task.id} is still {task.state}")  # noqa: FBT003 - it does not hold

    def _age(self) -> None:
        """Let weeks pass while TTL deletes expired items in any order, and check that all other items can be read."""
        for puller in self.pullers:
            self.time.kill(puller)
        self.stand_still()
        for _ in range(_MOMENTS):
            self.time.run_until(self.time.now() + self.random.randrange(5 * DAY))
            self._expire_some()
            for read in (self.users.read_any, self.topology_users.read_any):
                self.time.start_process(read)
                self.time.run_until(self.time.now() + MINUTE)
        self.streams.check_archive()

    def _with_expiry(self) -> list[tuple[tuple[str, str], Millis]]:
        items = [(item, expiry_of(item)) for item in self.table.every()]
        return [((i[schema.PARTITION_KEY]["S"], i[schema.SORT_KEY]["S"]), at) for i, at in items if at is not None]

    def _open_tasks(self) -> list[Task]:
        return [task for task in self.watching.unfinished() if not self.schedules.is_endless(task)]

    def _is_going_on(self) -> bool:
        return bool(self._open_tasks()) or bool(self.states.running()) or self._outside()

    def _outside(self) -> bool:
        return any(self.jobs.running()) or bool(self.schedules.going_on())

    def fault_for(self, machine: Machine, operation: str) -> Fault | None:
        """The fault of the next call, or `None`."""
        self._freeze_holder(machine)
        own = self.job_users.fault_for(machine, operation) or self.streams.fault_for(machine)
        return own or super().fault_for(machine, operation)

    def begin_execution(self, execution: Execution) -> None:
        """Run the execution that a task has started."""
        super().begin_execution(execution)
        self.job_users.run_execution(execution)

    def begin_container(self, arn: str) -> None:
        """Run the container that a task has started."""
        self.job_users.run_container(arn)

    def begin_job(self, service: FakeJobs, job: str) -> None:
        """Run the job that a task has started in another service."""
        self.job_users.run_job(service, job)

    def _resume_all(self) -> None:
        self.bulk_users.restore()
        self.users.resume_all()
        self.topology_users.resume_all()
        self.signal_users.end_all()

    def _cause_faults(self, until: Millis) -> None:
        """Cause random faults other than failures of a single AWS call."""
        incidents: list[Callable[[], None]] = [
            *(self._kill, self._stop_ticks, self._deploy_anew, self._stop_execution, self._cut_off),
            *(self._freeze_one, self._step_clock, self._heat, self._refuse_sends, self._break_endpoint),
            *(self._freeze_between_phases, self._refuse_creations, self._leave_unread),
            *3 * [self._deliver_at_lease_ends],
        ]
        while self.time.now() < until:
            self.take(self.random.randrange(1, 60 * SECOND))
            if self.time.now() >= until:
                return
            self.random.choice(incidents)()

    def _busy(self) -> list[Machine]:
        return [each for each in self.machines if each.strand is not None]

    def _kill(self) -> None:
        """End a process in the middle of its work."""
        if busy := self._busy():
            self.count("machine killed")
            victim = self.random.choice(busy)
            self.trace(victim, "is killed")
            # This uses a separate random generator, so that the other draws of a seed stay the same.
            if Random(f"{self.seed} {self.time.now()}").random() < _LOST_WITH_MESSAGES:  # noqa: S311 - repeatable
                self._lose_messages_of(victim)
            victim.die()

    def _lose_messages_of(self, machine: Machine) -> set[str]:
        """Lose the messages that a process works on, as if the queue never returned them, and return their tasks."""
        mine = {effect.task_id for effect in self.watching.live if effect.lives and effect.process is machine.strand}
        for queue in self.sqs.queues.values():
            lost = [each for each in queue.messages if any(task_id in each.body for task_id in mine)]
            for message in lost:
                self.count("message lost")
                queue.messages.remove(message)
        return mine

    def _lose_workers(self) -> None:
        """Lose some workers with all their tasks as the last fault.

        The tasks must be found in the time without faults.
        """
        for machine in self._busy() if self.faulty else ():
            apart = Random(f"{self.seed} {machine}")  # noqa: S311 - repeatable
            if machine.function == "worker" and apart.random() < _LOST_WITH_MESSAGES:
                self.count("machine killed")
                for task_id in sorted(self._lose_messages_of(machine)):
                    self._losses[task_id] = _LOSSES
                machine.die()

    def _lose_again(self, task_id: str) -> None:
        """Lose a task's worker and message again in its next attempts; each loss must be found like the first loss."""
        machine = self.time.process().home
        if self._losses.get(task_id, 0) and isinstance(machine, Machine):
            self._losses[task_id] -= 1
            self.take(SECOND)
            self.count("machine killed")
            self._lose_messages_of(machine)
            machine.die()

    def _stop_ticks(self) -> None:
        """Stop or restart the trigger's invocations."""
        self.count("ticks stopped")
        self.ticking = not self.ticking

    def _stop_execution(self) -> None:
        """Stop an execution of the state machine, as a user may do."""
        if executions := self.states.running():
            self.count("execution stopped")
            stopped = self.random.choice(executions)
            self.trace("states", "stops", stopped.name)
            self.states.break_execution(stopped.arn)

    def _cut_off(self) -> None:
        """Block all calls of a process for a while."""
        if busy := self._busy():
            self.count("machine cut off")
            victim = self.random.choice(busy)
            self.trace(victim, "is cut off")
            victim.cut_off_until = self.time.now() + self.random.choice([10, 30, 60]) * SECOND
            for _ in range(self.random.choice([0, 3])):
                self.deliver_in_flight_again()

    def _step_clock(self) -> None:
        """Change a process's clock, within the allowed difference between clocks."""
        if self.machines:
            self.count("clock stepped")
            stepped = self.random.choice(self.machines)
            self.trace(stepped, "has its clock set")
            stepped.step_clock(self.drawn_skew())

    def _freeze_one(self) -> None:
        """Suspend a process for a while."""
        if going := [each for each in self._busy() if each.strand and not self.time.is_frozen(each.strand)]:
            self.count("machine frozen")
            at_work = {effect.process.home for effect in self.watching.live if effect.lives}
            victims = [each for each in going if each in at_work] or going
            duration = self.random.choice([5, 40, 90]) * SECOND
            self.time.start_process(partial(self._freeze, self.random.choice(victims), duration))

    def _freeze_holder(self, machine: Machine) -> None:
        """Sometimes suspend a process that runs a bulk operation until its lease has ended."""
        is_holder = machine.function == "bulk" and self.seed % _SLOW_BULK == 0
        if is_holder and self.faulty and not self.is_calm and self._holders.random() < _FROZEN_HOLDERS:
            self.count("machine frozen")
            self.time.start_process(partial(self._freeze, machine, 80 * SECOND))
            # Wait until the other simulated process has suspended this process.
            self.take(1)

    def _freeze(self, machine: Machine, duration: Millis) -> None:
        """Suspend a machine, perhaps beyond its leases, and then let it continue as if nothing had happened."""
        strand = machine.strand
        if strand is None:
            # The process has ended in the meantime.
            return
        self.trace(machine, "stands still for", duration)
        self.watching.freezes(strand)
        self.time.freeze(strand, self.time.now() + duration)
        self.take(duration + _NOTICED)
        if not strand.done:
            self.watching.check_thawed(strand)

    def _heat(self) -> None:
        """Throttle one of the table's partitions for a while, often the partition of a minute in the near future."""
        partitions = sorted(self.table.partitions)
        minutes = [each for each in partitions if each[:2] == "20"]
        if not partitions:
            return
        hot = self.random.choice(minutes[-8:] or partitions if self.random.random() < 0.5 else partitions)
        self.trace("dynamodb", "throttles", hot)
        self.hot_until[hot] = self.time.now() + self.random.choice([5, 20, 60, 240]) * SECOND

    def _deliver_at_lease_ends(self) -> None:
        """Deliver running tasks to other workers shortly before the tasks' leases end by some machine's clock."""
        for effect in self.watching.live:
            task = self.watching.record(effect.task_id) if effect.lives else None
            if task is not None and task.lease_expires_at is not None and not task.awaiting_notification:
                at = task.lease_expires_at - self.random.randrange(5 * SECOND)
                self.time.start_process(partial(self.deliver_at, effect.task_id, at))

    def _refuse_sends(self) -> None:
        """Let the queues refuse new messages for a while, while received messages are processed."""
        self.trace("sqs", "takes no messages")
        self.sends_fail_until = self.time.now() + self.random.choice([20, 240, 300]) * SECOND

    def _refuse_creations(self) -> None:
        """Let the table refuse new records for minutes, and then let the queues refuse new messages.

        Clients that repeat requests with their idempotency keys complete their creations long after the tasks' due
        minutes.
        """
        self.trace("dynamodb", "takes no new records")
        self.creations_fail_until = self.time.now() + 210 * SECOND
        self.time.start_process(self._refuse_sends_later)

    def _refuse_sends_later(self) -> None:
        self.time.sleep_until(self.creations_fail_until)
        if not self.is_calm:
            self._refuse_sends()

    def _leave_unread(self) -> None:
        """Receive no messages from one queue for a while, so that it grows long while other queues are processed."""
        url = self.random.choice(sorted(self._pollers))
        self.count("queue left unread")
        self.trace("sqs", "is not received from", url)
        self.unread_until[url] = self.time.now() + self.random.choice([20, 120, 240]) * SECOND

    def _freeze_between_phases(self) -> None:
        """Suspend the next worker that is about to write a step of its attempt, until its lease has ended."""

        def freeze(call: Call) -> None:
            strand = call.machine.strand
            if call.machine.function != "worker" or not _is_step(call) or strand is None:
                return
            self.before_call = None
            self.count("frozen between phases")
            self.time.start_process(partial(self._freeze, call.machine, 55 * SECOND))
            # Wait until the other simulated process has suspended this process.
            self.take(1)

        self.before_call = freeze

    def _break_endpoint(self) -> None:
        """Let the endpoint that is called for tasks respond with an error for a while."""
        self.trace("endpoint", "is down")
        self.endpoint_down_until = self.time.now() + self.random.choice([30, 120]) * SECOND

    def _deploy_anew(self) -> None:
        """Deploy older, newer or the current code, sometimes with more shards.

        Running processes keep their old code.
        """
        self.count("deployed")
        self.generation += 1
        self.code = self.random.choice(list(Generation))
        self.count(f"deployed {self.code.name.lower()} code")
        if self.random.random() < _GROWS and self.shards < _MOST_SHARDS:
            self.count("shards doubled")
            self.shards *= 2
            self.environ[Variable.SHARDS] = str(self.shards)
        self.trace("deploy", self.code.value, "shards", self.shards)

    # The following methods simulate the behavior of targets.

    def notified(self, notice_id: str, kind: str) -> int:
        """Respond to a notice that was posted to its address, and return the status of the response."""
        del notice_id, kind
        return 200

    def called_back(self, task_id: str, state: str) -> int:
        """Record a task's outcome that was posted to its callback URL, and return the status of the response."""
        self.watching.called_back(task_id, state)
        return 200

    def act(self, phase: str, context: Context | Asked, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Execute a phase of a task, and check the invariants of the call."""
        del payload
        effect = self.reporting(self.watching.began)(phase, context.task_id, context.fence)
        try:
            if not isinstance(context, Asked):
                self._lose_again(context.task_id)
            if phase == "run" and not isinstance(context, Asked):
                self.steps.do(context)
            result = self._behave(phase, context)
        except GreenletExit:
            raise
        except BaseException as error:
            self.attempts.fails(effect, class_name(error))
            raise
        else:
            self._returns(effect, result)
            return result
        finally:
            self.watching.ended(effect)

    @property
    def uses_batches(self) -> bool:
        """Whether tasks have a batch handler."""
        return self.seed % _BATCHES == 1

    def act_together(self, items: Sequence[BatchItem[Any]]) -> list[Any]:
        """Run several tasks in one call, which takes as long as its first task; in one call in ten, all tasks fail."""
        began = self.reporting(self.watching.began)
        effects = [began("run", item.context.task_id, item.context.fence) for item in items]
        try:
            if self.random.random() < _FAILING_BATCHES:
                for effect in effects:
                    self.attempts.fails(effect, Boom.__name__)
                raise Boom("all of them")
            self.joined |= {item.context.task_id for item in items[1:]}
            self.joined.discard(items[0].context.task_id)
            return [self._one_of_several(item, effect) for item, effect in zip(items, effects, strict=True)]
        finally:
            for effect in effects:
                self.watching.ended(effect)

    def _one_of_several(self, item: BatchItem[Any], effect: Effect) -> Any:  # noqa: ANN401 - a result, or an error
        self._lose_again(item.context.task_id)
        try:
            result = self._behave("run", item.context)
        except GreenletExit:
            raise
        except BaseException as error:  # noqa: BLE001 - it fails this task only
            self.attempts.fails(effect, class_name(error))
            return error
        self._returns(effect, result)
        return result

    def _returns(self, effect: Effect, result: Any) -> None:  # noqa: ANN401 - same
        if result is _UNWRITABLE:
            self.attempts.fails(effect, "ResultNotJson")
        else:
            self.streams.returned(effect.task_id)

    def _behave(self, phase: str, context: Context | Asked) -> Any:  # noqa: ANN401 - same
        draw = self.random.random()
        # This draw uses a separate random generator, like some other draws. An endpoint cannot report progress, and
        # raises only `Boom`.
        apart = Random(f"{self.seed} {context.task_id} {context.fence} {phase}")  # noqa: S311 - repeatable
        is_handler = not isinstance(context, Asked)
        if not isinstance(context, Asked) and apart.random() < _REPORTS:
            context.progress(50, f"reading {FILE}")
        until = self.time.now() + self.random.choice([0, 0, 100, 2 * SECOND, 20 * SECOND, 70 * SECOND])
        while self.time.now() < until and context.requested_action is None and context.task_id not in self.joined:
            self.take(min(5 * SECOND, until - self.time.now()))
        if draw < self.rate:
            self.count("target hangs")
            self.take(HOUR)
        if phase == "run" and context.requested_action == "pause":
            raise AttemptPaused({"row": 1})
        if phase == "run" and context.requested_action == "cancel":
            raise AttemptCancelled
        if phase == "run" and draw > 0.9:
            return Accepted()
        if draw > 0.75:
            raise apart.choice(_ERRORS)() if is_handler else Boom("by chance")
        if is_handler and phase == "run" and apart.random() < _UNWRITABLE_RESULTS:
            return _UNWRITABLE
        return works.LARGE if draw < _LARGE_RESULTS else "done"
