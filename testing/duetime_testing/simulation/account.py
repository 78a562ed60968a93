"""Simulates an account in virtual time, which invokes the unmodified functions over fakes of AWS services."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import DAY, MINUTE, SECOND, Millis
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from duetime_testing.fakes.connections import FakeConnections
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.ecs import FakeEcs
from duetime_testing.fakes.errors import Exceptions
from duetime_testing.fakes.events import FakeEvents
from duetime_testing.fakes.job_services import FakeBatch, FakeCodeBuild, FakeDurableFunctions, FakeGlue, FakeJobs
from duetime_testing.fakes.s3 import FakeS3
from duetime_testing.fakes.sqs import FakeSQS, Held, Queue
from duetime_testing.fakes.stepfunctions import Execution, FakeStepFunctions, Status
from duetime_testing.fakes.task_table import new_table
from duetime_testing.simulation.code_versions import Generation
from duetime_testing.simulation.faults import Fault
from duetime_testing.simulation.lambda_code import handler_of
from duetime_testing.simulation.machines import SKEW, Machine, MortalTargets
from duetime_testing.simulation.state_machine import StateFailed, StateMachine
from duetime_testing.simulation.virtual_time import VirtualTime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.adapters.targets import Targets
    from duetime.adapters.targets.http_messages import Call as HttpCall
    from duetime.adapters.targets.http_messages import HttpResponse
    from duetime.domain.tasks.allowed_targets import TargetRules
    from duetime.domain.tasks.type_defaults import HandlerDescription
    from duetime_testing.simulation.faults import Call
    from duetime_testing.simulation.virtual_time import Strand

TIMEOUTS = {
    "api": 29 * SECOND,
    "trigger": 5 * MINUTE,
    "worker": 15 * MINUTE,
    "deadletter": MINUTE,
    "topology": 5 * MINUTE,
    "intake": 30 * SECOND,
    "bulk": 15 * MINUTE,
    "broadcast": MINUTE,
    "archive": 5 * MINUTE,
    "watch": 29 * SECOND,
    "handlers": 15 * MINUTE,
    "attempts": MINUTE,
}
"""The timeout of each function in milliseconds, as in the deployment's settings."""
INTAKE_OWNER = "local"
"""The owner of tasks that are created from events; the account's users have the same owner and can follow the tasks."""
START: Millis = 1_795_228_387_250
"""The default start time, 2026-11-21T02:33:07.250Z, in milliseconds since 1970."""
MOST_WORKERS = 60
"""Maximum concurrent invocations per queue, which is enough to run all tasks of a large graph at once."""
_RECEIVED = 10
"""Maximum number of messages in one request (Source: SQS API Reference, ReceiveMessage)."""
LEASE_SECONDS = 30
LATE_WRITES = 0.4
"""The minimum share of late arrivals (`Fault.LATE`) among the faults in `update_item` calls."""
_MILD_FAULTS, _MILD_TIME, _MILD_RATE = 2, 5 * MINUTE, 0.4
_USUAL_LAG = 20
"""The usual lag of an eventually consistent read, in milliseconds."""
_NEVER = 36_500 * DAY
_STATE_MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:topologies"
_ASYNC_TRIES = 3
"""How many times Lambda attempts an asynchronous invocation (Source: AWS Lambda Developer Guide, "Asynchronous
invocation")."""


@dataclass(frozen=True)
class Context:
    """The context object that Lambda passes to an invocation."""

    aws_request_id: str
    function_name: str = "trigger"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:trigger"


@dataclass
class Invocation:
    """One invocation and its result.

    Attributes:
        answer: the function's return value; `None` if it did not return.
        failed: whether the function raised an exception, timed out, or ran on a machine that died.
        version: the function version that was invoked.
    """

    function: str
    event: Mapping[str, Any]
    strand: Strand | None = None
    answer: Any = None
    failed: bool = True
    version: str = ""


EGRESS = "egress"


@dataclass
class FakeLambda:
    """A fake of Lambda with the calls that functions make."""

    account: Account
    exceptions: Exceptions = field(default_factory=Exceptions)

    def invoke(self, *, FunctionName: str, Payload: bytes, InvocationType: str = "RequestResponse") -> dict[str, Any]:
        """Invoke a function, and wait for it unless the invocation is asynchronous."""
        name, _, _ = FunctionName.partition(":")
        if InvocationType != "Event":
            end = self.account.wait_for(self.account.invoke(name, json.loads(Payload)))
            failed = {"FunctionError": "Unhandled"} if end.failed else {}
            payload = BytesIO(json.dumps(end.answer).encode())
            return {"StatusCode": 200, "Payload": payload, "ExecutedVersion": end.version, **failed}
        if name == EGRESS:
            self.account.fetched += [str(call["url"]) for call in json.loads(Payload)["calls"]]
            return {"StatusCode": 202}
        self.account.invoke_later(name, json.loads(Payload))
        return {"StatusCode": 202}


class Account:
    """All deployed resources of an account, and its virtual time.

    Attributes:
        fetched: URLs that the egress function was invoked asynchronously to call.
        rate: the probability of a fault in each call.
        is_mild: whether to inject only faults that must not make tasks late.
        calls: number of AWS calls.
        faults: number of injected faults by kind.
        lines: the lines of the trace.
        ticking: whether EventBridge Scheduler invokes the trigger.
        receiving: whether Lambda polls the queues.
        generation: number of deployments after the first.
        code: the code version that was deployed last.
        reordering: the probability that a message is delivered late or twice; even if 0, the order of messages is
            random.
        delivery: minimum and maximum milliseconds until a sent message can be received. The time is drawn for each
            message from a separate random source; a poller adds up to a quarter of the maximum.
        hot_until: the throttled partitions of the table, with the time when the throttling ends.
        sends_fail_until: time until which the queues reject messages.
        creations_fail_until: time until which the table rejects new records from the API.
        unread_until: the queues from which no messages are received, with the time when receiving resumes.
        most_workers: maximum concurrent invocations per queue.
        worker_batch: maximum number of messages in a worker's invocation, and milliseconds that the poller waits for
            them.
        endpoint_down_until: time until which the tasks' endpoint responds with errors.
        before_call: a scenario's hook that is called before each AWS call and can let time pass, reject the call, or
            end the process.
        after_call: hook that is called after an AWS call, before the response arrives.
        heard: hook that is called when a function calls an endpoint outside AWS.
        handlers_package: the package that registers the Python handlers.
        pulled_types: the task types that pull workers lease.
        aws_targets: the ARNs that tasks are allowed to call.
    """

    handlers_package = ""
    pulled_types: tuple[str, ...] = ()
    aws_targets = ""
    worker_batch: tuple[int, Millis] = _RECEIVED, 0
    most_workers = MOST_WORKERS

    def __init__(
        self,
        seed: int,
        *,
        rate: float = 0.0,
        shards: int = 2,
        most_receives: int = 1000,
        start: Millis | None = None,
        time: VirtualTime | None = None,
    ) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable on purpose
        drawn = START + self.random.randrange(MINUTE)
        # Accounts in several Regions share a virtual time.
        self.time = time or VirtualTime(drawn if start is None else start)
        self.rate = rate
        self.reordering = rate
        self.delivery: tuple[Millis, Millis] = 0, 0
        self._transits = random.Random(f"{seed} transit")  # noqa: S311 - repeatable on purpose
        self.hot_until: dict[str, Millis] = {}
        self.sends_fail_until: Millis = 0
        self.creations_fail_until: Millis = 0
        self.unread_until: dict[str, Millis] = {}
        self.endpoint_down_until: Millis = 0
        self.before_call: Callable[[Call], None] | None = None
        self.after_call: Callable[[Call], None] | None = None
        self.heard: Callable[[HttpCall], None] | None = None
        self.calls = 0
        self.faults: dict[str, int] = {}
        self.lines: list[tuple[Any, ...]] = []
        self._ticking = self.receiving = True
        self.is_mild = False
        self._failed_at: list[Millis] = []
        self.generation = 0
        self.code = Generation.PRESENT
        self.shards = shards
        self.machines: list[Machine] = []
        self._machines_made = 0
        self._invocations = 0
        self.dynamodb = FakeDynamoDB(self.time.now)
        self.dynamodb.lag = self._lag
        self.dynamodb.processed = self._processed
        self.dynamodb.page = self.random.choice([2, 7, 1000])
        self.sqs = FakeSQS(self.time.now)
        self.sqs.pick, self.sqs.changed, self.sqs.wait = self._pick, self._changed, self._long_poll
        self.sqs.transit = lambda: self._transit(*self.delivery)
        self.s3 = FakeS3()
        self.connections, self.event_bus = FakeConnections(), FakeEvents()
        self.lambdas = FakeLambda(self)
        self.states = FakeStepFunctions(self.time.now)
        self.states.forgets = self._forgets
        self.state_machine = StateMachine(self.time, self.states, self._invoke_state)
        self.states.begin = self.state_machine.begin
        self.executions_of_tasks = FakeStepFunctions(self.time.now)
        self.executions_of_tasks.begin = self.begin_execution
        self.ecs = FakeEcs(self.time.now)
        self.ecs.begin, self.ecs.over = self.begin_container, self.send_job_event
        self.job_services: dict[str, FakeJobs] = {
            "batch": FakeBatch(self.time.now),
            "codebuild": FakeCodeBuild(self.time.now),
            "glue": FakeGlue(self.time.now),
            "lambda": FakeDurableFunctions(self.time.now),
        }
        for service in self.job_services.values():
            service.begin, service.over = self.begin_job, self._tell_of_job
        self._pollers: dict[str, Strand] = {}
        self._listeners: dict[str, list[tuple[Strand, int]]] = {}
        self._deploy(most_receives)

    def _deploy(self, most_receives: int) -> None:
        table, bucket = new_table(self.dynamodb), "contents"  # type: ignore[arg-type]  # stands in for a client
        # The table's name is random and does not depend on the seed, so the table gets a fixed name.
        self.dynamodb.tables = {"tasks": self.dynamodb.tables[table]}
        self.s3.create_bucket(Bucket=bucket)
        retention = {"MessageRetentionPeriod": str(14 * DAY // SECOND)}
        dead = self.sqs.create_queue(QueueName="dead", Attributes=retention)["QueueUrl"]
        redrive = {"deadLetterTargetArn": self.sqs.queues[dead].arn, "maxReceiveCount": most_receives}
        attributes = {"VisibilityTimeout": "900", "RedrivePolicy": json.dumps(redrive)}
        self.queue_attributes = attributes
        urls = {
            each: self.sqs.create_queue(QueueName=each.value, Attributes=attributes)["QueueUrl"] for each in Priority
        }
        self.sqs.create_queue(QueueName="sink")
        rejects = self.sqs.create_queue(QueueName="rejects")["QueueUrl"]
        visibility = {"VisibilityTimeout": str(TIMEOUTS["intake"] // SECOND + 6)}
        self.intake = self.sqs.create_queue(QueueName="intake", Attributes=visibility)["QueueUrl"]
        self.pulled = self.sqs.create_queue(QueueName="pulled", Attributes=attributes)["QueueUrl"]
        self.fetched: list[str] = []
        self.environ: dict[str, str] = {
            Variable.TABLE: "tasks",
            Variable.BUCKET: bucket,
            **{variable: urls[priority] for priority, variable in QUEUE_VARIABLES.items()},
            Variable.SHARDS: str(self.shards),
            Variable.AUTHENTICATION: "none",
            Variable.LEASE_SECONDS: str(LEASE_SECONDS),
            Variable.HANDLERS: self.handlers_package,
            Variable.OPERATORS: "*",
            Variable.ADMINS: "*",
            Variable.API_KEYS: "on",
            Variable.PULLED_QUEUES: json.dumps(dict.fromkeys(self.pulled_types, self.pulled)),
            Variable.PULLERS: json.dumps({each: ["*"] for each in self.pulled_types}),
            Variable.TOPOLOGY_MACHINE: _STATE_MACHINE,
            Variable.AWS_TARGETS: self.aws_targets,
            Variable.INTAKE_OWNER: INTAKE_OWNER,
            Variable.INTAKE_REJECTS: rejects,
            Variable.API_FUNCTION: "api",
            Variable.BULK_FUNCTION: "bulk",
            Variable.SUMMARY_SPREAD: "2",
            Variable.TASK_LISTS: "1",
            Variable.SUMMARY_RECOUNT_MEGABYTES: "100",
            Variable.API_URL: "https://api.example.org",
            Variable.WATCH_URL: "wss://live.example.org/live",
        }
        for url in urls.values():
            self._pollers[url] = self.time.start_process(partial(self._poll, url, "worker"))
        self._pollers[self.intake] = self.time.start_process(partial(self._poll, self.intake, "intake"))
        self._pollers[dead] = self.time.start_process(partial(self._poll, dead, "deadletter"))
        self._ticker = self.time.start_process(self._tick)

    def stand_still(self) -> None:
        """Stop the trigger and the delivery of messages, but keep serving API requests."""
        self.receiving = False
        self.time.kill(self._ticker)

    # The methods below are used by simulated calls and faults.

    def travel(self) -> None:
        """Wait while a request or a response is in transit."""
        self.take(self.random.randrange(1, 9))

    def take(self, milliseconds: Millis) -> None:
        """Wait for a number of milliseconds in virtual time."""
        self.time.sleep_until(self.time.now() + milliseconds)

    def fault_for(self, machine: Machine, operation: str) -> Fault | None:
        """Draw the fault for the next call; `None` if the call has no fault."""
        if self.is_mild:
            return self._mild_fault_for(machine, operation)
        if self.random.random() >= self.rate:
            return None
        # Late writes are made frequent to test that conditions reject a write that arrives after other changes.
        is_late = operation == "update_item" and self.random.random() < LATE_WRITES
        fault = Fault.LATE if is_late else self.random.choice(list(Fault))
        self.count(fault.name.lower())
        return fault

    def _mild_fault_for(self, machine: Machine, operation: str) -> Fault | None:
        """Draw a fault when the trigger sends messages; the look-ahead makes up for two faults in five minutes."""
        if machine.function != "trigger" or operation != "send_message_batch":
            return None
        now = self.time.now()
        self._failed_at = [at for at in self._failed_at if at > now - _MILD_TIME]
        if len(self._failed_at) >= _MILD_FAULTS or self.random.random() >= _MILD_RATE:
            return None
        self._failed_at.append(now)
        fault = self.random.choice([Fault.THROTTLED, Fault.AWAY, Fault.PARTIAL])
        self.count(fault.name.lower())
        return fault

    def is_throttled(self, call: Call) -> bool:
        """Whether a call is throttled, because its partition is hot or its queue or table currently rejects calls."""
        if call.operation == "send_message_batch" and self.sends_fail_until > self.time.now():
            self.count("send refused")
            return True
        partition = call.partition
        is_creation = call.machine.function == "api" and call.operation == "put_item" and (partition or "")[:2] == "20"
        if is_creation and self.creations_fail_until > self.time.now():
            self.count("creation refused")
            return True
        hot = partition is not None and self.hot_until.get(partition, 0) > self.time.now()
        if hot:
            self.count("hot partition")
            self.trace(call.machine, call.operation, "is throttled", partition)
        return hot

    def count(self, fault: str) -> None:
        """Count an injected fault."""
        self.faults[fault] = self.faults.get(fault, 0) + 1

    def job_raised(self, machine: Machine, error: Exception) -> None:
        """Record an exception from a process's background job, because background jobs must not raise exceptions."""
        self.trace(machine, "raised", str(error))

    def ends(self, machine: Machine) -> None:
        """A hook that is called when a process ends itself."""

    def respond(self, call: HttpCall) -> HttpResponse:
        """Respond to an HTTP call of a task or callback; subclasses override this method."""
        raise NotImplementedError

    def check_grant(self, function: str, service: str, operation: str, request: Mapping[str, Any]) -> None:
        """Reject a call that the function's role does not allow; subclasses with roles override this method."""

    def targets(self, machine: Machine, targets: Targets) -> Targets:
        """The targets of a process."""
        return MortalTargets(targets.handlers, targets.http, targets.aws, targets.topologies, targets.events, machine)

    def target_rules(self, rules: TargetRules) -> TargetRules:
        """The targets that the settings allow."""
        return rules

    def handler_descriptions(self, known: Mapping[str, HandlerDescription]) -> Mapping[str, HandlerDescription]:
        """The descriptions of the handlers that the deployment knows."""
        return known

    @property
    def ticking(self) -> bool:
        """Whether the trigger is invoked each minute."""
        return self._ticking

    @ticking.setter
    def ticking(self, value: bool) -> None:
        self._ticking = value
        self.time.nudge(self._ticker)

    def is_tick_needed(self) -> bool:
        """Whether the trigger's next invocation could have an effect."""
        return True

    def trace(self, who: object, *what: Any) -> None:  # noqa: ANN401 - whatever is worth a line
        """Add an event to the trace; the event is formatted only when the trace is read."""
        self.lines.append((self.time.now(), str(who), *what))

    def _lag(self) -> Millis:
        lag = self.random.choice([0, 20, 200, 2 * SECOND]) if self.rate else self.random.choice([0, 20])
        if lag > _USUAL_LAG:
            self.count("stale read")
        return lag

    def _processed(self, asked: int) -> int:
        if asked < 2 or self.random.random() >= self.rate:
            return asked
        self.count("keys unprocessed")
        return self.random.randrange(1, asked)

    # Lambda.

    def invoke(self, function: str, event: Mapping[str, Any]) -> Invocation:
        """Start an invocation now, on an idle or new machine."""
        invocation = Invocation(function, event)
        machine = self._free_machine(function)
        self._invocations += 1
        if function == "trigger" and any(each.function == function and each.strand for each in self.machines):
            self.count("ticks overlap")
        context = Context(f"{self._invocations:08x}-request")
        invocation.version = machine.environ[Variable.FUNCTION_VERSION]
        machine.strand = invocation.strand = self.time.start_process(partial(self._run, machine, invocation, context))
        machine.strand.home = machine
        return invocation

    def _run(self, machine: Machine, invocation: Invocation, context: Context) -> None:
        try:
            invocation.answer = handler_of(invocation.function)(invocation.event, context)
            invocation.failed = False
        except Exception as error:  # noqa: BLE001 - Lambda reports whatever a function raises
            self.trace(machine, "raised", str(error))
        finally:
            machine.strand = None

    def _free_machine(self, function: str) -> Machine:
        self.machines = [machine for machine in self.machines if not machine.dead]
        free = [each for each in self.machines if each.function == function and each.strand is None]
        # Machines of an earlier deployment finish their invocation and get no new invocations.
        current = [each for each in free if each.generation == self.generation]
        if current:
            return self.random.choice(current)
        self._machines_made += 1
        skew = self.drawn_skew() if self.rate else 0
        if skew:
            self.count("clock skewed")
        # Each deployment publishes a new version of each function.
        own: dict[str, str] = {Variable.FUNCTION_NAME: function, Variable.FUNCTION_VERSION: str(self.generation + 1)}
        environ = {**self.environ, **own}
        made = Machine(self, function, self._machines_made, skew, self.generation, environ, self.code)
        self.machines.append(made)
        return made

    def drawn_skew(self) -> Millis:
        """Draw a clock's skew, which is the maximum in either direction for half of the clocks."""
        return self.random.choice([-SKEW, SKEW, *2 * [self.random.randint(-SKEW, SKEW)]])

    def wait_for(self, invocation: Invocation) -> Invocation:
        """Wait for an invocation to end, and kill its machine if the function times out."""
        strand = invocation.strand
        assert strand is not None
        until = self.time.now() + TIMEOUTS[invocation.function]
        while not strand.done and self.time.now() < until:
            self.time.wait([strand], until)
        if not strand.done:
            self.trace(invocation.function, "timed out")
            machine = strand.home
            assert isinstance(machine, Machine)
            machine.die()
            # A killed strand ends only when the running strand waits.
            self.take(1)
        return invocation

    def invoke_later(self, function: str, event: Mapping[str, Any]) -> None:
        """Queue an asynchronous invocation, which is retried after a failure and sometimes duplicated."""

        def run() -> None:
            self.take(self.random.randrange(5, 200))
            for number in range(_ASYNC_TRIES):
                if not self.wait_for(self.invoke(function, event)).failed:
                    return
                self.take(MINUTE * (number + 1))

        self.time.start_process(run)
        if self.random.random() < self.reordering:
            self.count("invoked twice")
            self.time.start_process(run)

    # Step Functions.

    def _invoke_state(self, payload: Mapping[str, Any]) -> Any:  # noqa: ANN401 - what the function answers
        """Invoke the function for a state; occasionally, the invocation is duplicated, or its response is lost."""
        self.travel()
        if self.random.random() < self.reordering:
            self.count("state invoked twice")
            self.time.start_process(partial(self._invoke_beside, payload))
        end = self.wait_for(self.invoke("topology", payload))
        self.travel()
        if end.failed or self.random.random() < self.reordering:
            self.count("state missed" if not end.failed else "state failed")
            raise StateFailed("Lambda.Unknown")
        return end.answer

    def _invoke_beside(self, payload: Mapping[str, Any]) -> None:
        self.take(self.random.choice([1, 500, 5 * SECOND]))
        self.wait_for(self.invoke("topology", payload))

    # Methods for jobs that AWS runs for tasks.

    def begin_execution(self, execution: Execution) -> None:
        """Begin an execution that a task has started; the execution runs until a test ends it."""
        execution.over = lambda: self.send_job_event(execution.name)

    def begin_container(self, arn: str) -> None:
        """Begin a container that a task has started; the container runs until a test ends it."""

    def begin_job(self, service: FakeJobs, job: str) -> None:
        """Begin another service's job that a task has started; the job runs until a test ends it."""

    def end_job(self, service: FakeJobs, job: str, *, well: bool) -> None:
        """End a job that a task has started, and send the job's event."""
        if service.is_running(job):
            service.end(job, well=well)
            self._tell_of_job(service, job)

    def _tell_of_job(self, service: FakeJobs, job: str) -> None:
        self.send_job_event(service.event(job))

    def end_execution(self, execution: Execution, status: Status, output: str = "") -> None:
        """End an execution that a task has started, and send the execution's event."""
        if execution.status is Status.RUNNING:
            execution.output = output
            execution.end(status, self.time.now(), "" if status is Status.SUCCEEDED else "Boom")
            self.send_job_event(execution.name)

    def send_job_event(self, name: str | list[str]) -> None:
        """Send an EventBridge rule's message about an ended job; the message can be lost, late or duplicated."""
        body = json.dumps({"j": name})
        url = self.environ[QUEUE_VARIABLES[Priority.HIGH]]
        if self.random.random() < self.reordering * 10:
            self.count("event lost")
            return
        for _ in range(1 + (self.random.random() < self.reordering * 10)):
            self.sqs.send_message(QueueUrl=url, MessageBody=body)

    def _forgets(self) -> bool:
        forgotten = self.random.random() < self.reordering / 2
        if forgotten:
            self.count("token lost")
        return forgotten

    def _tick(self) -> None:
        while True:
            if not self.ticking:
                self.count("ticks stopped")
                self.time.sleep_until(self.time.now() + _NEVER)
            elif self.is_tick_needed():
                self._tick_once()
            self.wait_for_tick()

    def wait_for_tick(self) -> None:
        """Wait until the trigger's next invocation."""
        at = (self.time.now() // MINUTE + 1) * MINUTE
        while self.time.now() < at:
            self.time.sleep_until(at)

    def _tick_once(self) -> None:
        if self.random.random() < self.reordering * 10:
            self.count("tick missed")
            return
        self.invoke_later("trigger", {})
        if self.random.random() < self.reordering * 10:
            self.count("tick doubled")
            self.invoke_later("trigger", {})

    # Polling of queues.

    def _transit(self, shortest: Millis, longest: Millis) -> Millis:
        return self._transits.randint(shortest, longest) if longest else 0

    def _poll(self, url: str, function: str) -> None:
        running: list[Strand] = []
        while True:
            running = [each for each in running if not each.done]
            unread_until = self.unread_until.get(url, 0)
            may_receive = self.receiving and len(running) < self.most_workers and self.time.now() >= unread_until
            batch = self._gather(url, function) if may_receive else []
            if batch:
                running.append(self.time.start_process(partial(self._work, url, function, batch)))
                running[-1].waiters.append(self._pollers[url])
                continue
            now = self.time.now()
            times = [each.visible_at for each in self.sqs.queues[url].messages if each.visible_at > now]
            if unread_until > now:
                times = [unread_until]
            self.time.sleep_until(min(times, default=now + DAY))

    def _gather(self, url: str, function: str) -> list[dict[str, Any]]:
        """Receive up to ten messages for one invocation; a worker can receive more in its batching window."""
        batch = self._receive(url)
        size, window = self.worker_batch if function == "worker" else (_RECEIVED, 0)
        until = self.time.now() + window
        while batch and len(batch) + _RECEIVED <= size and (now := self.time.now()) < until:
            if more := self._receive(url):
                batch += more
                continue
            times = [each.visible_at for each in self.sqs.queues[url].messages if each.visible_at > now]
            self.time.sleep_until(min([*times, until]))
        return batch

    def _receive(self, url: str) -> list[dict[str, Any]]:
        answer = self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=_RECEIVED, MessageSystemAttributeNames=["All"]
        )
        return list(answer.get("Messages", []))

    def _work(self, url: str, function: str, batch: list[dict[str, Any]]) -> None:
        queue = self.sqs.queues[url]
        records = [
            {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": message["Attributes"],
                "messageAttributes": {},
                "md5OfBody": message["MD5OfBody"],
                "eventSource": "aws:sqs",
                "eventSourceARN": queue.arn,
                "awsRegion": "us-east-1",
            }
            for message in batch
        ]
        if wait := self._transit(0, self.delivery[1] // 4):
            self.take(wait)
        end = self.wait_for(self.invoke(function, {"Records": records}))
        if end.failed:
            return
        kept = {failure["itemIdentifier"] for failure in end.answer["batchItemFailures"]}
        self.travel()
        done = [
            {"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]}
            for n, m in enumerate(batch)
            if m["MessageId"] not in kept
        ]
        if done and self.random.random() >= self.reordering:
            for first in range(0, len(done), _RECEIVED):
                self.sqs.delete_message_batch(QueueUrl=url, Entries=done[first : first + _RECEIVED])

    def _pick(self, messages: list[Held]) -> list[Held]:
        """Return the messages in random order, duplicating or delaying some of them."""
        came = list(messages)
        self.random.shuffle(messages)
        if not self.reordering:
            return messages
        if came != messages:
            self.count("messages reordered")
        picked = []
        for each in messages:
            draw = self.random.random()
            if draw < self.reordering:
                self.count("message delayed")
                each.visible_at = self.time.now() + self.random.choice([300, 5 * SECOND, MINUTE])
                continue
            picked.append(each)
            if draw < 2 * self.reordering:
                self.count("message doubled")
                self.time.start_process(partial(self._deliver_again, each))
        return picked

    def deliver_in_flight_again(self) -> None:
        """Redeliver all messages in flight to other workers, after random delays."""
        for queue in self.sqs.queues.values():
            for held in queue.messages:
                if held.received and held.visible_at > self.time.now():
                    self.count("message doubled")
                    self.time.start_process(partial(self._deliver_again, held))

    def deliver_at(self, task_id: str, at: Millis) -> None:
        """Wait until a given time, and then redeliver a task's messages in flight to other workers."""
        self.time.sleep_until(at)
        for queue in self.sqs.queues.values():
            for held in queue.messages:
                if held.received and held.visible_at > self.time.now() and task_id in held.body:
                    self.count("message doubled")
                    held.visible_at = self.time.now()
                    self._changed(queue, held.visible_at)

    def _deliver_again(self, held: Held) -> None:
        """Make a received message visible again soon."""
        self.take(self.random.choice([1, 50, *range(3 * SECOND, 40 * SECOND, 3 * SECOND)]))
        for queue in self.sqs.queues.values():
            if held in queue.messages:
                held.visible_at = self.time.now()
                self._changed(queue, held.visible_at)

    def _changed(self, queue: Queue, at: Millis) -> None:
        del at
        if (poller := self._pollers.get(queue.url)) is not None:
            self.time.nudge(poller)
        for strand, wait in self._listeners.pop(queue.url, []):
            if strand.waits == wait:
                self.time.nudge(strand)

    def _long_poll(self, queue: Queue, until: Millis) -> None:
        """Wait until a message is visible in a queue or `until` is reached; each change to the queue is checked."""
        while (now := self.time.now()) < until:
            at = queue.visible_at(now)
            if at == now:
                return
            strand = self.time.current()
            self._listeners.setdefault(queue.url, []).append((strand, strand.waits))
            self.time.sleep_until(until if at is None else min(at, until))

    def close(self) -> None:
        """End all running strands."""
        self.time.close()
