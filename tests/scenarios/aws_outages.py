"""Simulates an outage of an AWS service under a steady load, and reports refusals, delays and alarms.

Records the same metrics as CloudWatch: the functions' own metrics, and the metrics of AWS for functions, queues, the
table and the API.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from duetime.ports.runtime import SHARED_COUNTS
from duetime_cdk.alarm_list import AlarmSpec, BurnRate, alarms
from duetime_cdk.environments import PROD
from duetime_cdk.metric_sources import api, function_metric, own, queue, shared, table_operation
from tests.metrics.alarm_evaluation import is_alarming, key_of
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis
    from duetime_testing.simulation.faults import Call
    from tests.simulation.account import Invocation

BEFORE, AFTER = 20 * MINUTE, HOUR
_PUNCTUAL = 10 * SECOND
_ALARMS = alarms(PROD)
_EVERY_ALARM: list[AlarmSpec | BurnRate] = [*_ALARMS.single, *_ALARMS.burn_rates]
_SERVER_ERROR = 500
_CREATED = 201


@dataclass
class Figures:
    """The effects of an outage.

    Attributes:
        accepted: how many tasks were accepted.
        refused: how many requests to create a task were refused, by status.
        lost: ids of accepted tasks that had not succeeded an hour after the outage.
        due_during: how many of the accepted tasks were due during the outage.
        on_time_during: how many of the tasks due during the outage began within ten seconds.
        latest: the maximum lateness of the tasks due during the outage, in milliseconds.
        latest_after: the maximum lateness of tasks that began after the outage, in milliseconds; the time between their
            due time and the end of the outage is not counted.
        alarms: the alarms that went off.
        still_on: the alarms that were still on an hour after the outage.
    """

    accepted: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    due_during: int = 0
    on_time_during: int = 0
    latest: Millis = 0
    latest_after: Millis = 0
    alarms: set[str] = field(default_factory=set)
    still_on: set[str] = field(default_factory=set)


class Outage(Tasks):
    """An account in which an AWS service fails for some time.

    Attributes:
        series: the values of each metric by minute.
        fields: additional fields for each created task, by the task's number.
        every: the time between two created tasks.
        lasting: the time that each task runs.
        began: when the first attempt of each task began.
        due: when each accepted task is due.
    """

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        self.faulty = True
        self.series: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.fields: Callable[[int], dict[str, Any]] = lambda _number: {}
        self.every: Millis = 20 * SECOND
        self.lasting: Millis = 0
        self.began: dict[str, Millis] = {}
        self.due: dict[str, Millis] = {}
        self.refused: Counter[int] = Counter()
        self._invoked: list[Invocation] = []
        self._read: Counter[Any] = Counter()
        self._measured: Counter[Any] = Counter()
        self.time.start_process(self._record)
        self.target = self._begin

    def _begin(self, phase: str, context: Any) -> str:  # noqa: ANN401 - a handler's context
        if phase == "run":
            node = self.record(context.task_id).node_ref
            self.began.setdefault(node.topology.text if node else context.task_id, self.now)
            self.take(self.lasting)
        return "done"

    def invoke(self, function: str, event: Any) -> Invocation:  # noqa: ANN401 - JSON
        """Begin an invocation, and count it in Lambda's `Invocations` metric."""
        invocation = super().invoke(function, event)
        self._put(key_of(function_metric(function, "Invocations", "Sum")), 1)
        self._invoked.append(invocation)
        return invocation

    def refuse_calls(self, matches: Callable[[Call], bool]) -> None:
        """Refuse all matching calls from now on; refused DynamoDB calls are counted as throttled."""

        def refuse(call: Call) -> None:
            if matches(call):
                if call.service == "dynamodb":
                    operation = "".join(each.capitalize() for each in call.operation.split("_"))
                    self._put(key_of(table_operation(operation, "ThrottledRequests", "Sum", operation)), 1)
                call.refuse()

        self.before_call = refuse

    def heal(self) -> None:
        """Let all calls succeed again."""
        self.before_call = None

    def fail_for(self, duration: Millis, begin: Callable[[], object], end: Callable[[], object]) -> Figures:
        """Create tasks steadily, call `begin` after twenty minutes and `end` after `duration`, and wait for an hour.

        The tasks are due 0, 90, 300 and 600 seconds after their creation, in turn.
        """
        self.time.start_process(lambda: self._create_until(self.now + BEFORE + duration))
        self.run(BEFORE)
        began = self.now
        begin()
        self.run(duration)
        ended = self.now
        end()
        self.run(AFTER)
        return self._figures(began, ended)

    def is_on(self, name: str) -> bool:
        """Whether the alarm of this name was in ALARM at the end of the last complete minute."""
        (alarm,) = [each for each in _ALARMS.single if each.name == name]
        return is_alarming(alarm, self.series, self.now // MINUTE - 1)

    def _create_until(self, until: Millis) -> None:
        number = 0
        while self.now < until:
            delay = (0, 90, 300, 600)[number % 4]
            body = {"type": PLAIN, "delay_seconds": delay, "timeout_seconds": 60, **self.fields(number)}
            self.time.start_process(partial(self._ask, body, self.now + delay * SECOND))
            number += 1
            self.take(self.every)

    def _ask(self, body: dict[str, Any], due: Millis) -> None:
        reply = self.users.ask("POST", "/v1/tasks", body)
        if reply is None:
            self.refused[_SERVER_ERROR] += 1
            return
        self._put(key_of(api("Count", "Sum", "")), 1)
        self._put(key_of(api("5xx", "Sum", "")), float(reply.status >= _SERVER_ERROR))
        if reply.status == _CREATED:
            self.due[reply.body["id"]] = due
        else:
            self.refused[reply.status] += 1

    def _figures(self, began: Millis, ended: Millis) -> Figures:
        found = Figures(len(self.due), self.refused)
        found.lost = [each for each in self.due if self.record(each).state != "succeeded"]
        due = [each for each, at in self.due.items() if began <= at < ended]
        late = {each: self.began[each] - self.due[each] for each in due if each in self.began}
        found.due_during = len(due)
        found.latest = max(late.values(), default=0)
        found.on_time_during = sum(each <= _PUNCTUAL for each in late.values())
        after = [at - max(self.due[each], ended) for each, at in self.began.items() if each in self.due and at >= ended]
        found.latest_after = max(after, default=0)
        last = self.now // MINUTE - 1
        minutes = range(began // MINUTE, last + 1)
        for alarm in _EVERY_ALARM:
            on = [each for each in minutes if is_alarming(alarm, self.series, each)]
            name = alarm.section if isinstance(alarm, AlarmSpec) else alarm.runbook
            if on:
                found.alarms.add(name)
                if on[-1] == last:
                    found.still_on.add(name)
        return found

    # Metrics, once a minute.

    def _put(self, key: str, value: float) -> None:
        self.series[key][self.time.now() // MINUTE].append(value)

    def _record(self) -> None:
        while True:
            self.time.sleep_until(((self.time.now() + 1) // MINUTE + 1) * MINUTE - 1)
            self._record_functions()
            self._record_dead_letters()

    def _record_functions(self) -> None:
        for machine, facts in self._facts.items():
            for name, value in facts.measures[self._measured[machine] :]:
                self._put_own(machine.function, name, value)
            self._measured[machine] = len(facts.measures)
            for name, value in facts.counts.items():
                if value != self._read[machine, name]:
                    self._put_own(machine.function, name, value - self._read[machine, name])
                    self._read[machine, name] = value
        ended = [each for each in self._invoked if each.strand is not None and each.strand.done]
        for each in ended:
            self._put(key_of(function_metric(each.function, "Errors", "Sum")), float(each.failed))
        self._invoked = [each for each in self._invoked if each not in ended]

    def _put_own(self, function: str, name: str, value: float) -> None:
        if "{" not in name:
            source = shared(name, "Sum") if name in SHARED_COUNTS else own(name, "Sum", function)
            self._put(key_of(source), value)

    def _record_dead_letters(self) -> None:
        dead = next(each for each in self.sqs.queues.values() if each.url.endswith("dead"))
        waiting = queue("dead_letters", "ApproximateNumberOfMessagesVisible", "Maximum", "")
        self._put(key_of(waiting), len(dead.messages))
