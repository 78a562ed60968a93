"""A simulated account that starts from a saved state, and in which two operations are interleaved call by call."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError, ReadTimeoutError

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.bulk import DynamoBulkStore
from duetime.domain.ids import TaskId
from duetime.domain.order_lines import is_waiting_for_turn, stops_line
from duetime.domain.tasks.aws_jobs import task_of_job
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.times import HOUR, MINUTE, SECOND, Millis, from_datetime
from duetime.environment_variables import Variable
from duetime.handlers import Accepted, AttemptCancelled, AttemptPaused
from duetime_testing.fakes.stepfunctions import Status
from duetime_testing.simulation.machines import Machine
from duetime_testing.simulation.state_machine import DEFINITION
from tests.pairs.footprints import finished, footprint_of, received
from tests.pairs.operations import ACCEPTED, ENDING, UNKNOWN, Operation
from tests.simulation import works
from tests.simulation.account import LEASE_SECONDS, PULLED
from tests.simulation.endpoints import JOBS
from tests.simulation.expiry_watching import is_controlled
from tests.simulation.fault_simulation import Boom, FaultSimulation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.bulk import BulkOperation
    from duetime.handlers import Context
    from duetime_testing.fakes.attribute_values import Item
    from duetime_testing.fakes.job_services import FakeJobs
    from duetime_testing.fakes.sqs import Held
    from duetime_testing.fakes.stepfunctions import Execution, Token
    from duetime_testing.simulation.faults import Call
    from duetime_testing.simulation.virtual_time import Strand
    from tests.pairs.footprints import Footprint
    from tests.pairs.interleaving import CallFault
    from tests.simulation.account import Invocation
    from tests.simulation.endpoints import Asked
    from tests.simulation.users import Reply

T = TypeVar("T")
LONGEST = 20 * MINUTE
"""The longest virtual time that one operation may take."""
SETTLED = 60 * MINUTE
"""The longest virtual time until everything must have ended."""
_WAIT = json.loads(DEFINITION.read_text(encoding="utf-8"))["States"]["Nodes"]["ItemProcessor"]["States"]["Node"]
EXECUTIONS_ENDED = _WAIT["HeartbeatSeconds"] * SECOND + 30 * MINUTE
"""The longest virtual time that executions without waiting tasks may take after everything else has ended, given how
often they poll.
"""
_GOES_ON = 4 * MINUTE
"""How long a permanent schedule is watched."""
_HELD = 3 * MINUTE
"""The time after which paused tasks are resumed, so that they end."""
_TRAVEL, _LAG = 3, 20
_FAR = 10_000 * HOUR
_SERVICES = {"lambda": "lambdas"}
_API_SLOWNESS, _SLOWNESS = 12 * SECOND, 45 * SECOND
"""The two durations of a slow call, which exceed a short lease and a worker's lease.

A request to the API times out after 29 seconds.
"""
_TIMEOUT = 5 * SECOND
"""The time after which the SDK stops waiting for a response."""
_MALFORMED = {"path_not_found", "method_unsupported", "parameters_invalid", "unknown_field", "required", "wrong_type"}
"""The codes of problems and errors which mean that a request cannot be accepted in any state."""


@dataclass(eq=False)
class Actor:
    """One of the two operations while it runs.

    Attributes:
        stop_at: the index, from 0, of the call before which the operation stops; `None` if it does not stop.
        fault: the fault of that call.
        calls: the number of AWS calls that it has begun; calls begun at the same instant count as one.
        made: a string for each of these calls, with the time when the call began.
        footprints: the data that each of these calls touches, by the numbers of `calls`.
        touched: the data that AWS has touched for the operation since its last call.
        requests: the number of calls that it had begun when it sent each of its requests.
        replies: the responses that its client received; `None` for a response that never arrived.
        is_stopped: whether the operation waits until it may continue.
        strand: the operation's client.
        late: makes the operation's delayed call.
    """

    operation: Operation
    stop_at: int | None = None
    fault: CallFault | None = None
    calls: int = 0
    made: list[tuple[Millis, str]] = field(default_factory=list)
    footprints: list[Footprint] = field(default_factory=list)
    touched: Footprint = frozenset()
    requests: list[int] = field(default_factory=list)
    replies: list[Reply | None] = field(default_factory=list)
    answered_at: list[Millis] = field(default_factory=list)
    is_stopped: bool = False
    strand: Strand | None = None
    late: Callable[[], None] | None = None
    blocked: list[Strand] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether the operation has ended."""
        return self.strand is not None and self.strand.done

    @property
    def outcome(self) -> tuple[str, ...]:
        """The responses that the operation's client received."""
        return tuple(self.operation.classify(reply) for reply in self.replies)


@dataclass(frozen=True)
class Leased:
    """A lease as a pull worker knows it."""

    name: str
    fence: int
    ends_at: Millis


@dataclass(frozen=True)
class Saved:
    """The saved state of an account in which nothing runs.

    Attributes:
        about: identifiers and other facts about the subject.
    """

    now: Millis
    partitions: dict[str, dict[str, Item]]
    entries: dict[str, dict[str, set[tuple[str, str, str]]]]
    messages: dict[str, list[Held]]
    objects: dict[tuple[str, str], bytes]
    tags: dict[tuple[str, str], str]
    executions: dict[str, Execution]
    jobs: dict[str, Execution]
    tokens: dict[str, Token]
    numbers: Any
    machines: int
    random_source: Any
    about: dict[str, Any]
    leases: dict[str, Leased]
    watched: dict[str, dict[str, Any]]
    job_names: list[str]


_WATCHED = {
    "watching": (
        "cancelled",
        "accepted",
        "events",
        "accepted_topologies",
        "taken_up",
        "claimed_at",
        "attempts",
        "lost",
    ),
    "locks": ("_held",),
    "schedules": ("disturbed", "names", "seen", "revisions", "held_at"),
    "topologies": ("controlled", "successes", "retries"),
    "rates": ("starts", "asked", "_begun"),
    "groups": ("_ended",),
    "bulk": ("_running",),
    "dependencies": ("_ends",),
    "ordered_keys": ("_written_at", "_started", "_open", "_before", "_gone", "_begun"),
}
"""The watchers' records of earlier writes, by the watchers' names in the account."""


def _copied(value: Any) -> Any:  # noqa: ANN401 - whatever a watcher remembers
    """A copy of a value; sets, lists, and mappings inside a mapping are copied, too."""
    if not isinstance(value, dict):
        return copy(value)
    made = copy(value)
    for key, each in value.items():
        if isinstance(each, dict | set | list):
            made[key] = copy(each)
    return made


def _is_malformed(reply: Reply) -> bool:
    """Whether a request was refused for a reason that does not depend on its subject, such as an unknown field."""
    problem = reply.body if isinstance(reply.body, dict) else {}
    faults = {fault["code"] for fault in problem.get("errors", [])}
    return problem.get("code") in _MALFORMED or bool(faults & _MALFORMED)


class World(FaultSimulation):
    """An account without random faults, in which nothing happens by itself until the account is allowed to settle.

    Attributes:
        about: identifiers and other facts about the subject; `ends` is the state in which the subject must end unless a
            user ends it.
        behavior: the behavior of targets, by the name of a method.
        actors: the two operations.
    """

    def __init__(self) -> None:
        super().__init__(1, 0.0)
        # Messages are delivered as soon as an operation tries to receive them.
        self.delivery = 0, 0
        # A late call is made outside any process here, so its author is unknown.
        self.attempts.is_off = True
        self.faulty = self.is_mild = False
        self.ticking = self.receiving = False
        self.dynamodb.page = 1000
        self.shards = 1
        self.environ[Variable.SHARDS] = "1"
        self.before_call = self._before
        self.about: dict[str, Any] = {}
        self.behavior = "done"
        self.actors: list[Actor] = []
        self.leases: dict[str, Leased] = {}
        self._has_checked = False
        self._clients: dict[Strand, Actor] = {}
        self._driven: dict[Machine, Actor] = {}

    def end(self) -> None:
        """End all processes that are still running."""
        works.STAGE.remove(self)
        self.close()

    # Fixed delays

    def travel(self) -> None:
        """Let the time for a request or a response pass."""
        self.take(_TRAVEL)

    def _lag(self) -> Millis:
        return _LAG

    def trace(self, who: object, *what: object) -> None:
        """Record nothing, because each actor already records its own calls."""

    # States to start from

    def saved(self) -> Saved:
        """Return the current state in a form from which many runs can start."""
        assert not any(each.strand for each in self.machines), "something still runs"
        assert not self.states.running(), "an execution still runs"
        return Saved(
            self.time.now(),
            {name: dict(partition) for name, partition in self.table.partitions.items()},
            {name: {p: set(keys) for p, keys in each.entries.items()} for name, each in self.table.indexes.items()},
            {url: [replace(held) for held in queue.messages] for url, queue in self.sqs.queues.items()},
            dict(self.s3.objects),
            dict(self.s3.tags),
            dict(self.states.executions),
            {arn: replace(job) for arn, job in self.executions_of_tasks.executions.items()},
            dict(self.states.tokens),
            copy(self.sqs._numbers),
            self._machines_made,
            self.random.getstate(),
            dict(self.about),
            dict(self.leases),
            {who: {name: _copied(getattr(getattr(self, who), name)) for name in _WATCHED[who]} for who in _WATCHED},
            list(self.jobs.names),
        )

    def restore(self, saved: Saved) -> None:
        """Continue from a saved state."""
        self.time._now = saved.now
        self.table.partitions = {name: dict(partition) for name, partition in saved.partitions.items()}
        for name, entries in saved.entries.items():
            self.table.indexes[name].entries = {p: set(keys) for p, keys in entries.items()}
        for url, messages in saved.messages.items():
            self.sqs.queues[url].messages = [replace(held) for held in messages]
        self.s3.objects, self.s3.tags = dict(saved.objects), dict(saved.tags)
        self.states.executions, self.states.tokens = dict(saved.executions), dict(saved.tokens)
        self.executions_of_tasks.executions = {
            arn: replace(job, over=partial(self.send_job_event, job.name)) for arn, job in saved.jobs.items()
        }
        self.jobs.names = list(saved.job_names)
        self.sqs._numbers = copy(saved.numbers)
        # No machine has the name of an earlier machine, because nonces contain the machine's name.
        self._machines_made = saved.machines
        self.random.setstate(saved.random_source)
        self.about, self.leases = dict(saved.about), dict(saved.leases)
        self.environ.update(self.about.get("environ", {}))
        for who, memory in saved.watched.items():
            for name, value in memory.items():
                setattr(getattr(self, who), name, _copied(value))

    # The actor to which each call belongs

    def invoke(self, function: str, event: Mapping[str, Any]) -> Invocation:
        """Begin an invocation for the actor whose client made the call."""
        invocation = super().invoke(function, event)
        assert invocation.strand is not None
        machine = invocation.strand.home
        assert isinstance(machine, Machine)
        current = self.time._current
        actor = None if current is None else self._clients.get(self.time.process())
        if actor is None:
            self._driven.pop(machine, None)
        else:
            self._driven[machine] = actor
        return invocation

    def _touch(self, footprint: Footprint) -> None:
        actor = None if self.time._current is None else self._clients.get(self.time.process())
        if actor is not None:
            actor.touched |= footprint

    def _receive(self, url: str) -> list[dict[str, Any]]:
        batch = super()._receive(url)
        self._touch(received(url))
        return batch

    def _work(self, url: str, function: str, batch: list[dict[str, Any]]) -> None:
        super()._work(url, function, batch)
        self._touch(finished(url))

    def begin(self, operation: Operation, stop_at: int | None = None, fault: CallFault | None = None) -> Actor:
        """Begin an operation."""
        actor = Actor(operation, stop_at, fault)
        self.actors.append(actor)

        def act() -> None:
            operation.act(self)

        actor.strand = self.time.start_process(act)
        self._clients[actor.strand] = actor
        return actor

    def ask(self, method: str, path: str, body: object = None, **more: Any) -> Reply | None:  # noqa: ANN401 - of `Users.ask`
        """Send a request as part of an operation or of the preparation for it."""
        actor = self._clients.get(self.time.process())
        if actor is not None:
            actor.requests.append(actor.calls)
        reply = self.users.ask(method, path, body, **more)
        is_known = reply is None or not _is_malformed(reply)
        self.watching.check(is_known, f"{method} {path} is no request, so it meets nothing")
        if actor is not None:
            actor.replies.append(reply)
            actor.answered_at.append(self.time.now())
        return reply

    # Pull workers

    def lease(self, worker: str, seconds: int) -> Reply | None:
        """Let a pull worker request a task. The lease must have time left, and no other lease may be valid."""
        wanted = {"types": [PULLED], "wait_seconds": 0, "lease_seconds": seconds, "worker": worker}
        reply = self.ask("POST", "/v1/leases", wanted)
        for leased in reply.body["leases"] if reply is not None and reply.status == 200 else ():
            self._check_lease(leased)
        return reply

    def _check_lease(self, leased: Mapping[str, Any]) -> None:
        task_id, now, check = leased["task"]["id"], self.time.now(), self.watching.check
        ends_at = _instant(leased["expires_at"])
        check(ends_at > now, f"a lease of {task_id} was handed out {now - ends_at} ms after its end")
        other = self.leases.get(task_id)
        check(other is None or other.ends_at <= now, f"{task_id} was leased while {other} goes on")
        self.leases[task_id] = Leased(leased["id"], leased["task"]["fence"], ends_at)
        self.about["lease"], self.about["fence"] = leased["id"], leased["task"]["fence"]
        lock = leased["task"].get("lock")
        if lock is not None:
            mine = [
                each for each in self.leases if self.leases[each].ends_at > now and self._lock_of(each) == lock["key"]
            ]
            check(len(mine) <= lock.get("max_holders", 1), f"{mine} are leased under the lock {lock['key']}")

    def _lock_of(self, task_id: str) -> str | None:
        task = self.watching.record(task_id)
        return task.lock.key if task is not None and task.lock is not None else None

    def end_lease(self, verb: str, body: object = None) -> Reply | None:
        """Let a pull worker report on the task that it received last."""
        name = self.about.get("lease", "none")
        if verb != "heartbeat":
            # The worker does not continue, whatever the response is.
            self.leases = {task: each for task, each in self.leases.items() if each.name != name}
        reply = self.ask("POST", f"/v1/leases/{name}/{verb}", body)
        if verb == "heartbeat" and reply is not None and reply.status == 200:
            for task, each in self.leases.items():
                if each.name == name:
                    self.leases[task] = replace(each, ends_at=_instant(reply.body["expires_at"]))
        return reply

    # The end

    def settle(self) -> None:
        """Let all work end, by running the trigger, the workers, and a pull worker, and by resuming paused work."""
        self.behavior = "done"
        self.calm_at = self.time.now() if self.faulty else None
        self.received_from = self.time.now()
        # Work that began earlier was started by the pair, so it indicates nothing about usual delays.
        self.watching.lateness.clear()
        self.ticking = self.receiving = True
        for poller in self._pollers.values():
            self.time.nudge(poller)
        end = self.time.now() + SETTLED
        self._lift_stops()
        self._end_jobs()
        if "schedule" in self.about:
            self.time.run_until(self.time.now() + _GOES_ON)
        began = self.time.now()
        while self.time.now() < end and self._goes_on():
            open_tasks = self._open_tasks()
            held = [task for task in open_tasks if task.state == "paused" or task.requested_action == "pause"]
            if held and (len(held) == len(open_tasks) or self.time.now() > began + _HELD):
                self.check_promises()
                for task in held:
                    kind = "topologies" if isinstance(task.target, TopologyTarget) else "tasks"
                    self.do(partial(self.users.ask, "POST", f"/v1/{kind}/{task.id}/resume"))
            if open_tasks and all(map(is_waiting_for_turn, open_tasks)):
                self._let_lines_go_on()
            self.time.run_until(min((self.time.now() // MINUTE + 1) * MINUTE + 5 * SECOND, end))
            self._pull()
        self._let_executions_end()
        self.check_promises()
        self._check_ends()
        self.watching.check_end()

    def _let_lines_go_on(self) -> None:
        """Retry each task that has failed and blocks its line."""
        for task in list(self.watching.tasks()):
            if stops_line(task):
                self.do(partial(self.users.ask, "POST", f"/v1/tasks/{task.id}/retry"))

    def begin_execution(self, execution: Execution) -> None:
        """Run a job that a task has started.

        The job ends soon while the account settles, and before that only on request.
        """
        super().begin_execution(execution)
        if self.ticking:
            self.time.start_process(partial(self._end_soon, execution))

    def _lift_stops(self) -> None:
        """Remove the switches, and resume the subjects' rate."""
        for switch in ("all/all", f"type/{PULLED}", f"type/{works.PLAIN}"):
            if any(item["p"]["S"].startswith(schema.SWITCH_PREFIX) for item in self.table.every()):
                self.do(partial(self.users.ask, "DELETE", f"/v1/switches/{switch}"))
        if any(item["p"]["S"].startswith(schema.RATE_PREFIX) and is_controlled(item) for item in self.table.every()):
            self.do(partial(self.users.ask, "POST", "/v1/rates/crm/resume"))

    def _end_jobs(self) -> None:
        """End the running jobs, except the jobs that should be stopped."""
        for job in self.executions_of_tasks.running():
            task = self.watching.record(str(task_of_job(job.name)))
            if task is not None and task.requested_action == "cancel" and not self.faulty:
                self.time.start_process(partial(self._check_stopped, job))
            else:
                self.end_execution(job, Status.SUCCEEDED, "7")
        for service in self.job_services.values():
            for name in list(service.running()):
                self.end_job(service, name, well=True)
        for arn in [arn for arn, each in self.ecs.tasks.items() if each["lastStatus"] == "RUNNING"]:
            self.ecs.end(arn, 0)
            self.send_job_event(self.ecs.tasks[arn]["startedBy"])

    def begin_job(self, service: FakeJobs, job: str) -> None:
        """Run a job of another service; while the account settles, the job ends at once."""
        super().begin_job(service, job)
        if self.ticking:
            self.time.start_process(partial(self.end_job, service, job, well=True))

    def _check_stopped(self, job: Execution) -> None:
        """Check that the job of a task with a cancel request is stopped soon; the job may then end in any state."""
        self.take(_HELD)
        self.watching.check(job not in self.executions_of_tasks.running(), f"{job.name} was not stopped")
        self.end_execution(job, Status.SUCCEEDED, "7")

    def _end_soon(self, execution: Execution) -> None:
        self.take(SECOND)
        self.end_execution(execution, Status.SUCCEEDED, "7")

    def _goes_on(self) -> bool:
        """Whether some work has not ended yet."""
        return bool(self._open_tasks()) or bool(self.sqs.queues[self.intake].messages) or self.bulk.are_running

    def _let_executions_end(self) -> None:
        """Let executions end that lost their runs to other executions and that wait until their states poll again."""
        self.ticking = False
        self.run_until(lambda: not self.states.running(), EXECUTIONS_ENDED)

    def _is_bulk_running(self) -> bool:
        operation = self.bulk_operation()
        return operation is not None and operation.is_running

    def bulk_operation(self) -> BulkOperation | None:
        """The subject's bulk operation, or `None` if the subject has no bulk operation."""
        operation_id = self.about.get("bulk")
        store = DynamoBulkStore(self.dynamodb, "tasks")  # type: ignore[arg-type]  # a fake
        return store.read(TaskId(operation_id)) if operation_id not in {None, "none"} else None

    def invoke_later(self, function: str, event: Mapping[str, Any]) -> None:
        """Begin an invocation soon.

        Until the account settles, a subject's bulk operation runs only as a step of the pair.
        """
        if function != "bulk" or "bulk" not in self.about or self.ticking:
            super().invoke_later(function, event)

    def _check_ends(self) -> None:
        """Check that the subject ends in the expected state, unless a user has ended it."""
        self.watching.check(not self._is_bulk_running(), "the bulk operation goes on for ever")
        self._check_job_heard()
        wanted = self.about.get("ends")
        ended_by = [actor for actor in self.actors if actor.operation.name in ENDING]
        # A repeated request may have taken effect and then been refused, because later writes overwrite its nonce.
        if wanted is None or any(
            actor.fault == "resent" or not {ACCEPTED, UNKNOWN}.isdisjoint(actor.outcome) for actor in ended_by
        ):
            return
        # A slow worker may lose a node's only attempt.
        if self.faulty and any(each.error and each.error.type == "WorkerLost" for each in self.watching.tasks()):
            return
        task = self.watching.record(self.about["task"])
        told = f"{task.state}, {task.error}" if task is not None else "gone"
        self.watching.check(task is not None and task.state == wanted, f"it should be {wanted}, and is {told}")

    def _check_job_heard(self) -> None:
        """Check that an attempt ends as soon as the event of its job's end arrives."""
        ended_at = self.about.get("job_ended_at", 0)
        task = self.watching.record(self.about["task"]) if ended_at and not self.faulty else None
        for line in task.attempt_history[:1] if task is not None else ():
            late = (line.started_at or 0) + line.took - ended_at
            self.watching.check(late <= MINUTE, f"the end of a job was heard {late} ms late")

    def check_promises(self) -> None:
        """Check that an accepted effect is true until somebody requests another effect."""
        if self._has_checked:
            return
        self._has_checked = True
        for actor in self.actors:
            if actor.operation.promise is not None and ACCEPTED in actor.outcome:
                actor.operation.promise(self, actor.replies)

    def _pull(self) -> None:
        queue = next(each for each in self.sqs.queues.values() if each.name == "pulled")
        while queue.visible_at(self.time.now()) == self.time.now():
            reply = self.do(partial(self.lease, "Z", LEASE_SECONDS))
            if reply is None or reply.status != 200 or not reply.body["leases"]:
                return
            self.do(partial(self.end_lease, "complete", {"result": 1}))

    def run_until(self, is_so: Callable[[], object], within: Millis = LONGEST) -> bool:
        """Let time pass until a condition is true."""
        return self.time.run_while(lambda: not is_so(), self.time.now() + within)

    def do(self, operation: Callable[[], T]) -> T:
        """Run an operation as a client would, and let time pass until the operation is done."""
        results: list[T] = []
        strand = self.time.start_process(lambda: results.append(operation()))
        assert self.run_until(lambda: strand.done)
        return results[0]

    def point(self, what: str) -> None:
        """Mark a point between two steps of AWS itself."""
        actor = self._clients.get(self.time.process())
        if actor is not None:
            self._at_call(actor, what, None)

    def _before(self, call: Call) -> None:
        actor = self._driven.get(call.machine)
        if actor is not None:
            self._at_call(actor, f"{call.service}.{call.operation} {_key_of(call)}", call)

    def _at_call(self, actor: Actor, what: str, call: Call | None) -> None:
        is_beside = bool(actor.made) and actor.made[-1][0] == self.time.now()
        actor.made.append((self.time.now(), what))
        footprint, actor.touched = footprint_of(call) | actor.touched, frozenset()
        if is_beside:
            # The call began at the same time as the previous call, in another thread, so both calls count as one step.
            actor.footprints[-1] |= footprint
            self._block(actor)
            return
        actor.footprints.append(footprint)
        number, actor.calls = actor.calls, actor.calls + 1
        if number == actor.stop_at:
            if actor.fault is None or call is None:
                actor.is_stopped = True
            else:
                FAULTS[actor.fault.value](self, actor, call)
        self._block(actor)

    def _block(self, actor: Actor) -> None:
        while actor.is_stopped:
            actor.blocked.append(self.time.current())
            self.take(_FAR)

    def stop(self, actor: Actor) -> None:
        """Stop an actor at this point until the actor may continue."""
        actor.is_stopped = True
        self._block(actor)

    def let_on(self, actor: Actor) -> None:
        """Let an actor continue."""
        actor.is_stopped = False
        blocked, actor.blocked = actor.blocked, []
        for strand in blocked:
            if not strand.done:
                self.time.nudge(strand)

    # The behavior of targets

    def _behave(self, phase: str, context: Context | Asked) -> object:
        if phase == "run":
            return getattr(self, f"_{self.behavior}")(context)
        return "done"

    def _done(self, _context: Context | Asked) -> object:
        return "done"

    def _fails(self, _context: Context | Asked) -> object:
        raise Boom("as it should")

    def _accepts(self, _context: Context | Asked) -> object:
        return Accepted()

    def _listens(self, context: Context | Asked) -> object:
        """Work until a request to stop or pause arrives, for at most two heartbeats."""
        until = self.time.now() + 22 * SECOND
        while self.time.now() < until:
            if context.requested_action == "pause":
                raise AttemptPaused({"row": 1})
            if context.requested_action == "cancel":
                raise AttemptCancelled
            self.take(SECOND)
        return "done"


def _instant(text: str) -> Millis:
    return from_datetime(datetime.fromisoformat(text))


def _made_unheard(world: World, call: Call) -> None:
    """Make a call of any kind whose response does not arrive."""
    with suppress(ClientError):
        getattr(_fake_of(world, call), call.operation)(**call.request)


def _fake_of(world: World, call: Call) -> object:
    """The fake service for a call; executions started by tasks are separate from executions of topologies."""
    if call.service == "states" and call.request.get("stateMachineArn") == JOBS:
        return world.executions_of_tasks
    return world.job_services.get(call.service) or getattr(world, _SERVICES.get(call.service, call.service))


def _slowed(world: World, actor: Actor, call: Call) -> None:
    world.stop(actor)
    world.take(_API_SLOWNESS if call.machine.function == "api" else _SLOWNESS)
    call.machine.live()


def _refused(world: World, actor: Actor, call: Call) -> None:
    world.stop(actor)
    call.refuse()


def _lost(world: World, actor: Actor, call: Call) -> None:
    _made_unheard(world, call)
    world.stop(actor)
    world.take(_TIMEOUT)
    raise ReadTimeoutError(endpoint_url=call.service)


def _resent(world: World, actor: Actor, call: Call) -> None:
    if call.service in {"ecs", *world.job_services}:
        # The SDK does not repeat a request to start a job if the service would then start another job.
        return
    _made_unheard(world, call)
    world.stop(actor)


def _late(world: World, actor: Actor, call: Call) -> None:
    actor.late = partial(_made_late, world, call)
    world.take(_TIMEOUT)
    raise ReadTimeoutError(endpoint_url=call.service)


def _made_late(world: World, call: Call) -> None:
    world.expiries.may_stay = call.request.get("UpdateExpression") == "REMOVE #ttl"
    _made_unheard(world, call)


def _dies(world: World, actor: Actor, call: Call) -> None:
    del world, actor
    call.machine.die()


FAULTS: dict[str, Callable[[World, Actor, Call], None]] = {
    "slow": _slowed,
    "refused": _refused,
    "lost": _lost,
    "resent": _resent,
    "late": _late,
    "dies": _dies,
}
"""The action that carries out each fault at a call."""


def _key_of(call: Call) -> str:
    request = call.request
    key = request.get("Key") or request.get("Item")
    if key:
        return f"{key['p']['S']} {key['s']['S']}" if "p" in key else str(key)
    if "ExpressionAttributeValues" in request:
        return str(request["ExpressionAttributeValues"].get(":p", {}).get("S", ""))
    return str(request.get("QueueUrl", request.get("name", ""))).rpartition("/")[2]
