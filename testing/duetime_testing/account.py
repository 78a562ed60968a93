"""Simulates an account for users' tests: calls take no time, and no random faults are injected."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of
from duetime.canary_task import BUILT_IN
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import PullTarget, TopologyTarget
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import HandlerDescription
from duetime.domain.times import SECOND
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from duetime.handlers import REGISTRY, Registered
from duetime.handlers.options import description
from duetime_common.frozen_classes import frozen
from duetime_testing.executions import Executions, ObservedTargets
from duetime_testing.faults import Faults
from duetime_testing.http_endpoints import HttpEndpoints
from duetime_testing.idle_ticks import IdleTicks
from duetime_testing.simulation.account import Account
from duetime_testing.simulation.event_loop import VirtualEventLoop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.adapters.targets import Targets
    from duetime.adapters.targets.http_messages import Call as HttpCall
    from duetime.adapters.targets.http_messages import HttpResponse
    from duetime.domain.tasks.allowed_targets import TargetRules
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime_testing.fakes.attribute_values import Item
    from duetime_testing.fakes.sqs import Held
    from duetime_testing.simulation.machines import Machine

LOOK_AHEAD_SECONDS = 180
_SEED = 1
_FINISHED = ATTRIBUTES["finished_at"].name
_OUTCOMES = (pytest.fail.Exception, pytest.skip.Exception, pytest.exit.Exception)
"""Exceptions that end the test instead of only the attempt whose handler raises them."""


class VirtualAccount(Account):
    """The simulated account of one test.

    Attributes:
        handlers: the Python handlers registered by the test, by task type.
        executions: the executed phases of attempts.
        http: the external endpoints.
        injected: the faults that the test injects.
        errors: exceptions raised by Lambda functions, which Lambda would report and retry.
        test_outcome: the exception with which a handler has ended the test, such as a failed assertion; `None` if there
            is none.
        writes: number of writes to the table that concern records with a state.
        leaves_out_idle_ticks: whether the trigger is invoked only if it would read an item.
    """

    def __init__(self, start: Millis, handlers_package: str = "") -> None:
        self.handlers_package = handlers_package
        self.handlers: dict[str, Registered] = {}
        self.executions = Executions()
        self.http = HttpEndpoints()
        self.errors: list[str] = []
        self.test_outcome: BaseException | None = None
        self.writes = 0
        super().__init__(_SEED, shards=1, start=start)
        self.environ[Variable.LOOK_AHEAD_SECONDS] = str(LOOK_AHEAD_SECONDS)
        for rank, priority in enumerate((Priority.HIGH, Priority.NORMAL, Priority.LOW), 1):
            self._pollers[self.environ[QUEUE_VARIABLES[priority]]].rank = rank
        self.injected = Faults(self)
        self.leaves_out_idle_ticks = True
        self._idle_ticks = IdleTicks(self, LOOK_AHEAD_SECONDS * SECOND)
        self.dynamodb.page = 1000
        self.dynamodb.lag = lambda: 0
        self._open: dict[tuple[str, str], Item] = {}
        self.dynamodb.tables["tasks"].watch = self._written

    def declare_pulled(self, task_type: str) -> None:
        """Declare a type as pulled, as in the settings of a deployment."""
        queues = json.loads(self.environ[Variable.PULLED_QUEUES])
        pullers = json.loads(self.environ[Variable.PULLERS])
        if task_type in queues:
            return
        name = f"pulled-{len(queues)}"
        url = self.sqs.create_queue(QueueName=name, Attributes=self.queue_attributes)["QueueUrl"]
        self.environ[Variable.PULLED_QUEUES] = json.dumps({**queues, task_type: url})
        self.environ[Variable.PULLERS] = json.dumps({**pullers, task_type: ["*"]})
        # Running functions keep the old settings; new invocations read the new settings.
        self.generation += 1

    def take_over(self, other: VirtualAccount) -> None:
        """Adopt the handlers, endpoints, faults, pulled types and batch sizes that a test set on an unused account."""
        self.worker_batch = other.worker_batch
        self.handlers, self.http, self.injected = other.handlers, other.http, other.injected
        self.injected.account = self
        self.before_call = other.before_call
        for task_type in json.loads(other.environ[Variable.PULLED_QUEUES]):
            self.declare_pulled(task_type)

    def receive_messages(self, *, receives: bool) -> None:
        """Start or stop the invocations by queue messages and the trigger's invocation every minute."""
        self.receiving = self.ticking = receives
        for poller in self._pollers.values():
            self.time.nudge(poller)

    def waiting_tasks(self) -> list[Task]:
        """The unfinished tasks that are due, except tasks that wait for an action outside this account."""
        now = self.time.now()
        tasks = [task_of(item) for item in self._open.values()]
        due = [task for task in tasks if task.due_at <= now and task.state is not State.BLOCKED]
        held = {_topology_of(task) for task in tasks if _waits_outside(task)}
        return [
            task
            for task in due
            if not _waits_outside(task) and not (isinstance(task.target, TopologyTarget) and task.id.text in held)
        ]

    def is_busy(self) -> bool:
        """Whether any function except the API function is running."""
        return any(each.strand is not None and each.function != "api" for each in self.machines)

    def _written(self, old: Item | None, new: Item | None) -> None:
        item = new or old
        if item is None:
            return
        if self._idle_ticks.note(item[schema.PARTITION_KEY]["S"]):
            self.time.nudge(self._ticker)
        if schema.STATE not in item:
            return
        self.writes += 1
        key = (item[schema.PARTITION_KEY]["S"], item[schema.SORT_KEY]["S"])
        if new is None or _FINISHED in new:
            self._open.pop(key, None)
        else:
            self._open[key] = new

    # Overridden methods of the simulated account.

    def travel(self) -> None:
        """Take no time, so that each task runs exactly when it is due."""

    def trace(self, who: object, *what: Any) -> None:  # noqa: ANN401 - whatever is worth a line
        """Record only exceptions that functions raise."""
        if what and what[0] == "raised":
            self.errors.append(f"{who}: {what[1]!r}")

    def is_tick_needed(self) -> bool:
        """Whether the trigger would read an item if it were invoked now."""
        return not self.leaves_out_idle_ticks or self._idle_ticks.is_needed()

    def wait_for_tick(self) -> None:
        """Wait for the next minute in which the trigger could read an item.

        A write to the table can bring that minute forward.
        """
        if not self.leaves_out_idle_ticks:
            return super().wait_for_tick()
        while (at := self._idle_ticks.next_at()) > self.time.now():
            self.time.sleep_until(at)
            if self.time.now() >= at:
                return None
        return None

    def respond(self, call: HttpCall) -> HttpResponse:
        """Return the response that the test has configured."""
        return self.http.receive(call, self.time.now())

    def target_rules(self, rules: TargetRules) -> TargetRules:
        """The allowed targets, including each handler that is registered at the time a task is created."""
        return replace(rules, handled=_HandledTypes(self))

    def handled_types(self) -> Collection[str] | None:
        """The task types with a handler; `None` if unknown, as in a deployment without a handlers package."""
        if self.handlers_package:
            try:
                import_module(self.handlers_package)
            except Exception:  # noqa: BLE001 - the worker says why
                return None
        elif not self.handlers:
            return None
        return [*ChainMap(self.handlers, REGISTRY, dict(BUILT_IN))]

    def handler_descriptions(self, known: Mapping[str, HandlerDescription]) -> Mapping[str, HandlerDescription]:
        """A mapping with the descriptions of all handlers that are registered when the mapping is read."""
        del known
        return _Descriptions(self)

    def targets(self, machine: Machine, targets: Targets) -> Targets:
        """A process's targets; the test's own handlers take precedence."""
        handlers = replace(
            targets.handlers, registry=_TestedHandlers(self), new_event_loop=lambda: VirtualEventLoop(self.time)
        )
        return ObservedTargets(handlers, targets.http, targets.aws, targets.topologies, targets.events, machine, self)

    def _pick(self, messages: list[Held]) -> list[Held]:
        return messages

    def _lag(self) -> Millis:
        return 0


class _HandledTypes(Collection[str]):
    """The task types that an account currently accepts. In a deployment, the handlers package determines them."""

    def __init__(self, account: VirtualAccount) -> None:
        self._account = account

    def __contains__(self, task_type: object) -> bool:
        """Whether a type has a handler; `True` if the handled types are unknown."""
        known = self._account.handled_types()
        return known is None or task_type in known

    def __iter__(self) -> Iterator[str]:
        """Iterate over the task types that have a handler."""
        return iter(self._account.handled_types() or ())

    def __len__(self) -> int:
        """The number of task types that have a handler."""
        return len(self._account.handled_types() or ())


class _Descriptions(Mapping[str, HandlerDescription]):
    """An account's handler descriptions by task type. In a deployment, the handlers package determines them."""

    def __init__(self, account: VirtualAccount) -> None:
        self._account = account

    def __getitem__(self, task_type: str) -> HandlerDescription:
        """The description of a type's handler."""
        self._account.handled_types()
        return HandlerDescription(**description(ChainMap(self._account.handlers, REGISTRY)[task_type]))

    def __iter__(self) -> Iterator[str]:
        """Iterate over the types."""
        self._account.handled_types()
        return iter(ChainMap(self._account.handlers, REGISTRY))

    def __len__(self) -> int:
        """The number of types."""
        return len([*self])


class _TestedHandlers(ChainMap[str, Registered]):
    """An account's handlers by task type; handlers registered by the test take precedence."""

    def __init__(self, account: VirtualAccount) -> None:
        super().__init__(account.handlers, REGISTRY, dict(BUILT_IN))
        self._account = account

    def __getitem__(self, task_type: str) -> Registered:
        """The handler for a type."""
        registered = super().__getitem__(task_type)
        given = {each.name: getattr(registered, each.name) for each in fields(Registered)}
        return _TestedHandler(**given, account=self._account)


@frozen
class _TestedHandler(Registered):
    """A handler whose exception can end the test; otherwise the attempt would record the exception and hide it."""

    account: VirtualAccount | None = None

    def call(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - those of `Registered`
        """Call the handler for a phase, and record an exception that ends the test."""
        try:
            return Registered.call(self, *arguments, **options)
        except _OUTCOMES as outcome:
            self._record(outcome)
            raise

    def call_batch(self, *arguments: Any, **options: Any) -> list[object]:  # noqa: ANN401 - those of `Registered`
        """Call the handler for several tasks, and record an exception that ends the test."""
        try:
            return Registered.call_batch(self, *arguments, **options)
        except _OUTCOMES as outcome:
            self._record(outcome)
            raise

    def _record(self, outcome: BaseException) -> None:
        if self.account is not None:
            self.account.test_outcome = outcome


def _waits_outside(task: Task) -> bool:
    """Whether a task waits for an action of its user, its target, or a pull worker."""
    if task.state is State.PAUSED:
        return True
    if isinstance(task.target, TopologyTarget):
        # A topology's task waits for its nodes, which run in this account, unless a pause is requested.
        return task.requested_action is RequestedAction.PAUSE
    return task.awaiting_notification or (isinstance(task.target, PullTarget) and not task.is_terminal)


def _topology_of(task: Task) -> str:
    """The id of the topology that contains the task; the task's own id if the task is not a node."""
    return task.id.text if task.node_ref is None else task.node_ref.topology.text
